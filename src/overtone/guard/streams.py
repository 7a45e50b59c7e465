"""Standard output and standard error that stop no work: any text, on any terminal, heard or not.

Python raises where a terminal knows no 'é', where the reader of a pipe has gone (`| head`), where
the terminal was closed and where the disk behind a log is full. No training run is to end by that:
what can't be encoded is escaped, and what can't be written is lost, from the first failure on.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class Outlet(io.FileIO):
    """A stream whose first failure is its last: what comes later is swallowed.

    Attributes:
        failure: the first one, if there was any.
    """

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write what can be written; the number of bytes is always that of some progress."""
        while self.failure is None:
            try:
                written = super().write(data)
            except OSError as error:
                self.failure = error
                break
            if written is not None:
                return written
            select.select([], [self], [])  # it does not block, and others have filled it
        return memoryview(data).nbytes


@contextmanager
def lasting_streams() -> Iterator[Callable[[], str]]:
    """Let this process print through outlets.

    Streams that somebody put in the place of the system's, such as a test, are left alone. What
    is yielded says why output is missing that somebody waits for; empty if none is.
    """
    _occupy()
    before, outlets = (sys.stdout, sys.stderr), []
    if sys.stdout is not None and sys.stdout is sys.__stdout__:
        sys.stdout = _through(sys.stdout, outlets)
    if sys.stderr is not None and sys.stderr is sys.__stderr__:
        sys.stderr = _through(sys.stderr, outlets)

    def lost() -> str:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        failures = [outlet.failure for outlet in outlets if outlet.failure is not None]
        # Who closes a pipe has heard enough.
        missed = [str(error.strerror) for error in failures if error.errno != errno.EPIPE]
        return missed[0] if missed else ""

    try:
        yield lost
    finally:
        lost()
        sys.stdout, sys.stderr = before


def _through(stream: TextIO, outlets: list[Outlet]) -> TextIO:
    stream.flush()
    outlet = Outlet(stream.fileno(), "w", closefd=False)
    outlets.append(outlet)
    return io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream is sys.__stderr__ or outlet.isatty(),
    )


def _occupy() -> None:
    """Give the standard streams' numbers to something if they were closed (`2>&-`).

    Else the next file that is opened gets them, and with them what libraries print.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
