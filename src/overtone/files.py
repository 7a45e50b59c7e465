"""Files: complete or absent when written, known by their checksums, and where they are cached."""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

BLOCK = 1 << 20
ABANDONED = 24 * 3600
"""Seconds after which an unfinished folder is no longer anybody's."""
LINUX = sys.platform == "linux"
SCRATCH = re.compile(r"\..+-([0-9a-f]{8}|replaced)\.tmp", re.DOTALL)
"""What `_scratch` and `_aside` make."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a file for which there is no room."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary, hidden name in the same folder, renamed to `path` if all goes well.

    If anything is raised inside, also by the user's Ctrl-C, the temporary file is removed and an
    older file at `path` stays as it was. Where the disk is full, the error names `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = _scratch(path)
    try:
        yield scratch
        _sync(scratch)
        scratch.replace(path)
    except OSError as error:
        own = error.filename in (str(scratch), scratch)
        if own or (error.filename is None and error.errno in FULL):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
    finally:
        scratch.unlink(missing_ok=True)


def remove_folder(scratch: Path, path: Path) -> None:
    """Remove what a folder was replaced by, or with: all of it.

    Args:
        scratch: the folder to remove.
        path: the one that took its place, or was to.
    """
    shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def replacing_files(
    folder: Path, places: Callable[[Sequence[str]], list[Path]] | None = None
) -> Iterator[Path]:
    """A temporary, hidden folder in `folder`, whose files move up into it if all goes well.

    Until all of them are complete and on the disk, older files of their names stay as they were.
    What else is in the folder stays in any case.

    Args:
        folder: made if it is not there.
        places: where files belong, by their names relative to the temporary folder; it may refuse
            them. Under the same names in `folder` if None.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder / "files")
    scratch = _scratch(folder / "files")
    scratch.mkdir()
    try:
        yield scratch
        files = sorted(path for path in scratch.rglob("*") if path.is_file())
        for path in files:
            _sync(path)
        names = [path.relative_to(scratch).as_posix() for path in files]
        targets = places(names) if places else [folder / name for name in names]
        for path, target in zip(files, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if made:
            with suppress(OSError):  # there is something in it
                folder.rmdir()


@contextmanager
def replacing_folder(
    path: Path, *, remove: Callable[[Path, Path], None] = remove_folder
) -> Iterator[Path]:
    """A temporary, hidden folder beside `path`, renamed to it if all goes well.

    An older folder of that name stays until the new one is complete and on the disk, and goes only
    when the new one is in its place, whatever fails or is killed in between; see `put_in_place`.

    A process that is killed can't tidy up: its hidden folder stays. The next call for the same
    `path` removes those that nobody has touched for a day, so they don't pile up, and a process
    that is still writing keeps its own.

    Args:
        path: the folder.
        remove: called with a folder that is no longer needed, and with `path`.
    """
    path = path.resolve()  # of a link, what it points to is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    restore_folder(path)
    remove_leftovers(path, remove=remove)
    scratch = _scratch(path)
    scratch.mkdir()
    try:
        yield scratch
        put_in_place(scratch, path, remove=remove)
    finally:
        if scratch.exists():
            remove(scratch, path)


def put_in_place(
    scratch: Path, path: Path, *, remove: Callable[[Path, Path], None] = remove_folder
) -> None:
    """Give a finished folder its name, after all of it is on the disk; an older one there goes.

    Linux exchanges the two names in one step, so that there is a complete folder at `path` at any
    moment. Where the system or the file system can't, the older one is first put aside under a
    hidden name. If the process is killed just then, `restore_folder` brings it back.

    Args:
        scratch: the folder, beside `path`.
        path: its name from now on.
        remove: called with the older one and `path`.
    """
    for entry in (*scratch.rglob("*"), scratch):
        _sync(entry)
    if not path.is_dir():
        scratch.rename(path)
    elif not _exchange(scratch, path):
        if _aside(path).exists():  # a killed process got no further than to put it there
            remove(_aside(path), path)
        _exchange_in_steps(scratch, path)
    _sync(path.parent)
    if scratch.exists():  # what had the name before
        remove(scratch, path)


def restore_folder(path: Path) -> None:
    """Bring back the folder `path` if a killed process had put it aside; else do nothing."""
    path = path.resolve()
    if _aside(path).is_dir() and not path.exists():
        _aside(path).rename(path)


def _exchange_in_steps(one: Path, other: Path) -> None:
    """Swap two names by way of a third, under which `restore_folder` finds the second again."""
    other.rename(_aside(other))
    try:
        one.rename(other)
    except BaseException:
        restore_folder(other)
        raise
    _aside(other).rename(one)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where that can't be done and nothing was."""
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if LINUX else None
    if swap is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <fcntl.h> and <stdio.h>
    if swap(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):  # an old kernel, or a network's disk
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def _scratch(path: Path) -> Path:
    return path.parent / f".{path.name}-{secrets.token_hex(4)}.tmp"


def _aside(path: Path) -> Path:
    """Where a folder is while another takes its name."""
    return path.parent / f".{path.name}-replaced.tmp"


def remove_leftovers(
    path: Path,
    *,
    remove: Callable[[Path, Path], None] = remove_folder,
    after: float = ABANDONED,
) -> None:
    """Remove what killed processes left of older folders, or files, and of unfinished ones.

    Args:
        path: what they were to become.
        remove: as for `replacing_folder`.
        after: seconds for which nobody may have touched an unfinished one.
    """
    if _aside(path).is_dir() and path.exists():
        remove(_aside(path), path)
    # Eight digits and no more: names that begin with this one have leftovers of their own.
    for scratch in path.parent.glob(f".{glob.escape(path.name)}-{'[0-9a-f]' * 8}.tmp"):
        with suppress(FileNotFoundError):  # somebody else was faster
            if time.time() - scratch.stat().st_mtime < after:
                continue
            if scratch.is_dir():
                remove(scratch, path)
            else:
                scratch.unlink()


def is_scratch(name: str) -> bool:
    """Whether a file or folder has one of the temporary names of this module."""
    return SCRATCH.fullmatch(name) is not None


def _sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cache_dir() -> Path:
    """`$OVERTONE_CACHE` if it is set and not empty, or `overtone` in the user's cache folder."""
    if given := os.environ.get("OVERTONE_CACHE"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "overtone"


def typed(path: str | Path) -> str:
    """A path as it can be typed where the program runs now; relative, so that it names no home."""
    return os.path.relpath(path)


def sha256(path: Path) -> str:
    """Checksum of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Readable(Protocol):
    """A file with a name, here or elsewhere."""

    @property
    def name(self) -> str:
        """The last part of its address."""
        ...

    def stream(self) -> AbstractContextManager[IO[bytes]]:
        """Open it for reading, from its beginning."""
        ...


def fingerprint(
    files: Sequence[Readable], *, progress: Callable[[int, int], None] | None = None
) -> str:
    """SHA-256 over names, sizes and contents of files; where they lie does not matter.

    Args:
        files: in any order.
        progress: called with the number of files done and of all files.
    """
    total = hashlib.sha256()
    for number, file in enumerate(sorted(files, key=lambda file: file.name), start=1):
        size, content = 0, hashlib.sha256()
        with file.stream() as stream:
            while block := stream.read(BLOCK):
                size += len(block)
                content.update(block)
        total.update(f"{file.name}\0{size}\0{content.hexdigest()}\0".encode())
        if progress:
            progress(number, len(files))
    return total.hexdigest()
