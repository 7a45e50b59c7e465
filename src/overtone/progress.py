"""How far something is: who is told, and bars with the time that is left."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Tick = Callable[[int, int, str], None]
"""Called with what is done, what there is to do and what is going on."""


def bars(console: Console | None = None, *, transient: bool = False) -> Progress:
    """Bars with a title, a count and an ETA; use as a context manager.

    Args:
        console: where to print.
        transient: remove them at the end.
    """
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=transient)
