"""Files: complete or absent when written, known by their checksums, and where they are cached."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Protocol

BLOCK = 1 << 20


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary, hidden name in the same folder, renamed to `path` if all goes well.

    If anything is raised inside, also by the user's Ctrl-C, the temporary file is removed and an
    older file at `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.parent / f".{path.name}-{secrets.token_hex(4)}.tmp"
    try:
        yield scratch
        with scratch.open("rb") as written:
            os.fsync(written.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary, hidden folder beside `path`, renamed to it if all goes well.

    An older folder of that name goes away only when the new one is in place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    old = None
    try:
        yield scratch
        scratch.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
            os.replace(path, old)
        os.replace(scratch, path)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def cache_dir() -> Path:
    """`$OVERTONE_CACHE`, or `overtone` in the user's cache folder."""
    if "OVERTONE_CACHE" in os.environ:
        return Path(os.environ["OVERTONE_CACHE"])
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "overtone"


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
