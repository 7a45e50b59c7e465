"""Which data exactly: one number for the files of a split."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from overtone.data.location import Location

BLOCK = 1 << 20


def fingerprint(
    files: Sequence[Location], *, progress: Callable[[int, int], None] | None = None
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
