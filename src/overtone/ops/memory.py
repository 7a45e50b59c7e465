"""Giving freed memory back to the system.

glibc's malloc keeps freed blocks of up to 32 MB and often can't fit the next, other tensors into
the gaps, so that a process that frees much still grows. Where memory is what counts, it is asked
to hand all unused pages back; elsewhere (macOS, musl, Windows) nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


def release_freed(*_: Any) -> None:
    """Hand unused pages of the heap back; takes and ignores a gradient, so as to be a hook."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
