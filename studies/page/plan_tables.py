"""Plans against the schedules whose tokens they were given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from overtone.evaluate.results import Estimate
from overtone.report.summary import interval
from studies.page.markdown import (
    Column,
    Pick,
    Row,
    all_steps,
    change,
    code,
    error_column,
    over_10,
    over_all,
    table,
    ten_steps,
)
from studies.page.sources import Options, Source, single

LONGEST = 40
"""Characters of a schedule that the table shows; the study's file has all of it."""


def plans(sources: Sequence[Source], options: Options) -> str:
    """Each plan, and the other rollouts that cost no more; `relative=SCHEDULE` adds changes."""
    rows = [row for source in sources for row in _rows(source)]
    other = single(options, "relative") if "relative" in options else ""
    columns = [
        Column[Row]("comparison", lambda row: row.source.name, left=True),
        Column[Row]("schedule", _name, left=True),
        Column[Row]("expected", _expected),
        error_column(f"VRMSE, {ten_steps(sources)}", over_10),
        *([Column[Row](f"against {code(other)}", _against(other, over_10))] if other else []),
        error_column(f"VRMSE, {all_steps(sources)}", over_all),
        *([Column[Row](f"against {code(other)}", _against(other, over_all))] if other else []),
        Column[Row]("tokens", lambda row: f"{row.series.tokens:,}"),
    ]
    return table(rows, columns, group=lambda row: row.source.name)


def _rows(source: Source) -> list[Row]:
    """The plan first, if there is one, then what else there is within its limits."""
    limit = math.inf if source.plan is None else source.plan["limits"]["tokens"]
    first = source.models()[0]  # whom the plan is for
    own = source.chosen({"models": (first,)})
    found = [Row(source, series) for series in own if series.tokens <= limit]
    return sorted(found, key=lambda row: not _is_plan(row))


def _is_plan(row: Row) -> bool:
    return row.source.plan is not None and row.series.schedule == row.source.plan["schedule"]


def _name(row: Row) -> str:
    own = row.series.schedule
    text = code(own if len(own) <= LONGEST else f"{own[: LONGEST - 1]}…")
    return f"plan: {text}" if _is_plan(row) else text


def _expected(row: Row) -> str:
    """What the plan expected on the validation split, over all steps."""
    if not _is_plan(row) or row.source.plan is None:
        return "–"
    return interval(Estimate(**row.source.plan["error"]))


def _against(schedule: str, pick: Pick) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        other = row.source.rollout(f"{row.series.model}:{schedule}")
        if other.schedule == row.series.schedule:
            return "0 %"
        return change(row.series.pooled(pick).value, other.pooled(pick).value)

    return show
