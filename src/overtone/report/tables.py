"""The report's tables as rows of text, and the rollouts as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from overtone.evaluate.results import Estimate, Harmonics, Results, Run
from overtone.progress import Listing
from overtone.report.series import (
    UNPATCHED,
    Series,
    next_points,
    part_names,
    pool,
    series,
    yardstick_points,
    yardsticks,
)
from overtone.report.style import patch_name, short
from overtone.report.summary import interval, number
from overtone.schedules import Constant

BARE = "to beat"
"""What stands before a yardstick's name, which has a column of its own that way: 80 are few."""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: what it is.
        header: names of the columns, with units.
        rows: one text for each column.
        best: (row, column) of cells to stress.
        num_names: how many columns, from the left, are names rather than numbers.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    num_names: int = 2


def tables(results: Results) -> list[Table]:
    """All tables that have rows."""
    made = [
        next_step_table(results),
        rollout_table(results),
        field_table(results),
        band_table(results),
        artifact_table(results),
    ]
    return [table for table in made if table.rows]


def next_step_table(results: Results) -> Table:
    """Errors and prices of one step, for each model and patch, and of what needs no training."""
    points, bare = next_points(results), yardstick_points(results)
    rows = [
        (
            p.model, patch_name(p.patch) if p.patched else UNPATCHED, interval(p.vrmse),
            f"{p.tokens:,}" if p.patched else "–",
            short(float(f"{p.steps[0].flops:.3g}")), number(p.seconds),
        )
        for p in points
    ]  # fmt: skip
    rows += [(p.model, UNPATCHED, interval(p.vrmse), *("–",) * 3) for p in bare]
    return Table(
        "Next step from true frames",
        ("model", "patch", "VRMSE", "tokens", "FLOPs", "seconds"),
        tuple(rows),
        lowest({2: [p.vrmse.value for p in (*points, *bare)]}),
    )


def rollout_table(results: Results) -> Table:
    """Errors and prices of rollouts, for each model and schedule, and of what needs no training."""
    found, bare = series(results), yardsticks(results)
    rows = [
        (
            s.model, s.label, interval(s.vrmse_10), interval(s.vrmse_all),
            f"{s.tokens:,}" if s.patched else "–",
            short(float(f"{s.runs[0].flops:.3g}")), number(s.seconds),
            "no" if s.blow_up is None else f"step {s.blow_up}",
        )
        for s in found
    ]  # fmt: skip
    rows += [
        (s.model, s.label, interval(s.vrmse_10), interval(s.vrmse_all), *("–",) * 4) for s in bare
    ]
    every = [*found, *bare]
    best = lowest(
        {2: [_sound(s, s.vrmse_10) for s in every], 3: [_sound(s, s.vrmse_all) for s in every]}
    )
    header = ("model", "schedule", f"VRMSE, first {min(10, results.steps)} steps",
              f"VRMSE, all {results.steps} steps", "tokens", "FLOPs", "seconds",
              "blow-up")  # fmt: skip
    return Table("Rollouts", header, tuple(rows), best)


def field_table(results: Results) -> Table:
    """VRMSE over all steps, for each model, schedule and field."""
    return _part_table(
        results, lambda run: run.fields, f"VRMSE of each field, over all {results.steps} steps"
    )


def band_table(results: Results) -> Table:
    """BSNMSE, for each model, schedule and band."""
    return _part_table(results, lambda run: run.bsnmse, "BSNMSE by band of scales")


def artifact_table(results: Results) -> Table:
    """Harmonic excess, for each model, schedule and period."""
    seen = [(s, h) for s in series(results) for patch in s.patches if (h := s.harmonics(patch))]
    rows = [
        (
            s.model, s.label, patch_name(h.patch), number(h.overall), _probability(h.p_value),
            number(100 * h.share), number(h.exponent),
            interval(h.worst_seams[-1]) if h.worst_seams else "–",
        )
        for s, h in seen
    ]  # fmt: skip
    header = ("model", "schedule", "period", "excess (dB)", "p-value",
              "share (%)", "growth exponent", "worst seams (dB)")  # fmt: skip
    return Table("Grid artifacts", header, tuple(rows))


def results_table(results: Results) -> Listing:
    """One row for each schedule of each model, and for what needs no training."""
    data = results.data
    header = ["model", "schedule", "next\nstep", "VRMSE\n10", "VRMSE\nall", "exc.\ndB",
              "seam\ndB", "worst\ndB", "tokens", "s"]  # fmt: skip
    lost = any(run.blow_up for model in results.models for run in model.runs)
    names = [model.name for model in results.models]
    rows = []
    for model in results.models:
        seed = f" (seed {model.seed})" if names.count(model.name) > 1 else ""
        first = {str(Constant(s.patch)): f"{s.vrmse.value:.4f}" for s in model.next_step}
        for run in model.runs:
            row = (
                model.name + seed,
                run.schedule if model.patched else "",
                first.get(run.schedule, ""),
                _with_interval(run.vrmse_10),
                _with_interval(run.vrmse_all),
                *_artifact(run),
                f"{run.tokens}" if model.patched else "",
                _seconds(run.seconds),
                *([f"step {run.blow_up}" if run.blow_up else ""] if lost else []),
            )
            rows.append(row)
    next_step = {p.model: f"{p.vrmse.value:.4f}" for p in yardstick_points(results)}
    rows += [
        (BARE, s.model, next_step[s.model], _with_interval(s.vrmse_10), _with_interval(s.vrmse_all),
         *("",) * (len(header) - 5 + lost))
        for s in yardsticks(results)
    ]  # fmt: skip
    return Listing(
        rows,
        [*header, "blow-up"] if lost else header,
        f"{data.name}, {data.split}: {data.trajectories} trajectories, {results.steps} steps",
        "VRMSE: mean over trajectories, and its 95 % bootstrap interval" + _period(results),
    )


def _part_table(
    results: Results, pick: Callable[[Run], Mapping[str, Estimate]], title: str
) -> Table:
    """A column for each name in a part of the runs."""
    found = [*series(results), *yardsticks(results)]
    found = [s for s in found if any(pick(run) for run in s.runs)]
    names = part_names(found, pick)
    rows, values = [], {name: [] for name in names}
    for s in found:
        seeds = {name: [pick(run)[name] for run in s.runs if name in pick(run)] for name in names}
        cells = [interval(pool(seeds[name])) if seeds[name] else "–" for name in names]
        rows.append((s.model, s.label, *cells))
        for name in names:
            values[name].append(_sound(s, pool(seeds[name])) if seeds[name] else math.nan)
    best = lowest({j: values[name] for j, name in enumerate(names, start=2)})
    return Table(title, ("model", "schedule", *names), tuple(rows), best)


def lowest(columns: Mapping[int, Sequence[float]]) -> frozenset[tuple[int, int]]:
    """Cells (row, column) with the lowest finite value of their column, several if they are equal.

    A column in which fewer than two values are finite has none.

    Args:
        columns: number of a column -> its values, one for each row.
    """
    cells = set()
    for column, values in columns.items():
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) > 1:
            cells |= {(i, column) for i, value in enumerate(values) if value == min(finite)}
    return frozenset(cells)


def _sound(s: Series, error: Estimate) -> float:
    """An error that may be ranked; NaN of a rollout that blew up."""
    return error.value if s.blow_up is None else math.nan


def _probability(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else number(value)


def _with_interval(estimate: Estimate) -> str:
    """The value, and its interval on a line of its own, which keeps the table narrow."""
    return f"{estimate.value:.4f}\n{estimate.low:.2g}–{estimate.high:.2g}"


def _seconds(value: float) -> str:
    """Four characters from hundredths of a second to hours."""
    if value < 0.01:
        return f"{value:.0e}"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def _artifact(run: Run) -> tuple[str, str, str]:
    """Harmonic excess of the coarsest patch; at the last step its own seams, and the worst."""
    own = f"{run.seams[-1].value:.1f}" if run.seams else ""
    if not run.harmonics:
        return "", own, ""
    found = _coarsest(run)
    worst = f"{found.worst_seams[-1].value:.1f}" if found.worst_seams else ""
    return f"{found.overall:.1f}", own, worst


def _period(results: Results) -> str:
    """Which patch the artifact is of, the same for all runs; empty if there is none."""
    for run in (run for model in results.models for run in model.runs if run.harmonics):
        patch = Constant(_coarsest(run).patch)
        return (
            f"\nexc.: excess at harmonics of {patch} cells. At the last step, seams: at borders of "
            f"its own patches; worst: of all grids of {patch} cells"
        )
    return ""


def _coarsest(run: Run) -> Harmonics:
    return max(run.harmonics, key=lambda h: h.patch if isinstance(h.patch, int) else max(h.patch))
