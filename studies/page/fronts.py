"""Rivals in one picture: error against minutes of training, and against seconds of a step.

A row for each length of rollout. The first column shows the best schedule of each model at each
budget, if there are several; the others every schedule of every model at one budget, with the
front: what no other model or schedule beats in both error and time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from overtone.evaluate.results import Estimate
from overtone.report.series import Series, series
from overtone.report.style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    VERMILION,
    add_legend,
    fit_scale,
    new_figure,
    styled,
)
from studies.page.sources import Source

FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "flexible": (BLUE, "o", ("csm", "ckm")),
    "one patch": ("#56B4E9", "s", ("fixed4", "fixed8", "fixed16")),
    "flexible, attending": (GREY, "D", ("csm, attending", "ckm, attending")),
    "AFNO": (COLOURS[0], "^", ("afno fixed8", "afno ckm")),
    "neural operators": (VERMILION, "v", ("fno", "tfno", "ffno")),
    "convolutions": (GREEN, "P", ("unet", "cnext_unet", "sinenet")),
}
"""Name -> colour, marker and models."""
UNTRAINED = "persistence"
NAMES = 7.5
"""Size of the names of points."""
LETTER, HEIGHT = 6.0, 11.0
"""About how many pixels a letter of a name takes."""
PLACES = ((6, 4), (-6, 4), (6, -8), (-6, -8), (6, 15), (-6, 15), (6, -19), (-6, -19))
"""Pixels from a point to where its name may stand, the best first."""
WORST = 4.0
"""Points beyond so many times the best error are left out: nobody would choose them."""


@dataclass(frozen=True)
class Point:
    """A model under a schedule.

    Attributes:
        model: its name.
        minutes: of its training.
        seconds: of a step.
        error: over the steps of the row.
    """

    model: str
    minutes: float
    seconds: float
    error: float


def budget(source: Source) -> float:
    """Minutes that every model of a comparison was trained for, from its name."""
    return float(source.name.rpartition("-")[2])


@styled
def fronts(sources: Sequence[Source]) -> Figure:
    """The picture of one system.

    Args:
        sources: comparisons of the same models, a budget each, the smallest first.
    """
    steps = sources[0].results.steps
    rows: list[tuple[str, Callable[[Series], Estimate]]] = [
        ("10 steps", lambda s: s.vrmse_10),
        (f"{steps} steps", lambda s: s.vrmse_all),
    ]
    by_minutes, present = len(sources) > 1, set[str]()
    columns = len(sources) + by_minutes
    beside = columns == 1  # the two rows have room beside each other
    figure = new_figure(4.8 * max(columns, 2), 3.9 if beside else 6.8)
    shape = (1, 2) if beside else (2, columns)
    grid = figure.subplots(*shape, squeeze=False, sharey=False if beside else "row")
    grid = grid.reshape(2, columns)
    for panels, (length, pick) in zip(grid, rows, strict=True):
        points = {budget(source): [*_points(source, pick)] for source in sources}
        shown = list(chain(*points.values()))
        present |= {p.model for p in shown}
        limit = WORST * min(p.error for p in shown)
        if by_minutes:
            _draw_minutes(panels[0], [p for p in shown if p.error < limit])
        for panel, (minutes, own) in zip(panels[by_minutes:], points.items(), strict=True):
            _draw_front(panel, [p for p in own if p.error < limit])
            panel.set(title=f"{minutes:g} CPU-minutes of training", xlabel="CPU-seconds a step")
        panels[0].set(ylabel=f"VRMSE, {length}")
        fit_scale(panels[0], "y", [p.error for p in shown if p.error < limit])
        for panel, own in zip(panels[by_minutes:], points.values(), strict=True):
            _write_names(panel, best([p for p in own if p.error < limit]))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=name)
        for name, (colour, marker, members) in FAMILIES.items()
        if present & {*members}
    ]
    add_legend(figure, [*handles, Line2D([], [], color="black", label="front")], title="")
    return figure


def _points(source: Source, pick: Callable[[Series], Estimate]) -> Iterator[Point]:
    for s in series(source.results):
        error = pick(s).value
        if s.model != UNTRAINED and math.isfinite(error):
            yield Point(s.model, budget(source), s.seconds / source.results.steps, error)


def best(points: Sequence[Point]) -> list[Point]:
    """The point of lowest error of each model and budget."""
    found: dict[tuple[str, float], Point] = {}
    for point in sorted(points, key=lambda p: p.error):
        found.setdefault((point.model, point.minutes), point)
    return list(found.values())


def front(points: Sequence[Point]) -> list[Point]:
    """Points that no other beats in both error and time, the fastest first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.seconds, p.error)):
        if not kept or point.error < kept[-1].error:
            kept.append(point)
    return kept


def _family(model: str) -> tuple[str, str]:
    for colour, marker, members in FAMILIES.values():
        if model in members:
            return colour, marker
    return "black", "x"


def _draw_front(panel: Axes, points: Sequence[Point]) -> None:
    edge = front(points)
    panel.plot([p.seconds for p in edge], [p.error for p in edge], color="black", linewidth=1,
               drawstyle="steps-post", gid="front", zorder=1)  # fmt: skip
    for point in points:
        colour, marker = _family(point.model)
        panel.plot(point.seconds, point.error, marker, color=colour, alpha=0.45, gid="point")
    for point in best(points):
        colour, marker = _family(point.model)
        panel.plot(point.seconds, point.error, marker, color=colour, gid="best")
    fit_scale(panel, "x", [p.seconds for p in points])


def _write_names(panel: Axes, points: Sequence[Point]) -> None:
    """Names beside their points, each at the first place that no other name covers."""
    taken: list[_Name] = []
    for point in sorted(points, key=lambda p: p.error):
        x, y = panel.transData.transform((point.seconds, point.error))
        made = [_Name(x, y, dx, dy, LETTER * len(point.model)) for dx, dy in PLACES]
        free = [name for name in made if not any(map(name.covers, taken))]
        chosen = (free or made)[0]
        taken.append(chosen)
        panel.annotate(
            point.model, (point.seconds, point.error), xytext=(chosen.dx, chosen.dy),
            fontsize=NAMES, textcoords="offset pixels", color=_family(point.model)[0], va="center",
            ha="right" if chosen.dx < 0 else "left",
        )  # fmt: skip


@dataclass(frozen=True)
class _Name:
    """A name of some length beside a point, in pixels."""

    x: float
    y: float
    dx: float
    dy: float
    length: float

    @property
    def left(self) -> float:
        return self.x + self.dx - (self.length if self.dx < 0 else 0.0)

    def covers(self, other: _Name) -> bool:
        apart = abs(self.y + self.dy - other.y - other.dy) > HEIGHT
        beside = self.left + self.length < other.left or other.left + other.length < self.left
        return not (apart or beside)


def _draw_minutes(panel: Axes, points: Sequence[Point]) -> None:
    chosen = best(points)
    for model in dict.fromkeys(p.model for p in chosen):
        own = sorted((p for p in chosen if p.model == model), key=lambda p: p.minutes)
        colour, marker = _family(model)
        panel.plot([p.minutes for p in own], [p.error for p in own], marker=marker, color=colour,
                   gid=model)  # fmt: skip
        panel.annotate(model, (own[-1].minutes, own[-1].error), xytext=(5, -2), fontsize=7.5,
                       textcoords="offset points", color=colour)  # fmt: skip
    budgets = sorted({p.minutes for p in points})
    panel.set(xscale="log", xlabel="CPU-minutes of training", title="best schedule of each model")
    panel.set_xlim(budgets[0] / 1.3, budgets[-1] * 2.2)  # room for names
    panel.xaxis.set_major_locator(FixedLocator(budgets))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticklabels([f"{minutes:g}" for minutes in budgets])
