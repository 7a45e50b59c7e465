"""A diagnosis as a picture: the residual, its spectrum, its patch cell and its growth."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from overtone.errors import DataError
from overtone.evaluate.diagnose import Case
from overtone.evaluate.diagnosis import AXES, Artifact, Diagnosis
from overtone.evaluate.results import KIND
from overtone.guard.folders import claim
from overtone.guard.names import drawn
from overtone.metrics.spectrum import envelope
from overtone.report.style import (
    BLUE,
    GREEN,
    SIGNED_COLOURS,
    SIZE_COLOURS,
    VERMILION,
    new_figure,
    save_as,
    text,
)

# Dashes tell the axes apart in greyscale.
COLOURS = (BLUE, VERMILION, GREEN)
DASHES = ("-", "--", ":")
LATTICE = "#777777"
GROWING = {
    "lines": "grid artifact",
    "energy": "worst minus best cell",
    "seams": "squared jumps at seams, less others",
}
"""What the growth of each kind of artifact is that of."""
ACROSS = 64
"""Cells of the residual that a grid of lines may be drawn over, in patches."""


def draw(case: Case, folder: str | Path) -> tuple[Path, Path]:
    """Write `diagnosis.png` and `diagnosis.svg` into a folder; others' files are left alone."""
    own = claim(folder, KIND, error=DataError)
    own.require_free("diagnosis.png", "diagnosis.svg")
    figure = diagnosis_figure(case)
    paths = own.file("diagnosis.png"), own.file("diagnosis.svg")
    for path in paths:
        save_as(figure, path, dpi=120)
    return paths


def diagnosis_figure(case: Case) -> Figure:
    """Residual and spectrum above, patch cell and growth below, the finding as the title."""
    diagnosis = case.diagnosis
    figure = new_figure(11, 8.2)
    panels = figure.subplots(2, 2)
    _draw_residual(figure, panels[0, 0], case)
    _draw_spectrum(panels[0, 1], diagnosis)
    _draw_cell(figure, panels[1, 0], diagnosis.artifact)
    _draw_growth(panels[1, 1], diagnosis)
    figure.suptitle("\n".join(textwrap.wrap(drawn(diagnosis.sentence), 105)), fontsize=11)
    return figure


def _draw_residual(figure: Figure, axes: Any, case: Case) -> None:
    """The last frame's residual, or its size where signs are random; of 3D the middle slice."""
    artifact, values = case.diagnosis.artifact, case.residual
    label, signed = "(predicted − true) / std of the truth", True
    title = f"Residual of {text(case.field)}, step {case.step}"
    if artifact is not None and artifact.statistic == "energy":
        values = envelope(values, case.diagnosis.periodic).sqrt()
        label, signed = "size of the residual, all scales equally loud", False
    values = values.numpy()
    if values.ndim == 1:
        axes.plot(np.arange(len(values)), values, color=COLOURS[0], linewidth=0.8)
        axes.set(xlabel="x (cells)", ylabel=label, title=title)
        return
    if values.ndim == 3:
        title += f", slice z = {values.shape[2] // 2}"
        values = values[..., values.shape[2] // 2]
    # A few extreme cells would make the rest pale.
    limit = float(np.quantile(np.abs(values), 0.995)) or 1.0
    look = {"vmin": -limit} if signed else {"vmin": 0}
    look |= {"cmap": SIGNED_COLOURS if signed else SIZE_COLOURS}
    image = axes.imshow(values.T, origin="lower", interpolation="nearest", vmax=limit, **look)
    axes.set(xlabel="x (cells)", ylabel="y (cells)", title=title)
    extend = "both" if signed else "max"
    figure.colorbar(image, ax=axes, label=label, extend=extend, shrink=_shrink(values.shape))
    if artifact is not None:
        _mark_patches(axes, values.shape, artifact.period)


def _mark_patches(axes: Any, shape: tuple[int, ...], period: tuple[int, ...]) -> None:
    """Ticks at the edges of patches, where they are few enough."""
    for mark, n, size in zip((axes.set_xticks, axes.set_yticks), shape, period, strict=False):
        if size > 1 and n // size <= ACROSS:
            mark(np.arange(0, n, size) - 0.5, minor=True)
    axes.tick_params(which="minor", length=3, color=LATTICE, top=True, right=True)


def _draw_spectrum(axes: Any, diagnosis: Diagnosis) -> None:
    artifact = diagnosis.artifact
    sign = artifact.statistic if artifact is not None else "lines"
    energy = sign == "energy"
    lowest, highest = math.inf, 0.0
    for part, colour, dash in zip(diagnosis.spectrum, COLOURS, DASHES, strict=False):
        k, power = np.array(part.wavenumber[1:]), np.array(part.power[1:])
        axes.plot(k, power, color=colour, linestyle=dash, linewidth=1.1, label=f"along {part.axis}")
        positive = power[power > 0]
        if len(positive):
            highest = max(highest, positive.max())
            lowest = min(lowest, positive.min())
    if highest > 0:
        axes.set_ylim(max(lowest / 2, highest * 1e-12), highest * 4)
    axes.set(xscale="log", yscale="log", xlabel="wavenumber (cycles per cell)")
    what = {"energy": "residual's energy", "seams": "squared jumps"}.get(sign, "residual")
    axes.set(ylabel=f"power of the {what} (truth's variance = 1)")
    axes.set_title(f"Spectrum of the {what}, last step")
    if energy:
        axes.set_ylabel(f"power of the {what} (whitened)")
    if artifact is not None:
        _mark_lattice(axes, artifact)
    _plain_ticks(axes)
    axes.legend(loc="lower left", fontsize=8)


def _mark_lattice(axes: Any, artifact: Artifact) -> None:
    periods = sorted({size for size in artifact.period if size > 1})
    for size, style in zip(periods, ((0, (1, 2)), (0, (4, 3)), "-"), strict=False):
        for m in range(1, size // 2 + 1):
            label = f"multiples of 1/{size}" if m == 1 else None
            look = {"color": LATTICE, "linestyle": style, "linewidth": 0.9, "zorder": 0}
            axes.axvline(m / size, label=label, **look)


def _draw_cell(figure: Figure, axes: Any, artifact: Artifact | None) -> None:
    """Root mean square error by place in the patch."""
    axes.set_title("Error folded onto the patch")
    if artifact is None:
        axes.text(0.5, 0.5, "no period to fold onto", ha="center", va="center")
        axes.set_axis_off()
        return
    cell = np.sqrt(np.array(artifact.cell))
    label = "root mean square residual (std of the truth = 1)"
    wide = [axis for axis, size in enumerate(cell.shape) if size > 1]
    if len(wide) == 3:
        cell = np.sqrt((cell**2).mean(axis=2))
        wide = wide[:2]
        axes.set_title("Error folded onto the patch, mean over z")
    if len(wide) < 2:
        axes.plot(cell.reshape(-1), color=COLOURS[0], marker="o", drawstyle="steps-mid")
        axes.set(xlabel=f"{AXES[wide[0]]} in the patch (cells)", ylabel=label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        return
    image = axes.imshow(np.squeeze(cell).T, origin="lower", cmap=SIZE_COLOURS)
    names = [AXES[axis] for axis in wide]
    axes.set(xlabel=f"{names[0]} in the patch (cells)", ylabel=f"{names[1]} in the patch (cells)")
    for locate in (axes.xaxis, axes.yaxis):
        locate.get_major_locator().set_params(integer=True)
    figure.colorbar(image, ax=axes, label=label)


def _draw_growth(axes: Any, diagnosis: Diagnosis) -> None:
    steps = np.arange(1, diagnosis.steps + 1)
    error = np.array(diagnosis.error_by_step)
    many = diagnosis.steps > 1
    marker = None if many else "o"
    axes.plot(steps, error, color=COLOURS[0], marker=marker, label="whole residual")
    artifact = diagnosis.artifact
    if artifact is not None:
        power = np.array(artifact.power_by_step)
        name = GROWING[artifact.statistic]
        shown = np.where(power > 0, power, np.nan)
        axes.plot(steps, shown, color=COLOURS[1], linestyle="--", marker=marker, label=name)
        if not math.isnan(artifact.exponent) and (power > 0).any():
            fit = steps**artifact.exponent
            fit = fit * np.exp(np.nanmean(np.log(shown)) - np.log(fit[power > 0]).mean())
            style = {"color": LATTICE, "linewidth": 0.9, "linestyle": ":"}
            axes.plot(steps, fit, label=f"step^{round(artifact.exponent, 1) + 0.0:.1f}", **style)
    axes.set(yscale="log", xlabel="step", ylabel="mean square (truth's variance = 1)")
    if many:
        axes.set_xscale("log")
        _plain_ticks(axes)
    axes.set_title("Growth over the steps")
    axes.legend(fontsize=8)


def _plain_ticks(axes: Any) -> None:
    """0.01, 0.02, 0.05, … along x, however few decades there are."""
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _shrink(shape: tuple[int, ...]) -> float:
    """A colour bar as long as a wide picture is high."""
    return min(1.0, max(0.4, shape[1] / shape[0]))
