"""Rollout error against the step, one panel for each model, one line for each schedule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overtone.report.multiples import BACKGROUND, mark_end, panels, plot_steps
from overtone.report.series import Series, domain_of, model_names, series
from overtone.report.style import (
    Look,
    NothingToDraw,
    add_legend,
    fit_scale,
    looks,
    schedule_handles,
    styled,
    text,
)
from overtone.results import Results

VRMSE = "VRMSE\n(1 = predicting the mean)"


@styled
def rollout_errors(results: Results) -> Figure:
    """VRMSE at each step with 95 % intervals.

    A panel has the lines of one model, and those of the other models in grey behind them. A cross
    marks where all trajectories had turned non-finite.
    """
    found = [s for s in series(results) if s.curve]
    if not found:
        raise NothingToDraw("no rollout has errors by step")
    names = [name for name in model_names(results) if any(s.model == name for s in found)]
    known = looks(results)
    figure, grid = panels(len(names))
    for axes, name in zip(grid, names, strict=True):
        _draw_others(axes, [s for s in found if s.model != name])
        _draw_model(axes, [s for s in found if s.model == name], known, results.steps)
        axes.set_title(text(name))
        axes.set(xlabel=f"rollout step (dt = {domain_of(results).dt:g})", ylabel=VRMSE)
    values = [e.value for s in found for e in s.curve]
    fit_scale(grid[0], "y", values)
    if np.nanmax(values) > 0.7:
        for axes in grid:
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    add_legend(figure, schedule_handles([s.schedule for s in found], known))
    return figure


def _draw_others(axes: Axes, others: Sequence[Series]) -> None:
    for s in others:
        axes.plot(range(1, len(s.curve) + 1), [e.value for e in s.curve], **BACKGROUND)


def _draw_model(axes: Axes, own: Sequence[Series], known: dict[str, Look], steps: int) -> None:
    for index, s in enumerate(own):
        look, curve = known[s.schedule], s.curve
        seeds = [run.vrmse for run in s.runs]
        plot_steps(axes, curve, seeds, look, index=index)
        for seed in seeds:
            mark_end(axes, [e.value for e in seed], steps, look.colour)
