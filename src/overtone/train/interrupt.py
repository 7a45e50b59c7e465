"""Ctrl-C and the scheduler's notice: finish the update, save, stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Listens for SIGINT and SIGTERM while it is entered; the second one acts at once.

    Attributes:
        requested: whether this process was asked to stop.
        agreed: whether any rank was, which all know after an update.
    """

    def __init__(self) -> None:
        self.requested = False
        self.agreed = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():  # others can't have handlers
            self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def ignore_interrupts(worker: int) -> None:
    """For processes that read data: a terminal sends them Ctrl-C too, but the run decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
