"""A stand-in for the hub on this machine: the few endpoints that huggingface_hub calls for models.

It keeps repositories in memory, each a list of commits, and does wrong what it is told to do wrong.
"""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_stand_in"


@dataclass
class Repo:
    private: bool = False
    gated: bool = False
    commits: dict = field(default_factory=dict)  # commit -> {path: content}
    refs: dict = field(default_factory=dict)  # branch or tag -> commit

    def commit(self, branch, files):
        text = branch + str(len(self.commits)) + repr(sorted(files))
        name = hashlib.sha1(text.encode()).hexdigest()
        self.commits[name] = dict(files)
        self.refs[branch] = name
        return name


@dataclass
class State:
    """What the server holds, what it was asked, and what is to go wrong."""

    repos: dict = field(default_factory=dict)
    large: dict = field(default_factory=dict)  # digest -> content
    asked: list = field(default_factory=list)  # (method, path, range)
    messages: list = field(default_factory=list)
    down: bool = False
    cuts: int = 0  # answers with weights that end early
    altered: bool = False  # a byte of the weights is another one

    def add(self, name, files, branch="main", **options):
        """A repository, or another commit of it."""
        repo = self.repos.setdefault(name, Repo(**options))
        return repo.commit(branch, files)

    def names(self, method="GET"):
        """Files of which the content was sent."""
        return [p.rpartition("/")[2] for m, p, _ in self.asked if m == method and "/resolve/" in p]


class Refusal(Exception):
    def __init__(self, status, code="", text=""):
        super().__init__(text)
        self.status, self.code, self.text = status, code, text


def is_large(path):
    return path.endswith(".safetensors")


def git_digest(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def described(content, path, name_key, digest_key):
    """A file as listings have it."""
    entry = {name_key: path, "size": len(content), digest_key: git_digest(content)}
    if is_large(path):
        digest = hashlib.sha256(content).hexdigest()
        keys = {"sha256": digest} if name_key == "rfilename" else {"oid": digest}
        entry["lfs"] = {**keys, "size": len(content), "pointerSize": 134}
    return entry


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def state(self):
        return self.server.state

    @property
    def known(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def do_GET(self):
        self.answer("GET")

    def do_HEAD(self):
        self.answer("HEAD")

    def do_POST(self):
        self.answer("POST")

    def do_PUT(self):
        self.answer("PUT")

    def answer(self, method):
        parts = urlsplit(self.path)
        path = parts.path
        self.state.asked.append((method, path, self.headers.get("Range")))
        length = int(self.headers.get("Content-Length") or 0)
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        self.body = self._chunks() if chunked else self.rfile.read(length)
        try:
            if self.state.down:
                raise Refusal(503, text="down")
            for pattern, verb, name in ROUTES:
                found = re.fullmatch(pattern, path)
                if found and method in verb.split():
                    return getattr(self, name)(*map(unquote, found.groups()))
            raise Refusal(404, text=f"{method} {path}")
        except Refusal as refusal:
            headers = {"X-Error-Code": refusal.code} if refusal.code else {}
            self.json({"error": refusal.text or refusal.code}, refusal.status, **headers)

    def _chunks(self):
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def json(self, content, status=200, **headers):
        self.reply(status, json.dumps(content).encode(), **headers)

    def reply(self, status, content, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
            if length not in (None, len(content)):
                self.close_connection = True

    # what there is

    def repo(self, name):
        repo = self.state.repos.get(name)
        if repo is None or (repo.private and not self.known):
            raise Refusal(404 if self.known else 401, "RepoNotFound" if self.known else "")
        if repo.gated:
            raise Refusal(403, "GatedRepo")
        return repo

    def files(self, name, revision):
        repo = self.repo(name)
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            raise Refusal(404, "RevisionNotFound")
        return commit, repo.commits[commit]

    def info(self, name, revision="main"):
        commit, files = self.files(name, revision)
        siblings = [described(c, p, "rfilename", "blobId") for p, c in sorted(files.items())]
        private = self.state.repos[name].private
        self.json({"id": name, "sha": commit, "private": private, "siblings": siblings})

    def tree(self, name, revision):
        _, files = self.files(name, revision)
        entries = [described(c, p, "path", "oid") for p, c in sorted(files.items())]
        self.json([{"type": "file", **entry} for entry in entries])

    def resolve(self, name, revision, path):
        commit, files = self.files(name, revision)
        if path not in files:
            raise Refusal(404, "EntryNotFound")
        content = files[path]
        digest = hashlib.sha256(content).hexdigest() if is_large(path) else git_digest(content)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{digest}"', "Accept-Ranges": "bytes"}
        if self.command == "HEAD":
            return self.reply(200, content, **headers)
        if is_large(path) and self.state.altered:
            content = content[:-1] + bytes([content[-1] ^ 1])
        start, status = 0, 200
        if wanted := self.headers.get("Range"):
            start, status = int(wanted.removeprefix("bytes=").rstrip("-")), 206
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        part = content[start:]
        if is_large(path) and self.state.cuts > 0:
            self.state.cuts -= 1
            return self.reply(status, part[: len(part) // 2], len(part), **headers)
        return self.reply(status, part, **headers)

    # what is written

    def writer(self, name):
        if not self.known:
            raise Refusal(401, text="Invalid username or password")
        if not name.startswith("acme/"):
            raise Refusal(403, text="this token may not write there")
        return name

    def create(self):
        wanted = json.loads(self.body)
        name = self.writer(f"{wanted['organization']}/{wanted['name']}")
        if name in self.state.repos:
            url = f"{self.server.url}/{name}"
            return self.json({"error": "You already created this model repo", "url": url}, 409)
        private = wanted.get("visibility") == "private" or bool(wanted.get("private"))
        self.state.add(name, {".gitattributes": b"*.safetensors lfs\n"}, private=private)
        return self.json({"url": f"{self.server.url}/{name}"})

    def branch(self, name, branch):
        repo = self.repo(self.writer(name))
        if branch in repo.refs:
            return self.json({"error": "Reference already exists"}, 409)
        repo.refs[branch] = repo.refs["main"]
        return self.json({})

    def validate(self):
        text = json.loads(self.body)["content"]
        head = yaml.safe_load(text.split("---\n")[1])
        if not isinstance(head, dict) or "license" not in head:
            return self.json({"errors": [{"message": '"license" is missing'}]}, 400)
        return self.json({"errors": [], "warnings": []})

    def preupload(self, name, revision):
        self.files(self.writer(name), revision)
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if is_large(file["path"]) else "regular",
                "shouldIgnore": False,
            }
            for file in json.loads(self.body)["files"]
        ]
        self.json({"files": files})

    def batch(self, name):
        self.writer(name)
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            entry = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.state.large:
                href = f"{self.server.url}/large/{wanted['oid']}"
                entry["actions"] = {"upload": {"href": href}}
            objects.append(entry)
        self.json({"transfer": "basic", "objects": objects})

    def put(self, digest):
        if hashlib.sha256(self.body).hexdigest() != digest:
            raise Refusal(422, text="the content is not what was announced")
        self.state.large[digest] = self.body
        self.json({})

    def commit(self, name, revision):
        _, old = self.files(self.writer(name), revision)
        files = dict(old)
        for line in self.body.splitlines():
            entry = json.loads(line)
            key, value = entry["key"], entry["value"]
            if key == "header":
                self.state.messages.append(value["summary"])
            elif key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.state.large[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        commit = self.state.repos[name].commit(revision, files)
        url = f"{self.server.url}/{name}/commit/{commit}"
        self.json({"commitUrl": url, "commitOid": commit, "pullRequestUrl": None})

    def log_message(self, *_):
        pass


NAME = r"([\w.-]+/[\w.-]+)"
ROUTES = [
    (r"/api/repos/create", "POST", "create"),
    (r"/api/validate-yaml", "POST", "validate"),
    (rf"/api/models/{NAME}", "GET", "info"),
    (rf"/api/models/{NAME}/revision/([^/]+)", "GET", "info"),
    (rf"/api/models/{NAME}/tree/([^/]+)", "GET", "tree"),
    (rf"/api/models/{NAME}/branch/([^/]+)", "POST", "branch"),
    (rf"/api/models/{NAME}/preupload/([^/]+)", "POST", "preupload"),
    (rf"/api/models/{NAME}/commit/([^/]+)", "POST", "commit"),
    (rf"/{NAME}\.git/info/lfs/objects/batch", "POST", "batch"),
    (r"/large/([0-9a-f]{64})", "PUT", "put"),
    (rf"/{NAME}/resolve/([^/]+)/(.+)", "GET HEAD", "resolve"),
]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    state: State

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Who asked may have gone."""


@contextmanager
def serving():
    """A server with nothing on it."""
    server = Server(("127.0.0.1", 0), Handler)
    server.state = State()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
