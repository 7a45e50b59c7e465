"""A rollout as a row of a table, and the columns that several tables share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from overtone.evaluate.results import Estimate, ModelResult, Run
from overtone.report.series import Series
from overtone.report.summary import number
from studies.page.markdown import Column, change, code, estimates
from studies.page.sources import Options, Source, is_unpatched

Pick = Callable[[Run], Estimate]


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
        return is_unpatched(self.model, self.series.runs[0])

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
