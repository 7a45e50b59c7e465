"""What a run says while it works: a live line on a terminal or in a notebook, else plain lines."""

from __future__ import annotations

import time
from importlib.util import find_spec
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from overtone.guard.names import shown, shown_lines
from overtone.progress import Listing

PLAIN_EVERY = 10.0
"""Seconds between two plain lines."""
WIDE = 120
"""Columns of a terminal below which the bar is left out: the numbers need the place."""


class TimeLeft(ProgressColumn):
    """How long it still takes, counted down between two estimates."""

    def render(self, task: Task) -> Text:
        """Nothing before the first estimate."""
        ends = task.fields["ends"]
        return Text("" if ends is None else f"ETA {duration(max(ends - time.monotonic(), 0))}")


class Display:
    """Progress of a run; silent on all ranks but the first.

    Args:
        console: where to print.
        quiet: print nothing.
    """

    def __init__(self, console: Console, *, quiet: bool):
        self.console, self.quiet = console, quiet
        self._last = time.monotonic()
        self._live: Progress | None = None
        if _is_live(console) and not quiet:
            wide = console.width >= WIDE
            self._live = Progress(
                *((TextColumn("training"), BarColumn()) if wide else ()),
                TextColumn("{task.fields[used]}", markup=False),
                TimeLeft(),
                TextColumn("{task.fields[text]}", markup=False, table_column=Column()),
                console=console,
            )
            self._task = self._live.add_task("training", total=1.0, used="", text="", ends=None)

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

    def show(self, done: float, used: str, text: str, *, left: float) -> None:
        """The state after an update.

        Args:
            done: share of the budget, 0 to 1.
            used: the same in words.
            text: loss, learning rate, patch and the like.
            left: seconds until the end.
        """
        now = time.monotonic()
        if self._live is not None:
            ends, said = now + left, shown(text)
            self._live.update(self._task, completed=done, used=used, text=said, ends=ends)
        elif now - self._last > PLAIN_EVERY or done >= 1:
            self._last = now
            self.say(f"{used} ETA {duration(left)} {text}")

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self.quiet:
            self.console.print(Text(shown_lines(text)), soft_wrap=True)

    def table(self, title: str, rows: list[tuple[str, str]]) -> None:
        """A small table of names and values."""
        if self.quiet:
            return
        self.console.print(Listing(rows, title=title))


def _is_live(console: Console) -> bool:
    """Whether a line can be written again: on a terminal, and in notebooks that have widgets."""
    if console.is_jupyter:  # without ipywidgets rich would warn and show nothing
        return find_spec("ipywidgets") is not None
    return console.is_terminal


def duration(seconds: float) -> str:
    """`1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
