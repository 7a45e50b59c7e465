"""Tables and numbers as Markdown, and rollouts as rows of such tables.

One seed's number has its 95 % interval over trajectories in square brackets, several seeds' mean
has the lowest and the highest seed in round ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from overtone.evaluate.results import Estimate, ModelResult, Run
from overtone.guard.names import shown
from overtone.report.series import Series, mean
from overtone.report.summary import interval, number
from studies.page.sources import Options, Source

R = TypeVar("R")
Pick = Callable[[Run], Estimate]
"""A number of a rollout."""


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
    """A schedule or a command, word for word, whatever backticks it has."""
    text = shown(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def literal(text: str) -> str:
    """A text with names in it: nothing in it begins a tag or a link."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", shown(text)).replace("](", r"]\(")


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
    return "| " + " | ".join(literal(cell).replace("|", r"\|") for cell in cells) + " |"


@dataclass(frozen=True)
class Row:
    """A rollout of a comparison.

    Attributes:
        source: the comparison.
        series: the model under a schedule, with all seeds.
    """

    source: Source
    series: Series

    @property
    def model(self) -> ModelResult:
        """The model, of its first seed."""
        return self.source.seeds(self.series.model)[0]

    @property
    def unpatched(self) -> bool:
        """Whether schedule and tokens say nothing."""
        return not self.model.patched

    @property
    def schedule(self) -> str:
        """As code, or a dash."""
        return "–" if self.unpatched else code(self.series.schedule)

    def show(self, pick: Pick) -> str:
        """A number of all seeds."""
        return estimates([pick(run) for run in self.series.runs])

    def error(self, pick: Pick) -> float:
        """A number's mean over seeds; infinite for what blew up, which is never the best."""
        return math.inf if self.series.blow_up is not None else self.series.pooled(pick).value

    @property
    def seconds_per_step(self) -> float:
        """Measured, of one sample."""
        return self.series.seconds / self.source.results.steps


def rollout_rows(sources: Sequence[Source], options: Options) -> list[Row]:
    """The rollouts that are asked for."""
    return [Row(source, s) for source in sources for s in source.chosen(options)]


def over_10(run: Run) -> Estimate:
    """VRMSE over the first ten steps."""
    return run.vrmse_10


def over_all(run: Run) -> Estimate:
    """VRMSE over all steps."""
    return run.vrmse_all


def name_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """Comparison, where there are several; model; schedule."""
    named = [
        Column[Row]("model", lambda row: row.series.model, left=True),
        Column[Row]("schedule", lambda row: row.schedule, left=True),
    ]
    if len({row.source.name for row in rows}) > 1:
        named.insert(0, Column[Row]("comparison", lambda row: row.source.name, left=True))
    return named


def error_column(header: str, pick: Pick) -> Column[Row]:
    """A number that should be low."""
    return Column(header, lambda row: row.show(pick), lambda row: row.error(pick))


def change_column(header: str, pick: Pick, operand: str) -> Column[Row]:
    """A number against that of another rollout of the same comparison, in per cent."""

    def show(row: Row) -> str:
        other = row.source.rollout(operand)
        if (other.model, other.schedule) == (row.series.model, row.series.schedule):
            return "0 %"
        return change(row.series.pooled(pick).value, other.pooled(pick).value)

    return Column(header, show)


def price_columns() -> list[Column[Row]]:
    """Tokens of the rollout, and seconds of a step."""
    return [
        Column("tokens", lambda row: "–" if row.unpatched else f"{row.series.tokens:,}"),
        Column("s/step", lambda row: number(row.seconds_per_step)),
    ]


def blow_up_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """Where rollouts turned non-finite; no column if none did."""
    if all(row.series.blow_up is None for row in rows):
        return []

    def show(row: Row) -> str:
        return "no" if row.series.blow_up is None else f"step {row.series.blow_up}"

    return [Column("blow-up", show)]


def all_steps(sources: Sequence[Source]) -> str:
    """`all 40 steps`, or `all steps` if the comparisons differ."""
    lengths = {source.results.steps for source in sources}
    return f"all {lengths.pop()} steps" if len(lengths) == 1 else "all steps"


def ten_steps(sources: Sequence[Source]) -> str:
    """`10 steps`, or fewer if there are fewer."""
    return f"{min(10, *(source.results.steps for source in sources))} steps"
