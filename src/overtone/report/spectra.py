"""Residual spectra with the patch harmonics marked, beside the truth's spectrum.

A patch grid of p cells leaves lines at the wavenumbers m/p, in cycles per cell. Wavenumbers of the
results count cells of the finest axis, so on an axis with cells r times as long they are m/(p r).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overtone.diagnosis import AXES
from overtone.domain import per_axis
from overtone.report.multiples import grid_of_panels
from overtone.report.series import Series, domain_of, model_names, series, spread
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
from overtone.schedules import Patch

MAX_STEPS = 3
TRUTH = {"color": "black", "linestyle": ":", "linewidth": 1.4}


@styled
def residual_spectra(results: Results) -> Figure:
    """Power against wavenumber: a row for each model, a column for each of at most three steps."""
    found = [s for s in series(results) if any(run.spectra for run in s.runs)]
    if not found:
        raise NothingToDraw("no rollout has residual spectra")
    names = [name for name in model_names(results) if any(s.model == name for s in found)]
    all_steps = sorted({spectrum.step for s in found for run in s.runs for spectrum in run.spectra})
    steps, known = spread(all_steps, MAX_STEPS), looks(results)
    spacing = domain_of(results).spacing
    figure, grid = grid_of_panels(len(names), len(steps), height=3.1)
    for row, name in zip(grid, names, strict=True):
        own = [s for s in found if s.model == name]
        marks = harmonic_wavenumbers([p for s in own for p in s.patches], spacing)
        for axes, step in zip(row, steps, strict=True):
            _draw_spectra(axes, own, step, known)
            _mark_harmonics(axes, marks)
            axes.grid(visible=False, axis="x")  # the only upright lines are harmonics
            axes.set_title(text(f"{name}, step {step}"), pad=16)
            axes.set(xlabel="wavenumber (cycles per cell)", ylabel="power (truth's variance = 1)")
            axes.label_outer()
    _fit_axes(grid[0, 0], found, steps)
    handles = schedule_handles([s.schedule for s in found], known)
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


def _draw_spectra(axes: Axes, own: Sequence[Series], step: int, known: dict[str, Look]) -> None:
    pairs = [(s, spectrum) for s in own if (spectrum := s.spectrum(step)) is not None]
    for index, (s, spectrum) in enumerate(pairs):
        k, power = np.array(spectrum.wavenumber), np.array(spectrum.power)
        keep = (k > 0) & (power > 0) & np.isfinite(power)
        look = known[s.schedule].curve(int(keep.sum()), first=index)
        axes.plot(k[keep], power[keep], gid=f"residual {s.schedule}", **look)
        low, high = (np.array(bound)[keep] for bound in (spectrum.low, spectrum.high))
        axes.fill_between(k[keep], low, high, color=look["color"], alpha=0.12, linewidth=0)
    if not pairs:
        axes.text(0.5, 0.5, "not finite", ha="center", va="center", transform=axes.transAxes)
    else:
        k, truth = (np.array(v) for v in (pairs[0][1].wavenumber, pairs[0][1].truth))
        keep = (k > 0) & (truth > 0)
        axes.plot(k[keep], truth[keep], gid="truth", **TRUTH)


def _fit_axes(axes: Axes, found: Sequence[Series], steps: Sequence[int]) -> None:
    """Log-log, down to the residuals: a truth may fall to rounding errors far below them."""
    spectra = [spectrum for s in found for step in steps if (spectrum := s.spectrum(step))]
    powers = [p for spectrum in spectra for p in spectrum.power if p > 0 and np.isfinite(p)]
    truths = [p for spectrum in spectra for p in spectrum.truth[1:]]
    axes.set(xscale="log", yscale="log")
    fit_scale(axes, "x", [k for spectrum in spectra for k in spectrum.wavenumber])
    if powers:
        axes.set_ylim(min(powers) / 3, 3 * max([*powers, *truths]))


def _mark_harmonics(axes: Axes, marks: dict[float, str | None]) -> None:
    for k, label in marks.items():
        colour, width = ("#777777", 0.9) if label else ("#bbbbbb", 0.5)
        axes.axvline(k, color=colour, linewidth=width, zorder=0.5, gid="harmonic")
        if label:
            axes.text(
                k, 1.01, label, transform=axes.get_xaxis_transform(),
                ha="center", va="bottom", fontsize=8, color="#444444",
            )  # fmt: skip
