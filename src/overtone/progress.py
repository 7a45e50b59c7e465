"""What commands show: progress with the time that is left, texts as they are, tables that fit.

Names come from files and users. `Terminal` prints them instead of obeying them: nothing in a text
is markup, and escape sequences are shown as `shown` writes them. `Listing` is a table where there
is room for one and a list of names and values elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from overtone.guard.names import shown, shown_lines

Tick = Callable[[int, int, str], None]
"""Called with what is done, what there is to do, and what is going on."""
NARROW = 60
"""Columns of a terminal below which bars are left out: the words need the place."""
LEAST = 16
"""Columns that a text needs within a table, unless it is shorter."""
ASCII = str.maketrans({"–": "-", "−": "-", "…": "...", "²": "^2", "×": "x", "±": "+-"})
"""What we write ourselves, for terminals that know no more."""


class Terminal(Console):
    """A console on which every string is text: rich's markup, emoji names and colours are off."""

    def render_str(self, text: str, **options: Any) -> Text:
        """A text for all that rich prints: lines, cells, titles and captions."""
        options |= {"markup": False, "emoji": False, "highlight": False}
        return super().render_str(_visible(text, self.options), **options)


class Description(ProgressColumn):
    """What is going on, as text; rich's own column would read markup in it."""

    def render(self, task: Task) -> Text:
        """The title that a bar has now."""
        return Text(shown(task.description), overflow="fold")


def bars(console: Console | None = None, *, transient: bool = False) -> Progress:
    """Bars with a title, a count and an ETA; use as a context manager.

    Args:
        console: where to print.
        transient: remove them at the end.
    """
    console = console or Terminal()
    bar = (BarColumn(),) if console.width >= NARROW else ()
    columns = Description(), *bar, MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=transient)


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


@dataclass(frozen=True)
class Listing:
    """Rows for a terminal, to be printed by rich: a table, or a block for each row if it is narrow.

    Attributes:
        rows: one text for each column.
        header: names of the columns; none for rows of a name and a value.
        title, caption: above and below.
        texts: which columns are texts: they stand to the left and are broken where they are long.
            Others are numbers, which stay whole and may have several lines.
    """

    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()
    title: str = ""
    caption: str = ""
    texts: Collection[int] = (0, 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As wide as there is room for."""
        listing = replace(
            self,
            rows=[[self._cell(row[j], j, options) for j in range(len(row))] for row in self.rows],
            header=[_visible(name, options) for name in self.header],
            title=_visible(shown(self.title), options),
            caption=_visible(self.caption, options),
        )
        yield from listing._fitted(options.max_width)

    def _cell(self, cell: str, column: int, options: ConsoleOptions) -> str:
        """A name is one line, whatever is in it."""
        return _visible(shown(cell) if column in self.texts else cell, options)

    def _fitted(self, room: int) -> Iterator[Table | Text]:
        columns = [self._widths(j) for j in range(max(map(len, (self.header, *self.rows))))]
        least, whole = zip(*columns, strict=True)
        gaps = len(columns) - 1
        if sum(least) + gaps > room:
            return self._blocks()
        return iter([self._table(least, padding=1 if sum(whole) + 2 * gaps <= room else 0)])

    def _widths(self, column: int) -> tuple[int, int]:
        """The least and the whole width of a column."""
        cells = [row[column] for row in (self.header, *self.rows) if row]
        whole = max(cell_len(line) for cell in cells for line in cell.split("\n"))
        return (min(whole, LEAST) if column in self.texts else whole), whole

    def _table(self, least: Sequence[int], padding: int) -> Table:
        table = Table(
            title=Text(self.title, "bold") if self.title else None,
            caption=Text(self.caption) if self.caption else None,
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
            padding=(0, padding, 0, 0),
            pad_edge=False,
            show_edge=False,
            show_header=bool(self.header),
        )
        for j, width in enumerate(least):
            name = Text(self.header[j]) if self.header else ""
            if j in self.texts:
                table.add_column(name, min_width=width, overflow="fold")
            else:
                table.add_column(name, justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _blocks(self) -> Iterator[Text]:
        """A line for each value, with its name in front; empty ones are left out."""
        lines = [self.title] if self.title else []
        for row in self.rows:
            pairs = list(zip(self.header, row, strict=True)) if self.header else [row]
            lines += [""] if self.header else []
            lines += [" ".join(f"{k}: {v}".split("\n")) for k, v in pairs if v]
        lines += ["", self.caption] if self.caption else []
        return (Text(line, overflow="fold") for line in lines)


def _visible(text: str, options: ConsoleOptions) -> str:
    """A text whose every character can be printed where it is to be printed."""
    text = shown_lines(text)
    return text.translate(ASCII) if options.ascii_only else text
