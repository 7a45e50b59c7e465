"""Grid artifacts of all rollouts at a glance: a row for each, a column for each period.

On the left the lines of a patch grid in the residual's spectrum, on the right seams between
patches, both in dB, each on a scale of its own that begins at 0, which is no artifact, and that a
rollout which ran off does not stretch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from overtone.evaluate.results import Results
from overtone.report.figures.steps import shown_patches
from overtone.report.runaway import runs_off
from overtone.report.series import Series, series
from overtone.report.style import (
    SIZE_COLOURS,
    WIDE,
    NothingToDraw,
    Panel,
    new_figure,
    patch_name,
    styled,
    text,
)
from overtone.report.summary import ALPHA
from overtone.schedules import Patch

LEAST_TOP = 3.0
"""dB at which a scale ends at least: a difference of a tenth is not worth a bright colour."""
SURE = "*"
"""What stands behind an excess that is significant."""
DARK = 0.45
"""Share of the scale below which a number is white."""


@styled
def artifact_map(results: Results) -> Figure:
    """Excess of each period, and seams at the last step: of the grid in use, of the worst ones."""
    found = [s for s in series(results) if s.patches or s.seams]
    if not found:
        raise NothingToDraw("no rollout was searched for grid artifacts")
    periods = shown_patches(results)
    excess = np.array([[_excess(s, p)[0] for p in periods] for s in found]).reshape(len(found), -1)
    sure = [[_excess(s, p)[1] for p in periods] for s in found]
    seams = np.array([[_last(s.seams), *(_worst(s, p) for p in periods)] for s in found])
    figure = new_figure(WIDE, 0.27 * len(found) + 1.7)
    grid = figure.subplots(1, 2, sharey=True, width_ratios=(len(periods) + 0.3, len(periods) + 1.3))
    names = [f"period {patch_name(p)}" for p in periods]
    tops = [_top(values, found) for values in (excess, seams)]
    label = "lines in the spectrum:\nharmonic excess (dB)"
    _draw(grid[0], excess, names, label, tops[0], sure)
    worst = ["the step's\ngrid", *(f"worst grid\nof {patch_name(p)}" for p in periods)]
    _draw(grid[1], seams, worst, "seams at the last step (dB)", tops[1])
    grid[0].set_yticks(range(len(found)), [_name(s) for s in found])
    for axes in grid:
        _separate(axes, found)
    return figure


def _top(values: np.ndarray, found: Sequence[Series]) -> float:
    """Where the scale of some cells `(rows, columns)` ends: at the largest of what did not run off.

    If all rows ran off, all count.
    """
    sound = values[[not runs_off(s) for s in found]]
    counted = sound if sound.size else values
    return max(LEAST_TOP, *counted[np.isfinite(counted)], 0.0)


def _excess(s: Series, patch: Patch) -> tuple[float, bool]:
    """A period's excess over all steps in dB, and whether it is significant."""
    found = s.harmonics(patch)
    return (math.nan, False) if found is None else (found.overall, found.p_value < ALPHA)


def _worst(s: Series, patch: Patch) -> float:
    found = s.harmonics(patch)
    return math.nan if found is None else _last(found.worst_seams)


def _last(curve: Sequence[Any]) -> float:
    return curve[-1].value if curve else math.nan


def _name(s: Series) -> str:
    return f"{text(s.model, 20)}  {text(s.label, 18)}"


def _draw(
    axes: Panel,
    values: np.ndarray,
    names: Sequence[str],
    label: str,
    top: float,
    sure: Sequence[Sequence[bool]] | None = None,
) -> None:
    """Cells `(rows, columns)` with their numbers; what was not measured is white with a dash."""
    axes.grid(visible=False)
    axes.tick_params(length=0, labelsize=8.5)
    axes.spines[:].set_visible(False)
    if not values.size:
        axes.axis("off")
        return
    beyond = "max" if np.nan_to_num(values).max() > top else "neither"
    image = axes.imshow(values, cmap=SIZE_COLOURS, vmin=0.0, vmax=top, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        known = math.isfinite(value)
        said = f"{value:.1f}" + (SURE if sure is not None and sure[i][j] else "") if known else "–"
        colour = "white" if known and value < DARK * top else "black"
        axes.text(j, i, said.replace("-", "−"), ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(names)), names)
    axes.xaxis.tick_top()
    figure: Any = axes.figure
    look: dict[str, Any] = {"shrink": 0.9, "aspect": 30, "pad": 0.02, "extend": beyond}
    figure.colorbar(image, ax=axes, location="bottom", label=label, **look)


def _separate(axes: Panel, found: Sequence[Series]) -> None:
    """White lines between models."""
    for i in range(1, len(found)):
        if found[i].model != found[i - 1].model:
            axes.axhline(i - 0.5, color="white", linewidth=3)
