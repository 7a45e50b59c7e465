"""The patch grid in the residual: where in the patch the error sits, and its lines in the spectrum.

Folded maps show the residual's mean square folded onto the patch cell, each in dB relative to its
own mean, on one scale for all: an artifact-free schedule is a plain grey map, whatever the size of
its error.

Spectra of the residual stand beside the truth's, with the patch harmonics marked. A patch grid of p
cells leaves lines at the wavenumbers m/p, in cycles per cell. Wavenumbers of the results count
cells of the finest axis, so on an axis with cells r times as long they are m/(p r).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overtone.domain import per_axis
from overtone.evaluate.diagnosis import AXES
from overtone.evaluate.results import Results
from overtone.guard.names import shown
from overtone.report.figures.steps import drawable, grid_of_panels, labels, shown_patches
from overtone.report.runaway import mark_leaving, sign_handle, sound_steps
from overtone.report.series import Series, domain_of, evenly_chosen, model_names, series
from overtone.report.style import (
    DECIBEL_COLOURS,
    Look,
    NothingToDraw,
    Panel,
    add_legend,
    fit_scale,
    looks,
    new_figure,
    patch_name,
    schedule_handles,
    styled,
    text,
)
from overtone.schedules import Patch

MAX_SCHEDULES = 6
"""Columns of folded maps."""
MAX_STEPS = 3
"""Columns of spectra."""
TRUTH: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.4}
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
    own = [s for s in series(results) if s.model == name and s.patches]
    own = evenly_chosen(own, MAX_SCHEDULES)
    patches = [p for p in shown_patches(results) if any(p in s.patches for s in own)]
    if not any(_decibels(s, patch).size for s in own for patch in patches):
        raise NothingToDraw(f"no rollout of '{name}' has errors folded onto a patch")
    figure = new_figure(1.5 * len(own) + 2.2, 1.65 * len(patches) + 0.6)
    grid = figure.subplots(len(patches), len(own), squeeze=False)
    # Of all models, so that their maps can be compared.
    cells = [_decibels(s, p) for s in series(results) for p in shown_patches(results)]
    limit = max([LEAST_RANGE, *(float(np.abs(cell).max()) for cell in cells if cell.size)])
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


@styled
def residual_spectra(results: Results) -> Figure:
    """Power against wavenumber: a row for each model, a column for each of at most three steps."""
    by_model = drawable(results, lambda s: any(run.spectra for run in s.runs), "residual spectra")
    found, known = list(chain(*by_model.values())), looks(results)
    all_steps = sorted({spectrum.step for s in found for run in s.runs for spectrum in run.spectra})
    steps = evenly_chosen(all_steps, MAX_STEPS)
    spacing = domain_of(results).spacing
    figure, grid = grid_of_panels(len(by_model), len(steps), height=3.1)
    for row, (name, own) in zip(grid, by_model.items(), strict=True):
        marks = harmonic_wavenumbers([p for s in own for p in s.patches], spacing)
        for axes, step in zip(row, steps, strict=True):
            _draw_spectra(axes, own, step, known)
            mark_harmonics(axes, marks)
            axes.grid(visible=False, axis="x")  # the only upright lines are harmonics
            axes.set_title(text(f"{name}, step {step}"), pad=16)
            axes.set(xlabel="wavenumber (cycles per cell)", ylabel="power (truth's variance = 1)")
            axes.label_outer()
    _fit_axes(grid[0, 0], found, steps)
    handles = [*schedule_handles(labels(found), known), *mark_lost(grid)]
    add_legend(figure, [Line2D([], [], label="truth", **TRUTH), *handles])
    return figure


def harmonic_wavenumbers(
    patches: Iterable[Patch], spacing: Sequence[float]
) -> dict[float, str | None]:
    """Wavenumbers m/p up to the grid's largest, each with a label if it is a patch's first.

    Where cells are not cubes, the label names the axis, too.

    Args:
        patches: periods in cells.
        spacing: physical length of a cell along each axis.
    """
    marks: dict[float, str | None] = {}
    ratios = [round(length / min(spacing), 6) for length in spacing]
    for patch in patches:
        for axis, size in enumerate(per_axis(patch, len(spacing), "patch")):
            name = f"1/{size}" if max(ratios) == 1 else f"1/{size} {AXES[axis]}"
            for m in range(1, size // 2 + 1):
                k = round(m / (size * ratios[axis]), 9)
                marks[k] = name if m == 1 else marks.get(k)
    return dict(sorted(marks.items()))


def mark_harmonics(axes: Panel, marks: dict[float, str | None]) -> None:
    """Upright lines at the wavenumbers that `harmonic_wavenumbers` gives, with their names."""
    for k, label in marks.items():
        colour, width = ("#777777", 0.9) if label else ("#bbbbbb", 0.5)
        axes.axvline(k, color=colour, linewidth=width, zorder=0.5, gid="harmonic")
        if label:
            axes.text(
                k, 1.01, label, transform=axes.get_xaxis_transform(),
                ha="center", va="bottom", fontsize=8, color="#444444",
            )  # fmt: skip


def mark_lost(grid: np.ndarray) -> list[Line2D]:
    """Mark residuals that leave their panels upwards; the legend's entry if any does."""
    marked = [
        mark_leaving(axes, line)
        for axes in grid.flat
        for line in axes.get_lines()
        if str(line.get_gid()).startswith("residual")
        and np.max(line.get_ydata(), initial=-np.inf) > axes.get_ylim()[1]
    ]
    return [sign_handle()] if any(marked) else []


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


def _draw_cell(axes: Panel, s: Series, patch: Patch, limit: float, results: Results) -> None:
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
        axes.imshow(
            cell.T, origin="lower", cmap=DECIBEL_COLOURS, vmin=-limit, vmax=limit, extent=extent
        )
        axes.set(xlabel="x (cells)", ylabel="y (cells)")


def _draw_spectra(axes: Panel, own: Sequence[Series], step: int, known: dict[str, Look]) -> None:
    pairs = [(s, spectrum) for s in own if (spectrum := s.spectrum(step)) is not None]
    for index, (s, spectrum) in enumerate(pairs):
        k, power = np.array(spectrum.wavenumber), np.array(spectrum.power)
        keep = (k > 0) & (power > 0) & np.isfinite(power)
        look = known[s.schedule].curve(int(keep.sum()), first=index)
        axes.plot(k[keep], power[keep], gid=shown(f"residual {s.schedule}"), **look)
        low, high = (np.array(bound)[keep] for bound in (spectrum.low, spectrum.high))
        axes.fill_between(k[keep], low, high, color=look["color"], alpha=0.12, linewidth=0)
    if not pairs:
        axes.text(0.5, 0.5, "not finite", ha="center", va="center", transform=axes.transAxes)
    else:
        k, truth = (np.array(v) for v in (pairs[0][1].wavenumber, pairs[0][1].truth))
        keep = (k > 0) & (truth > 0)
        axes.plot(k[keep], truth[keep], gid="truth", **TRUTH)


def _fit_axes(axes: Panel, found: Sequence[Series], steps: Sequence[int]) -> None:
    """Log-log, down to the residuals: a truth may fall to rounding errors far below them.

    What ran off by then does not count, unless all of them did.
    """
    pairs = [(s, spectrum) for s in found for step in steps if (spectrum := s.spectrum(step))]
    sound = [spectrum for s, spectrum in pairs if spectrum.step <= sound_steps(s)]
    spectra = sound or [spectrum for _, spectrum in pairs]
    powers = [p for spectrum in spectra for p in spectrum.power if p > 0 and np.isfinite(p)]
    truths = [p for spectrum in spectra for p in spectrum.truth[1:]]
    axes.set(xscale="log", yscale="log")
    fit_scale(axes, "x", [k for spectrum in spectra for k in spectrum.wavenumber])
    if powers:
        axes.set_ylim(min(powers) / 3, 3 * max([*powers, *truths]))
