"""Small multiples over a rollout: errors, grid artifacts and physics by step, and errors by scale.

Panels have one size and common axes, one row or panel for each model. In each there is one line (or
bar) for each schedule, with its interval, or thin lines of single seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch as Swatch
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from overtone.evaluate.results import Estimate, Harmonics, Results, Run
from overtone.guard.names import shown
from overtone.report.runaway import counted, limit, mark_leaving, runs_off, sign_handle
from overtone.report.series import (
    UNKNOWN,
    Series,
    domain_of,
    dt_text,
    evenly_chosen,
    next_points,
    part_names,
    series,
    yardsticks,
)
from overtone.report.style import (
    WIDE,
    Look,
    NothingToDraw,
    Panel,
    add_legend,
    add_quietly,
    fit_scale,
    looks,
    new_figure,
    patch_name,
    schedule_handles,
    styled,
    text,
    yardstick_line,
)
from overtone.schedules import Patch

Curve = tuple[Estimate, ...]
"""A value at each step, counted from 1."""
VRMSE = "VRMSE\n(1 = predicting the mean)"
"""The label of an error."""
MAX_PATCHES = 3
"""Periods that are drawn."""
BACKGROUND: dict[str, Any] = {"color": "#c8c8c8", "linewidth": 0.9, "zorder": 1}
"""Other models' lines, for comparison."""
THIN: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.55, "zorder": 2}
"""Single seeds."""


def drawable(
    results: Results, pick: Callable[[Series], object], what: str
) -> dict[str, list[Series]]:
    """The series that have something to draw, by their model's name.

    Args:
        results: of the evaluation.
        pick: what is drawn of a series; empty if it has none.
        what: its name, for the error if no series has any.
    """
    found = [s for s in series(results) if pick(s)]
    if not found:
        raise NothingToDraw(f"no rollout has {what}")
    names = dict.fromkeys(s.model for s in found)
    return {name: [s for s in found if s.model == name] for name in names}


def count_steps(axes: Panel, results: Results) -> None:
    """Make the axis to the right one of rollout steps, which are whole numbers."""
    axes.set(xlabel=f"rollout step (dt = {dt_text(domain_of(results))})")
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))


def panels(count: int, *, height: float = 3.2) -> tuple[Figure, list[Panel]]:
    """A figure of `count` panels with common axes: one in the middle, else two in a row."""
    columns = min(2, count)
    rows = -(-count // columns)
    figure = new_figure(6.4 if columns == 1 else WIDE, height * rows + 0.9)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[count:]:
        axes.remove()
    # The panel above an empty place is the lowest of its column.
    for axes in grid.flat[:count]:
        axes.tick_params(labelbottom=True, labelleft=True)
    return figure, list(grid.flat[:count])


def grid_of_panels(
    rows: int, columns: int, *, height: float = 2.7, common: bool = True
) -> tuple[Figure, np.ndarray]:
    """A figure of rows and columns of panels, `(rows, columns)`.

    All have the same x axis, and the same y axis too if it is `common`; else each column its own.
    """
    width = {1: 6.4, 2: 8.2}.get(columns, max(WIDE, 3.1 * columns))
    figure = new_figure(width, height * rows + 1.0)
    share: Literal["all", "col"] = "all" if common else "col"
    grid = figure.subplots(rows, columns, sharex=True, sharey=share, squeeze=False)
    return figure, grid


def plot_steps(
    axes: Panel,
    average: Sequence[Estimate],
    seeds: Iterable[Sequence[Estimate]],
    look: Look,
    *,
    index: int = 0,
) -> None:
    """A line over rollout steps, with its seeds as thin lines, or its interval if it has one seed.

    Args:
        axes: where.
        average: at each step from 1 on; NaN leaves a gap.
        seeds: what it is the average of; not drawn if it is one.
        look: of the schedule.
        index: of the schedule, so that markers of different lines stand at different steps.
    """
    curves = [[e.value for e in curve] for curve in seeds]
    for curve in curves if len(curves) > 1 else ():
        axes.plot(range(1, len(curve) + 1), curve, color=look.colour, **THIN)
    steps, values = range(1, len(average) + 1), [e.value for e in average]
    axes.plot(steps, values, zorder=3, **look.curve(len(values), first=index))
    low, high = [e.low for e in average], [e.high for e in average]
    if len(curves) == 1 and np.isfinite(low).any() and np.not_equal(low, high).any():
        axes.fill_between(steps, low, high, color=look.colour, alpha=0.15, linewidth=0)


def mark_end(axes: Panel, values: Sequence[float], steps: int, colour: str) -> None:
    """A cross at the last finite value of a curve that has fewer than `steps` of them."""
    finite = [i for i, value in enumerate(values) if np.isfinite(value)]
    if finite and finite[-1] + 1 < steps:
        axes.plot(
            [finite[-1] + 1], [values[finite[-1]]], "x", color=colour,
            markersize=10, markeredgewidth=2.2, zorder=4, gid="blow-up",
        )  # fmt: skip


def reach(estimates: Sequence[Estimate]) -> np.ndarray:
    """How far the intervals reach below and above the values, `(2, n)`; 0 where unknown."""
    below = [e.value - e.low for e in estimates]
    above = [e.high - e.value for e in estimates]
    return np.nan_to_num(np.clip([below, above], 0, None), posinf=0.0)


def shown_patches(results: Results) -> list[Patch]:
    """Periods to draw, finest first; at most `MAX_PATCHES` of those that were followed."""
    patches = dict.fromkeys(patch for s in series(results) for patch in s.patches)
    return evenly_chosen(sorted(patches, key=_size), MAX_PATCHES)


@styled
def rollout_errors(results: Results) -> Figure:
    """VRMSE at each step with 95 % intervals.

    A panel has the lines of one model, and those of the other models in grey behind them, and thin
    ones of what needs no training. A cross marks where all trajectories had turned non-finite.
    """
    by_model = drawable(results, lambda s: s.curve, "errors by step")
    found, known = list(chain(*by_model.values())), looks(results)
    figure, grid = panels(len(by_model))
    for axes, (name, own) in zip(grid, by_model.items(), strict=True):
        for s in found:
            if s.model != name:
                axes.plot(range(1, len(s.curve) + 1), [e.value for e in s.curve], **BACKGROUND)
        for index, s in enumerate(own):
            look, seeds = known[s.schedule], [run.vrmse for run in s.runs]
            plot_steps(axes, s.curve, seeds, look, index=index)
            for seed in seeds:
                mark_end(axes, [e.value for e in seed], results.steps, look.colour)
        axes.set_title(text(name))
        axes.set(ylabel=VRMSE)
        count_steps(axes, results)
    fit_errors(grid, found)
    for axes in grid:
        draw_yardsticks(axes, results)
    handles = [*schedule_handles(labels(found), known), *yardstick_handles(results)]
    add_legend(figure, [*handles, *signs(grid)])
    return figure


def fit_errors(grid: Sequence[Panel], found: Sequence[Series]) -> None:
    """The common y axis of errors by step: what runs off does not move it; the mean is a line."""
    values, clipped = counted(found, lambda s: [e.value for e in s.curve])
    fit_scale(grid[0], "y", values)
    if clipped:
        limit(grid[0], values)
    if values and max(values) > 0.7:
        for axes in grid:
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")


def signs(grid: Iterable[Panel]) -> list[Line2D]:
    """Mark where lines over steps leave their panels; the legend's entry if any does."""
    marked = [
        mark_leaving(axes, line)
        for axes in grid
        for line in axes.get_lines()
        if line.get_color() != BACKGROUND["color"]
        and line.get_gid() != "blow-up"
        and line.get_transform() == axes.transData
    ]
    return [sign_handle()] if any(marked) else []


def draw_yardsticks(axes: Panel, results: Results) -> None:
    """Thin grey lines of what needs no training, which leave the axes as they are."""
    for s in yardsticks(results):
        steps, values = range(1, len(s.curve) + 1), [e.value for e in s.curve]
        add_quietly(axes, yardstick_line(s.model, steps, values))


def yardstick_handles(results: Results) -> list[Line2D]:
    """Their legend entries."""
    return [yardstick_line(s.model) for s in yardsticks(results)]


def labels(found: Iterable[Series]) -> dict[str, str]:
    """Schedules and what a legend calls them."""
    return {s.schedule: s.label for s in found}


@styled
def harmonic_growth(results: Results) -> Figure:
    """Excess in dB at each step: a column for each period, a row for each model."""
    columns = [
        _Column(f"period {patch_name(p)}", _of_period(p, lambda h: h.excess))
        for p in shown_patches(results)
    ]
    return _growth(results, columns, "harmonic excess (dB)")


@styled
def seam_growth(results: Results) -> Figure:
    """Seams in dB at each step: those of the grid in use, and of the worst grid of each period."""
    columns = [_Column("the step's grid", lambda part: part.seams)]
    columns += [
        _Column(f"worst grid of {patch_name(p)}", _of_period(p, lambda h: h.worst_seams))
        for p in shown_patches(results)
    ]
    return _growth(results, columns, "seams (dB)")


@styled
def physics_constraints(results: Results) -> Figure:
    """Deviation from each law: a column for each law, a row for each model."""
    by_model = drawable(
        results, lambda s: any(any(run.physics.values()) for run in s.runs), "physics constraints"
    )
    found, known = list(chain(*by_model.values())), looks(results)
    constraints = part_names(found, lambda run: run.physics)
    figure, grid = grid_of_panels(len(by_model), len(constraints), common=False)
    for row, (name, own) in zip(grid, by_model.items(), strict=True):
        for axes, constraint in zip(row, constraints, strict=True):
            for index, s in enumerate(own):
                seeds = [run.physics[constraint] for run in s.runs if constraint in run.physics]
                plot_steps(axes, s.physics(constraint), seeds, known[s.schedule], index=index)
            axes.set_title(text(f"{name}: {constraint}"))
    for axes, constraint in zip(grid[0], constraints, strict=True):
        own, clipped = counted(found, lambda s, law=constraint: [e.value for e in s.physics(law)])
        fit_scale(axes, "y", own)
        if clipped:
            limit(axes, own)
    for axes in grid[-1]:
        count_steps(axes, results)
    for axes in grid[:, 0]:
        axes.set(ylabel="deviation\n(0 = as the truth)")
    add_legend(figure, [*schedule_handles(labels(found), known), *signs(grid.flat)])
    return figure


@styled
def band_errors(results: Results) -> Figure:
    """A panel for each model, a group of bars for each band, a bar for each schedule."""
    by_model = drawable(results, lambda s: any(run.bsnmse for run in s.runs), "errors by band")
    found, known = list(chain(*by_model.values())), looks(results)
    bands = part_names(found, lambda run: run.bsnmse)
    figure, grid = panels(len(by_model))
    for axes, (name, own) in zip(grid, by_model.items(), strict=True):
        bars = {s.schedule: [_estimate(s, band) for band in bands] for s in own}
        _draw_bars(axes, name, bars, bands, known)
    sound = [s for s in found if not runs_off(s)] or found
    fit_scale(grid[0], "y", [_estimate(s, band).value for s in sound for band in bands])
    handles = _swatches(labels(found), known)
    if len(sound) < len(found):
        limit(grid[0], [e for s in sound for band in bands for e in _ends(_estimate(s, band))])
        marked = [_mark_bars(axes) for axes in grid]
        handles += [sign_handle()] if any(marked) else []
    add_legend(figure, handles)
    return figure


@styled
def next_step_bands(results: Results) -> Figure:
    """The same of one step from true frames: a bar for each patch (the paper's Figure 8)."""
    found = [point for point in next_points(results) if point.steps[0].bsnmse]
    if not found:
        raise NothingToDraw("no next step has errors by band")
    bands, known = list(found[0].steps[0].bsnmse), looks(results)
    names = list(dict.fromkeys(point.model for point in found))
    figure, grid = panels(len(names))
    for axes, name in zip(grid, names, strict=True):
        own = [point for point in found if point.model == name]
        bars = {patch_name(p.patch): [p.bsnmse(band) for band in bands] for p in own}
        _draw_bars(axes, name, bars, bands, known)
    fit_scale(grid[0], "y", [point.bsnmse(band).value for point in found for band in bands])
    named = {patch_name(point.patch): point.label for point in found}
    add_legend(figure, _swatches(named, known), "patch")
    return figure


@dataclass(frozen=True)
class _Column:
    """What a column of panels shows over the steps.

    Attributes:
        title: of its panels.
        pick: the curve of a run, or of the average over its seeds; empty if there is none.
    """

    title: str
    pick: Callable[[Run | Series], Curve]


def _of_period(patch: Patch, pick: Callable[[Harmonics], Curve]) -> Callable[[Run | Series], Curve]:
    """Picks a curve of the artifact of one period."""

    def of(part: Run | Series) -> Curve:
        if isinstance(part, Series):
            found = part.harmonics(patch)
        else:
            found = next((h for h in part.harmonics if h.patch == patch), None)
        return () if found is None else pick(found)

    return of


def _growth(results: Results, columns: Sequence[_Column], label: str) -> Figure:
    """A row for each model, a line for each schedule."""
    columns = [column for column in columns if any(map(column.pick, series(results)))]
    by_model = drawable(results, lambda s: any(column.pick(s) for column in columns), label)
    found, known = list(chain(*by_model.values())), looks(results)
    figure, grid = grid_of_panels(len(by_model), len(columns))
    for row, (name, own) in zip(grid, by_model.items(), strict=True):
        for axes, column in zip(row, columns, strict=True):
            for index, s in enumerate(s for s in own if column.pick(s)):
                seeds = [column.pick(run) for run in s.runs]
                plot_steps(axes, column.pick(s), seeds, known[s.schedule], index=index)
            axes.axhline(0.0, color="black", linewidth=0.8)
            axes.set_title(text(f"{name}, {column.title}"))
            axes.set(ylabel=label)
            count_steps(axes, results)
            axes.label_outer()
    parts = [counted(found, lambda s, c=c: [e.value for e in c.pick(s)]) for c in columns]
    if any(clipped for _, clipped in parts):
        limit(grid[0, 0], [0.0, *(value for values, _ in parts for value in values)])
    add_legend(figure, [*schedule_handles(labels(found), known), *signs(grid.flat)])
    return figure


def _draw_bars(
    axes: Panel,
    name: str,
    bars: Mapping[str, Sequence[Estimate]],
    bands: Sequence[str],
    known: dict[str, Look],
) -> None:
    """A panel of a model: for each schedule, or patch, its errors in all bands."""
    width = 0.8 / len(bars)
    for i, (schedule, estimates) in enumerate(bars.items()):
        values = np.array([e.value for e in estimates])
        places = np.arange(len(bands)) - 0.4 + (i + 0.5) * width
        axes.bar(places, values, 0.92 * width, gid=shown(schedule), **_fill(known[schedule]))
        axes.errorbar(
            places, values, yerr=reach(estimates), fmt="none", ecolor="black",
            elinewidth=1, capsize=2,
        )  # fmt: skip
    axes.set_title(text(name))
    axes.set_xticks(range(len(bands)), [text(band) for band in bands])
    axes.set(xlabel="band of scales", ylabel="BSNMSE\n(1 = predicting nothing there)")
    axes.grid(visible=False, axis="x")


def _swatches(named: Mapping[str, str], known: dict[str, Look]) -> list[Any]:
    """Legend entries of bars: schedules, and what the legend calls them."""
    return [Swatch(label=text(to), **_fill(known[name])) for name, to in named.items()]


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.low, estimate.value, estimate.high


def _mark_bars(axes: Panel) -> bool:
    """A triangle on every bar that is higher than its panel; whether there is one."""
    top = axes.get_ylim()[1]
    high = [bar for bar in axes.patches if isinstance(bar, Rectangle) and bar.get_height() > top]
    for bar in high:
        axes.plot(
            [bar.get_x() + bar.get_width() / 2], [1.0], marker="^", markersize=7, color="#444444",
            markeredgecolor="white", linestyle="", clip_on=False, zorder=6, gid="leaves",
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    return bool(high)


def _estimate(s: Series, band: str) -> Estimate:
    return s.pooled(lambda run: run.bsnmse.get(band, UNKNOWN))


def _fill(look: Look) -> dict[str, Any]:
    """A shifted schedule's bar is hollow, like its marker."""
    face = "white" if look.hollow else look.colour
    edge = look.colour if look.hollow else "white"
    return {"facecolor": face, "edgecolor": edge, "hatch": look.hatch}


def _size(patch: Patch) -> tuple[int, ...]:
    return (patch,) if isinstance(patch, int) else patch
