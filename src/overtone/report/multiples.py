"""Small multiples: panels of one size with common axes, and lines over rollout steps in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overtone.report.style import WIDE, Look, new_figure
from overtone.results import Estimate

BACKGROUND = {"color": "#c8c8c8", "linewidth": 0.9, "zorder": 1}
"""Other models' lines, for comparison."""
THIN = {"linewidth": 0.7, "alpha": 0.55, "zorder": 2}
"""Single seeds."""


def panels(count: int, *, height: float = 3.2) -> tuple[Figure, list[Axes]]:
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
    axes: Axes,
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


def mark_end(axes: Axes, values: Sequence[float], steps: int, colour: str) -> None:
    """A cross at the last finite value of a curve that has fewer than `steps` of them."""
    finite = [i for i, value in enumerate(values) if np.isfinite(value)]
    if finite and finite[-1] + 1 < steps:
        axes.plot(
            [finite[-1] + 1], [values[finite[-1]]], "x", color=colour,
            markersize=10, markeredgewidth=2.2, zorder=4, gid="blow-up",
        )  # fmt: skip
