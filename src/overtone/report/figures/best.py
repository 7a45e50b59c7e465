"""The error by step of each model's best schedule in one panel, with names at the lines' ends.

A line has the colour of its schedule and the marker of its model, as the points of the dial.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overtone.evaluate.results import Results
from overtone.report.figures.steps import (
    VRMSE,
    count_steps,
    draw_yardsticks,
    drawable,
    fit_errors,
    mark_end,
    plot_steps,
    signs,
    yardstick_handles,
)
from overtone.report.labels import End, write_ends
from overtone.report.runaway import leaving
from overtone.report.series import Series, model_names
from overtone.report.style import (
    MARKERS,
    WIDE,
    NothingToDraw,
    Panel,
    add_legend,
    looks,
    new_figure,
    styled,
    text,
)
from overtone.report.summary import best_of


@styled
def best_errors(results: Results) -> Figure:
    """VRMSE at each step of the best schedule of each model, with 95 % intervals.

    The best has the lowest error over all steps; where all of a model's blow up, the last to do so.
    """
    by_model = drawable(results, lambda s: s.curve, "errors by step")
    if len(by_model) < 2:
        raise NothingToDraw("there is one model; its schedules are compared elsewhere")
    chosen, known = [best_of(own) for own in by_model.values()], looks(results)
    all_models = model_names(results)
    figure = new_figure(WIDE, max(4.2, 0.19 * len(chosen) + 1.5))
    axes = cast("Panel", figure.subplots())
    for index, s in enumerate(chosen):
        marker = MARKERS[all_models.index(s.model) % len(MARKERS)]
        look = replace(known[s.schedule], marker=marker)
        plot_steps(axes, s.curve, [run.vrmse for run in s.runs], look, index=index)
        mark_end(axes, [e.value for e in s.curve], results.steps, look.colour)
    fit_errors([axes], chosen)
    draw_yardsticks(axes, results)
    axes.set(ylabel=VRMSE)
    count_steps(axes, results)
    axes.margins(x=0.02)
    handles = [*yardstick_handles(results), *signs([axes])]
    if handles:
        add_legend(figure, handles, title="")
    write_ends(axes, [_end(axes, s, known[s.schedule].colour) for s in chosen])
    return figure


def _end(axes: Axes, s: Series, colour: str) -> End:
    """A line's last value that is a number, or where it leaves the panel upwards; and its name."""
    values = [e.value for e in s.curve]
    name = f"{text(s.model, 22)}, {text(s.schedule, 18)}" if s.patched else text(s.model, 22)
    left = leaving(axes, range(1, len(values) + 1), values)
    if left is not None and left[1]:
        return End(left[0], math.inf, name, colour)
    last = max((i for i, value in enumerate(values) if math.isfinite(value)), default=0)
    return End(last + 1, values[last], name, colour)
