"""Tables and numbers as Markdown.

One seed's number has its 95 % interval over trajectories in square brackets, several seeds' mean
has the lowest and the highest seed in round ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from overtone.evaluate.results import Estimate
from overtone.report.series import mean
from overtone.report.summary import interval, number

R = TypeVar("R")


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column of a table.

    Attributes:
        header: its name, with a unit.
        show: a row's text in it.
        error: a row's error, the lowest of which is bold; None if nothing is to be bold.
        left: whether it holds names rather than numbers.
    """

    header: str
    show: Callable[[R], str]
    error: Callable[[R], float] | None = None
    left: bool = False


def table(
    rows: Sequence[R],
    columns: Sequence[Column[R]],
    group: Callable[[R], Hashable] = lambda row: None,
) -> str:
    """A Markdown table; the lowest error of each column is bold, in each group of rows."""
    texts = [[column.show(row) for column in columns] for row in rows]
    for j, column in enumerate(columns):
        if column.error is not None:
            errors = [column.error(row) for row in rows]
            for i in lowest(errors, [group(row) for row in rows]):
                texts[i][j] = bold(texts[i][j])
    header = [column.header for column in columns]
    rule = ["---" if column.left else "---:" for column in columns]
    return "\n".join(_line(cells) for cells in (header, rule, *texts))


def lowest(errors: Sequence[float], groups: Sequence[Hashable]) -> set[int]:
    """Places of the lowest finite error of each group that has at least two errors."""
    found = set()
    for group in dict.fromkeys(groups):
        own = {
            i: error
            for i, error in enumerate(errors)
            if groups[i] == group and math.isfinite(error)
        }
        if len(own) > 1:
            found |= {i for i, error in own.items() if error == min(own.values())}
    return found


def bold(text: str) -> str:
    """The number of a text, without what is in brackets behind it, in bold."""
    head, space, rest = text.partition(" ")
    return f"**{head}**{space}{rest}"


def code(text: str) -> str:
    """A schedule or a command, word for word."""
    return f"`{text}`"


def estimates(values: Sequence[Estimate]) -> str:
    """A number of one seed with its interval, or of several seeds with their range."""
    if not values:
        return "–"
    if len(values) == 1:
        return interval(values[0])
    numbers = [value.value for value in values]
    average = number(mean(numbers))
    if average == "–":
        return average
    return f"{average} ({number(min(numbers))} to {number(max(numbers))})"


def change(new: float, old: float) -> str:
    """How far a number is above or below another, in per cent of that one."""
    return percent(100 * (new / old - 1), signed=True) if old else "–"


def percent(value: float, *, signed: bool = False) -> str:
    """Whole per cents, or tenths below ten."""
    if not math.isfinite(value):
        return "–"
    digits = 0 if abs(value) >= 9.95 else 1
    text = f"{abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return f"{text} %"
    sign = "−" if value < 0 else "+" if signed else ""
    return f"{sign}{text} %"


def probability(value: float) -> str:
    """A p-value."""
    if not math.isfinite(value):
        return "p –"
    return "p < 0.0001" if value < 1e-4 else f"p = {number(value)}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
