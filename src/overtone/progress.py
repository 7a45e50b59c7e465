"""Progress of long work: what it calls, and bars with the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Tick = Callable[[int, int, str], None]
"""Called with what is done, what there is to do, and what is going on."""


def bars(console: Console | None = None, *, transient: bool = False) -> Progress:
    """Bars with a title, a count and an ETA; use as a context manager.

    Args:
        console: where to print.
        transient: remove them at the end.
    """
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=transient)


@contextmanager
def one_bar(
    title: str, console: Console | None = None, *, transient: bool = False
) -> Iterator[Callable[..., None]]:
    """A single bar; what comes with it is a `Tick`, which may leave out what is going on.

    Args:
        title: shown until a tick says something else.
        console, transient: as for `bars`.
    """
    with bars(console, transient=transient) as progress:
        task = progress.add_task(title, total=None)

        def tick(done: int, total: int, what: str = title) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield tick
