"""The compute dial: error against tokens and against seconds.

The colour of a point is that of its schedule (or of its patch, as a constant schedule), its marker
that of its model. The schedule is also written beside the point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overtone.evaluate.results import Estimate, Results
from overtone.guard.names import shown
from overtone.report.figures.steps import VRMSE, reach
from overtone.report.series import (
    UNPATCHED,
    next_points,
    series,
    yardstick_points,
    yardsticks,
)
from overtone.report.style import (
    MARKERS,
    WIDE,
    Look,
    NothingToDraw,
    add_legend,
    add_quietly,
    fit_scale,
    looks,
    new_figure,
    patch_name,
    styled,
    text,
    yardstick_line,
)


@dataclass(frozen=True)
class Point:
    """One thing that can be bought: its error and its price.

    Attributes:
        model, name: the model and the schedule, or patch.
        note: to be written behind the name.
        error: VRMSE.
        seeds: the values that it is the mean of.
        tokens, seconds: the price; a model without patches has no tokens.
    """

    model: str
    name: str
    error: Estimate
    seeds: tuple[float, ...]
    tokens: float | None
    seconds: float
    note: str = ""


@styled
def next_step_dial(results: Results) -> Figure:
    """Next-step error of each model and patch against tokens and seconds of one prediction."""
    points = [
        Point(
            p.model, patch_name(p.patch), p.vrmse, tuple(s.vrmse.value for s in p.steps),
            p.tokens if p.patched else None, p.seconds,
        )
        for p in next_points(results)
    ]  # fmt: skip
    bare = {p.model: p.vrmse.value for p in yardstick_points(results)}
    price, error = "of one prediction", f"next-step {VRMSE}"
    return _draw(points, looks(results), price, error, bare, joined=True)


@styled
def rollout_dial(results: Results) -> Figure:
    """Mean rollout error of each model and schedule against tokens and seconds of all steps."""
    points = [
        Point(
            s.model, s.schedule, s.vrmse_all, tuple(run.vrmse_all.value for run in s.runs),
            s.tokens if s.patched else None, s.seconds,
            "" if s.blow_up is None else " (blew up)",
        )
        for s in series(results)
    ]  # fmt: skip
    bare = {s.model: s.vrmse_all.value for s in yardsticks(results)}
    price, error = f"of {results.steps} rollout steps", f"mean rollout {VRMSE}"
    return _draw(points, looks(results), price, error, bare, joined=False)


def _draw(
    points: Sequence[Point],
    known: dict[str, Look],
    price: str,
    error: str,
    bare: Mapping[str, float],
    *,
    joined: bool,
) -> Figure:
    """Points against tokens, if any has some, and seconds; `bare` errors cost nothing."""
    points = [point for point in points if math.isfinite(point.error.value)]
    if not points:
        raise NothingToDraw("no finite error to set against its price")
    models = list(dict.fromkeys(point.model for point in points))
    priced = {"tokens": [p for p in points if p.tokens is not None], "seconds": points}
    priced = {name: own for name, own in priced.items() if own}
    figure = new_figure(WIDE if len(priced) > 1 else 6.4, 4.2)
    grid = figure.subplots(1, len(priced), sharey=True, squeeze=False)[0]
    for axes, (name, own) in zip(grid, priced.items(), strict=True):
        prices = [getattr(point, name) for point in own]
        if joined:
            _join(axes, own, prices)
        for point, x in zip(own, prices, strict=True):
            _draw_point(axes, point, x, known[point.name], models.index(point.model))
        for yardstick, value in bare.items():
            add_quietly(axes, yardstick_line(yardstick, [0, 1], [value] * 2), level=True)
        fit_scale(axes, "x", prices)
        axes.set(xlabel=f"{name} {price}" + (", measured" if name == "seconds" else ""))
        axes.margins(0.14, 0.12)
    grid[0].set(ylabel=error)
    fit_scale(grid[0], "y", [point.error.value for point in points])
    markers = [MARKERS[i % len(MARKERS)] for i in range(len(models))]
    handles = [
        Line2D([], [], marker=m, linestyle="", color="#444444", label=text(name))
        for m, name in zip(markers, models, strict=True)
    ]
    handles += map(yardstick_line, bare)
    add_legend(figure, handles, title="model")
    figure.draw_without_rendering()  # places are known only now
    for axes, (name, own) in zip(grid, priced.items(), strict=True):
        _write_names(axes, own, [getattr(point, name) for point in own])
    return figure


def _draw_point(axes: Axes, point: Point, x: float, look: Look, model: int) -> None:
    axes.errorbar(
        [x], [point.error.value], yerr=reach([point.error]), color=look.colour, capsize=3,
        elinewidth=1.2, linestyle="", marker=MARKERS[model % len(MARKERS)], markersize=8,
        markerfacecolor="white" if look.hollow else look.colour,
        gid=shown(f"{point.model} {point.name}"),
    )  # fmt: skip
    if len(point.seeds) > 1:
        axes.plot([x] * len(point.seeds), point.seeds, "_", color=look.colour, markersize=7)


def _join(axes: Axes, points: Sequence[Point], prices: Sequence[float]) -> None:
    """A grey line through the points of each model, from cheap to dear."""
    for model in dict.fromkeys(point.model for point in points):
        own = sorted(
            (x, p.error.value) for p, x in zip(points, prices, strict=True) if p.model == model
        )
        axes.plot(*zip(*own, strict=True), color="#bbbbbb", linewidth=1, zorder=1)


Box = tuple[float, float, float, float]
"""Left, bottom, right and top in pixels."""

PLACES = ((9, 0), (-9, 0), (9, 11), (-9, 11), (9, -11), (-9, -11), (9, 22), (-9, -22))
"""Where a name may stand beside its point, in points; the first that is free is taken."""


def _write_names(axes: Axes, points: Sequence[Point], prices: Sequence[float]) -> None:
    """Names beside the points, where they cover neither points nor other names."""
    to_pixels = axes.figure.dpi / 72
    places = [
        axes.transData.transform((x, p.error.value)) for p, x in zip(points, prices, strict=True)
    ]
    taken: list[Box] = [_box(x, y, 10 * to_pixels, 10 * to_pixels, 0.5) for x, y in places]
    limits = axes.get_window_extent()
    for point, (x, y) in zip(points, places, strict=True):
        label = text(UNPATCHED if point.tokens is None else point.name, 24) + point.note
        size = 5.2 * len(label) * to_pixels, 9 * to_pixels
        boxes = {
            (dx, dy): _box(x + dx * to_pixels, y + dy * to_pixels, *size, 0.0 if dx > 0 else 1.0)
            for dx, dy in PLACES
        }
        costs = {
            place: sum(_overlap(box, other) for other in taken)
            + 1e3 * (box[0] < limits.x0 or box[2] > limits.x1)
            for place, box in boxes.items()
        }
        best = min(PLACES, key=lambda place: costs[place])
        taken.append(boxes[best])
        axes.annotate(
            label, (prices[points.index(point)], point.error.value), best,
            textcoords="offset points", fontsize=8, va="center",
            ha="left" if best[0] > 0 else "right",
        )  # fmt: skip


def _box(x: float, y: float, width: float, height: float, anchor: float) -> Box:
    """A box whose left side is `anchor` of its width left of x."""
    left = x - anchor * width
    return left, y - height / 2, left + width, y + height / 2


def _overlap(a: Box, b: Box) -> float:
    """Area that two boxes share, in square pixels."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)
