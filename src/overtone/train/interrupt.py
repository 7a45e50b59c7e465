"""Ctrl-C, the scheduler's notice, a terminal that is closed: finish the update, save, stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 60
"""Seconds that a process which reads data has left after SIGTERM."""


class Interrupt:
    """Listens for SIGINT, SIGTERM and SIGHUP while it is entered; the second one acts at once.

    A hangup that is ignored, as under `nohup`, stays ignored.

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
            ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            heard = SIGNALS[:2] if ignored else SIGNALS
            self._before = {number: signal.signal(number, self._hear) for number in heard}
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
    """For processes that read data: terminals and schedulers notify them too, but the run decides.

    It needs them until it has finished the update. After SIGTERM they leave by themselves in the
    end, so that a run that has lost its way can still be rid of them.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(GRACE))
