"""Files and folders that are complete or absent."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
