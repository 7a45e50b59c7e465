"""Servers that answer anything: what they send is data only if it is what was asked for."""

import asyncio
import threading
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec, Header, WellFolder, check, remote, write_well
from overtone.files import fingerprint

pytest.importorskip("aiohttp")
HTTPFileSystem = pytest.importorskip("fsspec.implementations.http").HTTPFileSystem

PAGE = b"<!DOCTYPE html><html>down for maintenance</html>"


class Handler(BaseHTTPRequestHandler):
    """The first part of an address says what is to go wrong; `later-…` only in later answers."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(send=False)

    def do_GET(self):
        self.answer(send=True)

    def answer(self, send):
        server = self.server
        server.asked.append(self.path)
        _, trouble, name = self.path.split("/", 2)
        if trouble.startswith("later-"):
            trouble = trouble.removeprefix("later-") if server.broken else "fine"
        content = server.files.get(name)
        if trouble == "unavailable" or content is None:
            return self.reply(503 if trouble == "unavailable" else 404, PAGE, send)
        if trouble == "page":
            return self.reply(200, PAGE, send)
        if trouble in ("file", "away", "near"):
            target = {
                "file": f"file:///{server.local}",
                "away": f"http://localhost:{server.server_port}/fine/{name}",
                "near": f"/fine/{name}",
            }[trouble]
            return self.reply(302, b"", send, Location=target)
        if trouble == "slow":
            server.slow.wait(10)
        total = int(len(content) * {"long": 2, "small": 0.5}.get(trouble, 1))
        wanted = self.headers.get("Range")
        if wanted is None or trouble == "whole":
            options = {"Accept-Ranges": "none"} if trouble == "whole" and server.honest else {}
            return self.reply(200, content, send, length=total, **options)
        start, end = (int(n) for n in wanted.removeprefix("bytes=").split("-"))
        part = content[start : end + 1]
        if trouble == "short":
            return self.reply(206, part[: len(part) // 2], send)
        length = len(part)
        if trouble == "cut":
            part = part[: length // 2]
        return self.reply(206, part, send, length=length)

    def reply(self, status, content, send, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if send:
            self.wfile.write(content)
        if send and length not in (None, len(content)):
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A file, here and on a server of this machine."""
    path = tmp_path_factory.mktemp("served") / "a.hdf5"
    values = np.random.default_rng(0).standard_normal((2, 30, 64, 64), dtype=np.float32)
    values += 3 * values[:, :1]
    header = Header("toy", (64, 64), (1.0, 1.0), "periodic")
    write_well(path, {FieldSpec("a"): values}, header)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # who asked may have gone
    server.files = {"a.hdf5": path.read_bytes()}
    server.local, server.slow = path, threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.slow.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def url(served, monkeypatch):
    """Addresses of the file; it is read in several parts."""
    HTTPFileSystem.clear_instance_cache()
    monkeypatch.setattr("fsspec.implementations.http.DEFAULT_BLOCK_SIZE", 2**15)
    served.asked, served.broken, served.honest = [], False, True
    served.slow.clear()
    return lambda trouble: f"http://127.0.0.1:{served.server_port}/{trouble}/a.hdf5"


@pytest.mark.parametrize("trouble", ["fine", "near"])
def test_a_file_on_a_web_server(served, url, trouble):
    here, there = WellFolder(served.local, context=3), WellFolder(url(trouble), context=3)
    for index in (0, len(here) - 1):
        assert torch.equal(here[index][0].fields, there[index][0].fields)
    assert there.fingerprint() == here.fingerprint()
    assert fingerprint(there.files) == fingerprint(here.files)
    assert [finding.message for finding in check(url(trouble))] == [
        "no stats.yaml; `overtone data stats` writes it"
    ]


TROUBLES = [
    ("unavailable", "can't be read: the server answers 503 Service Unavailable"),
    ("page", "is not an HDF5 file: it begins with '<!DOCTYPE html>"),
    ("cut", "can't be read: .*Not enough data"),
    ("short", "ended early: .* bytes instead of"),
    ("small", "is truncated or damaged"),
    ("long", "ended early: .* bytes instead of"),
    ("file", "leads to 'file:///.*', which is elsewhere; it is not followed"),
    ("away", "leads to 'http://localhost:.*/fine/a.hdf5', which is elsewhere"),
    ("whole", "the server does not send parts of files. Download it"),
    ("slow", "can't be read: no answer within 0.2 seconds .OVERTONE_TIMEOUT"),
]


@pytest.mark.parametrize(("trouble", "message"), TROUBLES)
def test_answers_that_are_no_data(url, monkeypatch, trouble, message):
    if trouble == "slow":
        monkeypatch.setenv("OVERTONE_TIMEOUT", "0.2")
    with pytest.raises(ot.DataError, match=message) as caught:
        fingerprint(WellFolder(url(trouble), context=3).files)
    assert url(trouble) in str(caught.value)


LATER = [entry for entry in TROUBLES if entry[0] not in ("long", "small", "page")]


@pytest.mark.parametrize(
    ("trouble", "message"), [*LATER, ("page", "the server does not send parts of files")]
)
def test_answers_that_turn_bad_later(served, url, monkeypatch, trouble, message):
    """Of a file that is open already; and nothing bad is kept: then all is well again."""
    if trouble == "slow":
        monkeypatch.setenv("OVERTONE_TIMEOUT", "0.2")
    data, served.honest = WellFolder(url(f"later-{trouble}"), context=3), False
    _, last = data[0], len(data) - 1
    served.broken = True
    with pytest.raises(ot.DataError, match=message) as caught:
        _ = data[last]
    assert f"127.0.0.1:{served.server_port}/later-{trouble}/a.hdf5" in str(caught.value)
    served.broken = False
    served.slow.set()
    expected = WellFolder(served.local, context=3)[last][0].fields
    assert torch.equal(data[last][0].fields, expected)


def test_a_file_that_is_replaced_on_the_server(served, url, tmp_path):
    data = WellFolder(url("fine"), context=3)
    values = np.zeros((1, 30, 64, 64), np.float32)
    write_well(tmp_path / "b.hdf5", {"a": values}, Header("toy", (64, 64), (1.0, 1.0), "periodic"))
    before = served.files["a.hdf5"]
    served.files["a.hdf5"] = (tmp_path / "b.hdf5").read_bytes()
    try:
        with pytest.raises(ot.DataError, match="has changed since it was first read"):
            _ = data[0]
    finally:
        served.files["a.hdf5"] = before


def test_no_such_file_and_no_such_server(served, url, monkeypatch):
    with pytest.raises(ot.DataError, match="b.hdf5' does not exist"):
        WellFolder(url("fine").replace("a.hdf5", "b.hdf5"))
    with pytest.raises(ot.DataError, match="http://127.0.0.1:1/a.hdf5' can't be read: .*onnect"):
        WellFolder("http://127.0.0.1:1/a.hdf5")
    for text in ("soon", "-1", "nan", "0"):
        monkeypatch.setenv("OVERTONE_TIMEOUT", text)
        with pytest.raises(ot.OvertoneError, match="OVERTONE_TIMEOUT is .*; expected seconds"):
            WellFolder(url("fine"))


def test_a_command_ends_with_one_message(overtone, url):
    code, text = overtone("data", "check", url("unavailable"))
    assert code == 2
    assert "the server answers 503" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("here", "there", "follows"),
    [
        ("http://a/x", "/y", True),
        ("http://a/x", "https://a/y", True),
        ("https://a/x", "https://store.b/y?key=1", True),  # archives keep files elsewhere
        ("https://a/x", "http://a/y", False),
        ("http://a/x", "http://b/y", False),
        ("https://a/x", "file:///etc/passwd", False),
        ("https://a/x", "ftp://a/y", False),
    ],
)
def test_redirects(here, there, follows):
    response = SimpleNamespace(headers={"Location": there})
    look = remote._look_at_redirect(None, None, SimpleNamespace(url=here, response=response))
    with nullcontext() if follows else pytest.raises(ot.DataError, match="it is not followed"):
        asyncio.run(look)
