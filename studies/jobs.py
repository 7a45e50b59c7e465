"""Commands that run side by side, each in a process and with a log of its own.

Small models train fastest one to a core: two threads on one of them are far from twice as fast.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.progress import Progress

from overtone.errors import OvertoneError

POLL = 0.5
"""Seconds between two looks at the running processes."""
TAIL = 15
"""Lines of a log that are shown when its command failed."""


@dataclass(frozen=True)
class Job:
    """A command.

    Attributes:
        name: what to call it.
        arguments: of `overtone`.
        log: where its output goes.
        done: how far it is, 0 to 1.
    """

    name: str
    arguments: tuple[str, ...]
    log: Path
    done: Callable[[], float]


def run_jobs(jobs: Sequence[Job], *, workers: int, progress: Progress) -> None:
    """Run all; the first failure stops the others, which can be resumed.

    Args:
        jobs: in the order in which they start.
        workers: how many run at once.
        progress: gets a bar for each running job.
    """
    waiting, running = list(jobs), []
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(_Running(waiting.pop(0), progress))
            time.sleep(POLL)
            for one in [one for one in running if one.finished()]:
                running.remove(one)
    except BaseException:
        for one in running:
            one.stop()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A scheduler's notice is as good as Ctrl-C: nothing may be left running."""
    raise KeyboardInterrupt


class _Running:
    """A job's process and its bar."""

    def __init__(self, job: Job, progress: Progress):
        self.job, self.progress = job, progress
        job.log.parent.mkdir(parents=True, exist_ok=True)
        with job.log.open("w") as log:
            self.process = subprocess.Popen(  # noqa: S603 (our own command, no shell)
                [sys.executable, "-m", "overtone", *job.arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
            )
        self.task = progress.add_task(job.name, total=100)

    def finished(self) -> bool:
        """Whether it is over; raises an error if it failed."""
        code = self.process.poll()
        self.progress.update(self.task, completed=int(100 * self.job.done()))
        if code is None:
            return False
        self.progress.remove_task(self.task)
        if code != 0:
            last = self.job.log.read_text().splitlines()[-TAIL:]
            raise OvertoneError(
                f"{self.job.name} failed with exit code {code}; the end of '{self.job.log}':\n"
                + "\n".join(last)
            )
        return True

    def stop(self) -> None:
        """Ask it to save and end, as Ctrl-C does, and wait for that."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
