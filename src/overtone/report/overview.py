"""One picture of an evaluation: errors of all rollouts by step, beside what some of them end with.

Schedules have their usual looks for the model with the most of them; the lines of the other models
are black.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overtone.errors import OvertoneError
from overtone.report.errors import VRMSE
from overtone.report.panels import Key, fill_images, scene
from overtone.report.series import domain_of, model_names, series
from overtone.report.style import WIDE, NothingToDraw, fit_scale, looks, new_figure, styled, text
from overtone.results import Results
from overtone.samples import Samples

HEIGHT = 6.0
"""Inches."""
SHARES = (1.0, 1.5)
"""Of the width: errors and fields."""


@styled
def overview(
    results: Results, samples: Samples, keys: Sequence[Key], field: str | None = None
) -> Figure:
    """Draw errors and the last frame that was kept.

    Args:
        results: of an evaluation.
        samples: its frames, of two or three axes.
        keys: model and schedule of the predictions to show.
        field: its name; the first by default.
    """
    if samples.domain.ndim == 1:
        raise OvertoneError("the samples have one axis; an overview shows two. Use field_panels")
    figure = new_figure(WIDE, HEIGHT)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=SHARES)[0]
    _draw_errors(left.subplots(), results)
    _, residuals = fill_images(right, scene(samples, field, keys, samples.steps[-1:]), tall=False)
    for image, _ in residuals:
        image.axes.set_xlabel("x", fontsize=8)  # its unit is y's, and would be wider than a panel
    return figure


def _draw_errors(axes: Axes, results: Results) -> None:
    found, known, names = series(results), looks(results), model_names(results)
    if not any(s.curve for s in found):
        raise NothingToDraw("no rollout has errors by step")
    main = max(names, key=lambda name: sum(s.model == name for s in found))
    for index, s in enumerate(found):
        look = known[s.schedule] if s.model == main else replace(known[s.schedule], colour="black")
        label = f"{s.model}, {s.schedule}" if len(names) > 1 else s.schedule
        values = [e.value for e in s.curve]
        axes.plot(
            range(1, len(values) + 1),
            values,
            label=text(label),
            **look.curve(len(values), first=index),
        )
    fit_scale(axes, "y", [e.value for s in found for e in s.curve])
    axes.set(xlabel=f"rollout step (dt = {domain_of(results).dt:g})", ylabel=VRMSE)
    axes.set_title(f"Error, mean of {results.data.trajectories} trajectories")
    axes.legend(handlelength=3.2)  # long enough to show dashes
