"""Errors by scale: BSNMSE of the low, middle and high band as bars with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch as Swatch

from overtone.report.multiples import panels
from overtone.report.series import Series, model_names, series
from overtone.report.style import (
    Look,
    NothingToDraw,
    add_legend,
    fit_scale,
    looks,
    styled,
    text,
)
from overtone.results import Estimate, Results


@styled
def band_errors(results: Results) -> Figure:
    """A panel for each model, a group of bars for each band, a bar for each schedule."""
    found = [s for s in series(results) if any(run.bsnmse for run in s.runs)]
    if not found:
        raise NothingToDraw("no rollout has errors by band")
    bands = list(dict.fromkeys(band for s in found for run in s.runs for band in run.bsnmse))
    names = [name for name in model_names(results) if any(s.model == name for s in found)]
    known = looks(results)
    figure, grid = panels(len(names))
    for axes, name in zip(grid, names, strict=True):
        _draw_bars(axes, [s for s in found if s.model == name], bands, known)
        axes.set_title(text(name))
        axes.set_xticks(range(len(bands)), [text(band) for band in bands])
        axes.set(xlabel="band of scales", ylabel="BSNMSE\n(1 = predicting nothing there)")
        axes.grid(visible=False, axis="x")
    fit_scale(grid[0], "y", [_estimate(s, band).value for s in found for band in bands])
    schedules = dict.fromkeys(s.schedule for s in found)
    add_legend(figure, [Swatch(label=text(n), **_fill(known[n])) for n in schedules])
    return figure


def _draw_bars(
    axes: Axes, own: Sequence[Series], bands: Sequence[str], known: dict[str, Look]
) -> None:
    width = 0.8 / len(own)
    for i, s in enumerate(own):
        estimates = [_estimate(s, band) for band in bands]
        values = np.array([e.value for e in estimates])
        places = np.arange(len(bands)) - 0.4 + (i + 0.5) * width
        axes.bar(places, values, 0.92 * width, gid=s.schedule, **_fill(known[s.schedule]))
        axes.errorbar(
            places, values, yerr=reach(estimates), fmt="none", ecolor="black",
            elinewidth=1, capsize=2,
        )  # fmt: skip


def reach(estimates: Sequence[Estimate]) -> np.ndarray:
    """How far the intervals reach below and above the values, `(2, n)`; 0 where unknown."""
    below = [e.value - e.low for e in estimates]
    above = [e.high - e.value for e in estimates]
    return np.nan_to_num(np.clip([below, above], 0, None), posinf=0.0)


def _estimate(s: Series, band: str) -> Estimate:
    missing = Estimate(value=np.nan, low=np.nan, high=np.nan)
    return s.pooled(lambda run: run.bsnmse.get(band, missing))


def _fill(look: Look) -> dict:
    """A shifted schedule's bar is hollow, like its marker."""
    face = "white" if look.hollow else look.colour
    edge = look.colour if look.hollow else "white"
    return {"facecolor": face, "edgecolor": edge, "hatch": look.hatch}
