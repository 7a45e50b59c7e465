"""The compute dial: error against tokens and against seconds.

The colour of a point is that of its schedule (or of its patch, as a constant schedule), its marker
that of its model. The schedule is also written beside the point; where there are many points, as
far as there is room, and the colours are in the legend. What ran off is a triangle at the upper
edge (see `runaway`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overtone.evaluate.results import Estimate, Results
from overtone.guard.names import shown
from overtone.report.figures.steps import VRMSE, reach
from overtone.report.labels import Spot, write_beside
from overtone.report.runaway import LOST, mark_level, sign_handle
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
    Panel,
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

CROWD = 8
"""Points beyond which not every name finds a place."""


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
    sound = [point for point in points if point.error.value <= LOST]
    sound = sound or [point for point in points if math.isfinite(point.error.value)]
    if not sound:
        raise NothingToDraw("no finite error to set against its price")
    models = list(dict.fromkeys(point.model for point in points))
    priced = {"tokens": [p for p in points if p.tokens is not None], "seconds": [*points]}
    priced = {name: own for name, own in priced.items() if own}
    figure = new_figure(WIDE if len(priced) > 1 else 6.4, 4.2)
    grid = figure.subplots(1, len(priced), sharey=True, squeeze=False)[0]
    for axes, (name, own) in zip(grid, priced.items(), strict=True):
        seen = [point for point in own if point in sound]
        if joined:
            _join(axes, seen, [getattr(point, name) for point in seen])
        for point in own:
            draw = _draw_point if point in sound else _draw_lost
            draw(axes, point, getattr(point, name), known, models)
        for yardstick, value in bare.items():
            add_quietly(axes, yardstick_line(yardstick, [0, 1], [value] * 2), level=True)
        fit_scale(axes, "x", [getattr(point, name) for point in own])
        axes.set(xlabel=f"{name} {price}" + (", measured" if name == "seconds" else ""))
        axes.margins(0.14, 0.12)
    grid[0].set(ylabel=error)
    fit_scale(grid[0], "y", [point.error.value for point in sound])
    crowded = len(points) > CROWD
    handles = [_handle(name, i) for i, name in enumerate(models)]
    handles += _colours(points, known) if crowded else []
    handles += map(yardstick_line, bare)
    signs = [mark_level(axes, value) for axes in grid for value in bare.values()]
    handles += [sign_handle()] if any(signs) or len(sound) < len(points) else []
    add_legend(figure, handles, title="model and schedule" if crowded else "model")
    figure.draw_without_rendering()  # places are known only now
    for axes, (name, own) in zip(grid, priced.items(), strict=True):
        write_beside(axes, [_spot(axes, p, name, known) for p in own], crowded=crowded)
    return figure


def _handle(model: str, index: int) -> Line2D:
    marker = MARKERS[index % len(MARKERS)]
    return Line2D([], [], marker=marker, linestyle="", color="#444444", label=text(model))


def _colours(points: Sequence[Point], known: dict[str, Look]) -> list[Line2D]:
    """Legend entries of schedules; models without patches share one."""
    names = {p.name: UNPATCHED if p.tokens is None else p.name for p in points}
    return [
        Line2D(
            [], [], marker="s", linestyle="", markersize=9, color=known[name].colour,
            markerfacecolor="white" if known[name].hollow else known[name].colour, label=text(said),
        )
        for name, said in names.items()
    ]  # fmt: skip


def _spot(axes: Panel, point: Point, price: str, known: dict[str, Look]) -> Spot:
    """Where a point is to be named; one that ran off, at the upper edge."""
    error, top = point.error, axes.get_ylim()[1]
    y = min(error.value, top) if math.isfinite(error.value) else top
    low, high = (value if math.isfinite(value) else y for value in (error.low, error.high))
    label = text(point.model if point.tokens is None else point.name, 24) + point.note
    colour = known[point.name].colour
    return Spot(getattr(point, price), y, label, min(low, top), min(high, top), colour)


def _draw_point(
    axes: Panel, point: Point, x: float, known: dict[str, Look], models: Sequence[str]
) -> None:
    look, model = known[point.name], models.index(point.model)
    axes.errorbar(
        [x], [point.error.value], yerr=reach([point.error]), color=look.colour, capsize=3,
        elinewidth=1.2, linestyle="", marker=MARKERS[model % len(MARKERS)], markersize=8,
        markerfacecolor="white" if look.hollow else look.colour,
        gid=shown(f"{point.model} {point.name}"),
    )  # fmt: skip
    if len(point.seeds) > 1:
        axes.plot([x] * len(point.seeds), point.seeds, "_", color=look.colour, markersize=7)


def _draw_lost(
    axes: Panel, point: Point, x: float, known: dict[str, Look], _: Sequence[str]
) -> None:
    """A triangle at the upper edge, which does not move it."""
    axes.plot(
        [x], [1.0], marker="^", markersize=9, color=known[point.name].colour, linestyle="",
        markeredgecolor="white", clip_on=False, zorder=6, transform=axes.get_xaxis_transform(),
        gid=shown(f"leaves {point.model} {point.name}"),
    )  # fmt: skip


def _join(axes: Panel, points: Sequence[Point], prices: Sequence[float]) -> None:
    """A grey line through the points of each model, from cheap to dear."""
    for model in dict.fromkeys(point.model for point in points):
        own = sorted(
            (x, p.error.value) for p, x in zip(points, prices, strict=True) if p.model == model
        )
        axes.plot(*zip(*own, strict=True), color="#bbbbbb", linewidth=1, zorder=1)
