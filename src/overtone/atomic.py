"""Files that are complete or absent."""

from __future__ import annotations

import os
import secrets
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
