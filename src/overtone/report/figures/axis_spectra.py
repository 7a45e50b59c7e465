"""Spectra of the residual along an axis, where the harmonics of a patch grid stand in a row.

In shells of equal |k| the harmonics of all axes and their sums crowd together. Along one axis they
are evenly spaced, so wavenumbers are linear here, and humps around the harmonics can be told from
the flow's own slope by eye.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overtone.domain import per_axis
from overtone.errors import require_one_of
from overtone.evaluate.diagnosis import AXES
from overtone.evaluate.results import AxisSpectrum, Results
from overtone.guard.names import shown
from overtone.report.figures.artifacts import (
    TRUTH,
    harmonic_wavenumbers,
    mark_harmonics,
    mark_lost,
)
from overtone.report.figures.steps import drawable, grid_of_panels, labels
from overtone.report.runaway import sound_steps
from overtone.report.series import domain_of
from overtone.report.style import Look, Panel, add_legend, looks, schedule_handles, styled, text


@styled
def axis_spectra(
    results: Results, *, field: str | None = None, axes: Sequence[int] | None = None
) -> Figure:
    """Power against wavenumber at the middle step: a row for each model, a column for each axis.

    Args:
        results: of the evaluation.
        field: whose; the first one by default.
        axes: along which; all by default.
    """
    domain = domain_of(results)
    name = domain.fields[0] if field is None else field
    require_one_of(name, domain.fields, "field")
    shown_axes = range(domain.ndim) if axes is None else axes
    by_model = drawable(results, lambda s: bool(s.axis_spectrum(name, 0)), "spectra along axes")
    found, known = list(chain(*by_model.values())), looks(results)
    figure, grid = grid_of_panels(len(by_model), len(shown_axes), height=3.1)
    for row, (model, own) in zip(grid, by_model.items(), strict=True):
        for panel, axis in zip(row, shown_axes, strict=True):
            seen = {s.schedule: one for s in own if (one := s.axis_spectrum(name, axis))}
            _draw(panel, seen, known)
            sizes = [per_axis(p, domain.ndim, "patch")[axis] for s in own for p in s.patches]
            mark_harmonics(panel, harmonic_wavenumbers(sizes, (1.0,)))
            panel.grid(visible=False, axis="x")  # the only upright lines are harmonics
            step = next(iter(seen.values())).step
            panel.set_title(text(f"{model}, {name}, step {step}"), pad=16)
            panel.set(
                xlabel=f"wavenumber along {AXES[axis]} (cycles per cell)",
                ylabel="power (truth's variance = 1)",
            )
            panel.label_outer()
    pairs = [(s, one) for s in found for a in shown_axes if (one := s.axis_spectrum(name, a))]
    sound = [one for s, one in pairs if one.step <= sound_steps(s)]
    _fit(sound or [one for _, one in pairs], grid[0, 0])
    handles = [*schedule_handles(labels(found), known), *mark_lost(grid)]
    add_legend(figure, [Line2D([], [], label="truth", **TRUTH), *handles])
    return figure


def _draw(panel: Panel, seen: dict[str, AxisSpectrum], known: dict[str, Look]) -> None:
    for index, (schedule, one) in enumerate(seen.items()):
        k, power, low, high = (
            np.array(values)[1:] for values in (one.wavenumber, one.power, one.low, one.high)
        )
        look = known[schedule].curve(len(k), first=index)
        panel.plot(k, power, gid=shown(f"residual {schedule}"), **look)
        panel.fill_between(k, low, high, color=look["color"], alpha=0.12, linewidth=0)
    first = next(iter(seen.values()))
    panel.plot(first.wavenumber[1:], first.truth[1:], gid="truth", **TRUTH)


def _fit(drawn: Sequence[AxisSpectrum], panel: Panel) -> None:
    """Down to the residuals: a truth may fall to rounding errors far below them."""
    powers = [p for one in drawn for p in one.power[1:] if p > 0 and np.isfinite(p)]
    panel.set(yscale="log", xlim=(0, 0.5))
    if powers:
        panel.set_ylim(
            min(powers) / 3, 3 * max([*powers, *(t for one in drawn for t in one.truth)])
        )
