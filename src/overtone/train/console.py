"""What a run says while it works: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from overtone.guard.names import shown

PLAIN_EVERY = 10.0
"""Seconds between two plain lines."""


class Display:
    """Progress of a run; silent on all ranks but the first.

    Args:
        total: updates of the run, or parts in a hundred thousand of another budget.
        done: where it starts.
        console: where to print.
        quiet: print nothing.
    """

    def __init__(self, total: int, done: int, console: Console, *, quiet: bool):
        self.console, self.quiet, self.total = console, quiet, total
        self._last = time.monotonic()
        self._live: Progress | None = None
        if console.is_terminal and not quiet:
            self._live = Progress(
                TextColumn("training"),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TimeElapsedColumn(),
                TextColumn("ETA"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[text]}"),
                console=console,
                speed_estimate_period=120,  # updates at different patches take different times
            )
            self._task = self._live.add_task("training", total=total, completed=done, text="")

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, done: int, text: str, *, rate: float) -> None:
        """The state after an update.

        Args:
            done: of `total`.
            text: loss, learning rate, patch and the like.
            rate: of `done`, per second.
        """
        if self._live is not None:
            self._live.update(self._task, completed=done, text=text)
        elif time.monotonic() - self._last > PLAIN_EVERY or done >= self.total:
            self._last = time.monotonic()
            left = max(self.total - done, 0) / rate if rate else 0
            self.say(f"{done}/{self.total} {text} ETA {duration(left)}")

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self.quiet:
            self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    def table(self, title: str, rows: list[tuple[str, str]]) -> None:
        """A small table of names and values."""
        if self.quiet:
            return
        table = Table(title=escape(shown(title)), show_header=False, title_justify="left")
        for name, value in rows:
            table.add_row(name, escape(shown(value)))
        self.console.print(table)


def duration(seconds: float) -> str:
    """`1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
