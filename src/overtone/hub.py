"""Models on a hub: a repository `org/name`, of which a few known files are read or written.

`huggingface_hub` (the extra `hub`) talks to the server and keeps the cache; its own variables say
where and how: `HF_ENDPOINT`, `HF_HOME`, `HF_HUB_OFFLINE`, `HF_TOKEN`. What is decided here:

- Only `FILES` are ever fetched or sent: weights as safetensors, JSON, and a card. A repository that
  lacks one of `NEEDED` is refused before anything is fetched.
- Every fetched file is compared with the digest that the hub lists for it. A file that differs is
  removed from the cache, so that the next attempt fetches it again. Whoever owns the repository can
  change both: a commit, or `sha256=` of `load_model`, says which weights are meant.
- A commit never changes: what is complete in the cache is taken without asking anybody. Of a branch
  or a tag the hub is asked, and where it can't be reached, the copy in the cache is used and said.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from overtone.errors import CheckpointError, refusal
from overtone.files import sha256
from overtone.guard.limits import require_disk
from overtone.guard.names import shown
from overtone.version import __version__

SCHEME = "hf://"
"""Begins a name that can only be a repository's."""
NEEDED = ("config.json", "model.safetensors")
CARD, LOG, CALIBRATION = "README.md", "metrics.jsonl", "calibration.json"
FILES = (*NEEDED, CARD, LOG, CALIBRATION)
"""All that is fetched from a repository, or sent to one."""
NAME = re.compile(r"(?P<name>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>[^@\s]+))?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
PATIENCE = 30.0
"""Seconds that the hub has for saying what a repository holds."""
CLIENTS = ("httpx", "httpx2", "requests", "urllib3")
"""Packages by which versions of huggingface_hub talk to servers, each with errors of its own."""
LOGIN = "log in with `hf auth login`, or set HF_TOKEN"


class _Unreachable(Exception):
    """Nothing was found out: there is no connection, or no answer."""


@dataclass(frozen=True)
class Repository:
    """A model's place on the hub.

    Attributes:
        name: `org/name`.
        revision: a branch, a tag or a commit; None for the default branch.
    """

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name}@{self.revision}"

    @property
    def pinned(self) -> bool:
        """Whether it is a commit, which never changes."""
        return self.revision is not None and COMMIT.fullmatch(self.revision) is not None


@dataclass(frozen=True)
class Fetched:
    """What was fetched.

    Attributes:
        folder: where its files are, in the hub's cache.
        commit: whose files they are.
        note: why they may not be the newest; empty if the hub was asked.
    """

    folder: Path
    commit: str
    note: str = ""


def parse(text: str, revision: str | None = None) -> Repository | None:
    """The repository that a name may mean: `org/name`, `org/name@revision`, `hf://…` of both.

    Args:
        text: as the user wrote it.
        revision: given apart from the name.

    Returns:
        None for what can be no repository's name.
    """
    found = NAME.fullmatch(text.removeprefix(SCHEME))
    if found is None:
        if text.startswith(SCHEME):
            raise CheckpointError(
                f"'{shown(text)}' names no repository; expected hf://org/name or "
                "hf://org/name@revision"
            )
        return None
    if revision is not None and found["revision"] not in (None, revision):
        raise CheckpointError(
            f"'{shown(text)}' names a revision, and revision is '{shown(revision)}'; give one"
        )
    return Repository(found["name"], revision or found["revision"])


def installed() -> bool:
    """Whether repositories can be read at all."""
    return find_spec("huggingface_hub") is not None


def download(repository: Repository) -> Fetched:
    """Fetch a model's files into the hub's cache, or take them from there.

    Args:
        repository: where they are.
    """
    hub = _library(repository)
    from huggingface_hub import constants

    try:
        with _explaining(repository):
            if repository.pinned and (found := _cached(hub, repository)):
                return found
            if constants.HF_HUB_OFFLINE:
                reason, advice = "HF_HUB_OFFLINE is set", "Unset it, or load it once while online"
                return _cached(hub, repository, reason) or _refuse_absent(
                    repository, reason, advice
                )
            return _fetch(hub, repository)
    except _Unreachable as error:
        reason = f"the hub can't be reached ({error})"
        return _cached(hub, repository, reason) or _refuse_absent(
            repository, reason, "Try again later"
        )


def _fetch(hub: ModuleType, repository: Repository) -> Fetched:
    """Ask the hub what there is, fetch what belongs to a model, and compare it."""
    from huggingface_hub import constants

    api = hub.HfApi(library_name="overtone", library_version=__version__)
    listed = _list(api, repository)
    _require_model(repository, listed.files)
    size = sum(file.size for name, file in listed.files.items() if name in FILES)
    require_disk(size, constants.HF_HUB_CACHE, f"the model '{repository}'", error=CheckpointError)
    with _bars():
        found = api.snapshot_download(
            repository.name, revision=repository.revision, allow_patterns=list(FILES)
        )
    folder = Path(found)
    if folder.name != listed.commit:  # somebody has just pushed
        listed = _list(api, Repository(repository.name, folder.name))
    for name, file in listed.files.items():
        if name in FILES:
            _require_content(repository, folder / name, file)
    return Fetched(folder, folder.name)


@contextmanager
def _bars() -> Generator[None]:
    """The library's bars, for terminals alone: elsewhere they would be lines in a log."""
    from huggingface_hub import constants, utils

    wanted = constants.HF_HUB_DISABLE_PROGRESS_BARS is False  # None if nobody has said so
    if sys.stderr.isatty() or wanted or utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()


@dataclass(frozen=True)
class _File:
    """What the hub says of a file: its size in bytes, and a digest, by git or of its content."""

    size: int
    digest: str

    def fits(self, path: Path) -> bool:
        if len(self.digest) == 64:
            return sha256(path) == self.digest
        content = path.read_bytes()  # git stores small files by themselves, and hashes their size
        own = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        return own.hexdigest() == self.digest


@dataclass(frozen=True)
class _Listing:
    commit: str
    files: Mapping[str, _File]


def _list(api: Any, repository: Repository) -> _Listing:
    """The files of a repository."""
    info = api.model_info(
        repository.name, revision=repository.revision, files_metadata=True, timeout=PATIENCE
    )
    files = {
        entry.rfilename: _File(entry.size or 0, entry.lfs.sha256 if entry.lfs else entry.blob_id)
        for entry in info.siblings or ()
    }
    return _Listing(str(info.sha), files)


def _require_model(repository: Repository, files: Mapping[str, _File]) -> None:
    """Refuse a repository that is no model of ours, before anything of it is fetched."""
    missing = [name for name in NEEDED if name not in files]
    if missing:
        held = ", ".join(f"'{shown(name)}'" for name in sorted(files)[:5]) or "nothing"
        raise CheckpointError(
            f"the repository '{repository}' is not a model of Overtone's: it has no "
            f"{' and no '.join(missing)}, but {held}. Nothing was fetched; other formats, pickles "
            "above all, are never read. Expected what model.push_to_hub wrote"
        )


def _require_content(repository: Repository, path: Path, listed: _File) -> None:
    """Refuse a file that is not the one that the hub lists, and forget it."""
    if listed.fits(path):
        return
    blob = path.resolve()
    path.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)
    raise CheckpointError(
        f"{path.name} of '{repository}' is not the file that the hub lists: its digest differs. It "
        "was damaged on its way or in the cache, from which it is removed now; load the model again"
    )


def _cached(hub: ModuleType, repository: Repository, reason: str = "") -> Fetched | None:
    """What is complete in the cache, and why nobody was asked; None if it is not."""
    try:
        found = hub.snapshot_download(
            repository.name,
            revision=repository.revision,
            allow_patterns=list(NEEDED),
            local_files_only=True,
        )
    except FileNotFoundError:  # LocalEntryNotFoundError
        return None
    folder = Path(found)
    if not all((folder / name).is_file() for name in NEEDED):
        return None
    note = f"{reason}: the copy in the cache is used" if reason else ""
    return Fetched(folder, folder.name, note)


def _refuse_absent(repository: Repository, reason: str, advice: str) -> Fetched:
    raise CheckpointError(
        f"the repository '{repository}' can't be read: {reason}, and there is no complete copy of "
        f"it in the cache. {advice}"
    )


@dataclass(frozen=True)
class Uploaded:
    """What was written to the hub.

    Attributes:
        commit: its name for good.
        url: a page that shows it.
    """

    commit: str
    url: str


def upload(
    folder: Path,
    repository: Repository,
    *,
    private: bool | None = None,
    token: str | None = None,
    message: str | None = None,
) -> Uploaded:
    """Write a model's files to a repository, in one commit; it is made if it is not there.

    Those of `FILES` that an older model left there and this one does not have are removed, and all
    else stays.

    Args:
        folder: holds the files.
        repository: where to; its revision is a branch, which is made if it is not there.
        private: whether others may not see it; as it is, or as the account has it, if None.
        token: of the account; the one that is logged in if None.
        message: of the commit.
    """
    if repository.pinned:
        raise CheckpointError(
            f"'{repository}' is a commit, which never changes; give a branch to write to"
        )
    hub = _library(repository)
    api = hub.HfApi(token=token, library_name="overtone", library_version=__version__)
    names = [name for name in FILES if (folder / name).is_file()]
    try:
        with _explaining(repository, token, writing=True), _bars():
            api.create_repo(repository.name, private=private, exist_ok=True)
            _require_hidden(api, repository, private)
            if repository.revision is not None:
                api.create_branch(repository.name, branch=repository.revision, exist_ok=True)
            held = api.list_repo_files(repository.name, revision=repository.revision)
            stale = [name for name in FILES if name in held and name not in names]
            add, remove = hub.CommitOperationAdd, hub.CommitOperationDelete
            done = api.create_commit(
                repository.name,
                [*(add(name, folder / name) for name in names), *(remove(name) for name in stale)],
                commit_message=message or f"Model by Overtone {__version__}",
                revision=repository.revision,
            )
    except _Unreachable as error:
        raise CheckpointError(
            f"nothing was written to '{repository}': the hub can't be reached ({error}). Try again"
        ) from error
    return Uploaded(str(done.oid), str(done.commit_url))


def _require_hidden(api: Any, repository: Repository, private: bool | None) -> None:
    """Refuse to show to all what was to be private: the hub leaves a repository as it is."""
    if private and api.model_info(repository.name).private is False:
        raise CheckpointError(
            f"'{repository.name}' exists and is public; nothing was written. Make it private on "
            "its page, or choose another name"
        )


def _library(repository: Repository) -> ModuleType:
    try:
        import huggingface_hub
    except ImportError as error:
        raise CheckpointError(
            f"'{repository}' may be a repository on the hub, and huggingface_hub is not installed; "
            "pip install 'overtone[hub]'"
        ) from error
    return huggingface_hub


@contextmanager
def _explaining(
    repository: Repository, token: str | None = None, *, writing: bool = False
) -> Generator[None]:
    """What goes wrong at the hub, in our words.

    Raises:
        CheckpointError: the hub refuses, and says why.
        _Unreachable: nobody answers, or not to the end.
    """
    from huggingface_hub import errors

    try:
        yield
    except CheckpointError:
        raise
    except errors.GatedRepoError as error:
        raise CheckpointError(
            f"the owner of '{repository}' wants to know who reads it: ask for access on its page, "
            f"then {LOGIN}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(
            f"the repository '{repository.name}' has no revision '{shown(repository.revision)}'; "
            "expected a branch, a tag or a commit (40 digits) that its page lists"
        ) from error
    except errors.HFValidationError as error:
        raise CheckpointError(f"'{repository}' can't be a repository: {_line(error)}") from error
    except Exception as raised:
        error = _root(raised)
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403, 404):
            raise CheckpointError(_closed(repository, token, writing)) from raised
        if status is not None and status < 500:
            raise CheckpointError(f"the hub refuses '{repository}': {_line(error)}") from raised
        if isinstance(error, ValueError):  # a card whose head is wrong, an answer that is no JSON
            raise CheckpointError(f"'{repository}': {_line(error)}") from raised
        if isinstance(error, OSError) and error.errno is not None:  # a full disk, our own files
            raise CheckpointError(f"'{repository}': {refusal(error)}") from raised
        if isinstance(error, (OSError, RuntimeError)) or _package(error) in CLIENTS:
            raise _Unreachable(_line(error)) from raised
        raise


def _root(error: Exception) -> Exception:
    """What the library's own words, such as `Error while uploading`, stand for."""
    while type(error) is RuntimeError and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error


def _package(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]


def _closed(repository: Repository, token: str | None, writing: bool) -> str:
    """Why a repository may not open, as far as a server tells."""
    from huggingface_hub import get_token

    if token or get_token():
        known = "the token that is set does not open it: it needs the right to "
        known += "write there" if writing else "read it"
    else:
        known = f"there is no token here: {LOGIN}"
    if writing:
        return f"'{repository}' can't be written to; {known}"
    return (
        f"there is no repository '{repository}' on the hub, or it is private. Check its name; if "
        f"it is private, {known}"
    )


def _line(error: BaseException) -> str:
    """What an error says, in one line."""
    text = " ".join(str(error).split()).rstrip(".")
    return shown(f"{type(error).__name__}: {text}" if text else type(error).__name__)[:300]
