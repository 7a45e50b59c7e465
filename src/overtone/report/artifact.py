"""Where in the patch the error sits: the residual's mean square folded onto the patch cell.

Each map is drawn in dB relative to its own mean, on one scale for all: an artifact-free schedule is
a plain grey map, whatever the size of its error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overtone.report.growth import shown_patches
from overtone.report.series import Series, model_names, series, spread
from overtone.report.style import NothingToDraw, looks, new_figure, patch_name, styled, text
from overtone.results import Results
from overtone.schedules import Patch

MAX_SCHEDULES = 6
LABEL = "mean square residual\nrelative to the cell's mean (dB)"
LEAST_RANGE = 1.0
"""dB. Differences far below this are not worth a colour."""


@styled
def folded_maps(results: Results, model: str | None = None) -> Figure:
    """A row for each period, a column for each of at most six schedules of one model.

    One-dimensional cells are drawn as lines, three-dimensional ones averaged over the last axis.

    Args:
        results: of the evaluation.
        model: its name; the first one by default.
    """
    name = model if model is not None else model_names(results)[0]
    own = spread([s for s in series(results) if s.model == name and s.patches], MAX_SCHEDULES)
    patches = [p for p in shown_patches(results) if any(p in s.patches for s in own)]
    if not own:
        raise NothingToDraw(f"no rollout of '{name}' has harmonics")
    figure = new_figure(1.5 * len(own) + 2.2, 1.65 * len(patches) + 0.6)
    grid = figure.subplots(len(patches), len(own), squeeze=False)
    # Of all models, so that their maps can be compared.
    limit = _limit([_decibels(s, p) for s in series(results) for p in shown_patches(results)])
    for row, patch in zip(grid, patches, strict=True):
        for axes, s in zip(row, own, strict=True):
            _draw_cell(axes, s, patch, limit, results)
            if patch == patches[0]:
                axes.set_title(text(s.schedule, 16), fontsize=9)
            if patch != patches[-1]:
                axes.set_xlabel("")
            if s is own[0]:
                axes.set_ylabel(f"period {patch_name(patch)}\n{axes.get_ylabel()}")
            else:
                axes.set_ylabel("")
                axes.tick_params(labelleft=False)
    images = [image for axes in grid.flat for image in axes.images]
    if images:
        figure.colorbar(images[0], ax=grid, label=LABEL, shrink=0.9, aspect=14 * len(patches))
    return figure


def _decibels(s: Series, patch: Patch) -> np.ndarray:
    """A cell of one or two axes in dB relative to its mean; empty if there is none."""
    found = s.harmonics(patch)
    cell = np.asarray(found.cell if found else [], dtype=float)
    if cell.ndim == 3:
        cell = cell.mean(axis=-1)
    mean = cell.mean() if cell.size else np.nan
    if not np.isfinite(mean) or mean <= 0:
        return np.zeros_like(cell)
    return 10 * np.log10(np.maximum(cell / mean, 1e-6))


def _limit(cells: Sequence[np.ndarray]) -> float:
    return max([LEAST_RANGE, *(float(np.abs(cell).max()) for cell in cells if cell.size)])


def _draw_cell(axes: Axes, s: Series, patch: Patch, limit: float, results: Results) -> None:
    cell = _decibels(s, patch)
    axes.grid(visible=False)
    if not cell.size:
        axes.text(0.5, 0.5, "not followed", ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
    elif cell.ndim == 1:
        look = looks(results)[s.schedule].curve(len(cell))
        axes.plot(np.arange(len(cell)) + 0.5, cell, **look)
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set(ylim=(-1.1 * limit, 1.1 * limit), xlabel="x (cells)", ylabel="dB of the mean")
    else:
        extent = (0, cell.shape[0], 0, cell.shape[1])
        look = {"cmap": "PuOr_r", "vmin": -limit, "vmax": limit, "extent": extent}
        axes.imshow(cell.T, origin="lower", **look)
        axes.set(xlabel="x (cells)", ylabel="y (cells)")
