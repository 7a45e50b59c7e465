"""How the grid artifact of each patch grows over a rollout: excess and seams against the step."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from overtone.report.multiples import grid_of_panels, plot_steps
from overtone.report.series import domain_of, model_names, series, spread
from overtone.report.style import (
    NothingToDraw,
    add_legend,
    looks,
    patch_name,
    schedule_handles,
    styled,
    text,
)
from overtone.results import Estimate, Harmonics, Results
from overtone.schedules import Patch

MAX_PATCHES = 3


@styled
def harmonic_growth(results: Results) -> Figure:
    """Excess in dB at each step: a column for each period, a row for each model."""
    return _growth(results, lambda h: h.excess, "harmonic excess (dB)")


@styled
def seam_growth(results: Results) -> Figure:
    """Seams in dB at each step, in the same way."""
    return _growth(results, lambda h: h.seams, "seams (dB)")


def _growth(
    results: Results, pick: Callable[[Harmonics], tuple[Estimate, ...]], label: str
) -> Figure:
    rollouts = [s for s in series(results) if s.patches]
    found = [s for s in rollouts if any(pick(h) for run in s.runs for h in run.harmonics)]
    if not found:
        raise NothingToDraw(f"no rollout has {label}")
    patches, known = shown_patches(results), looks(results)
    names = [name for name in model_names(results) if any(s.model == name for s in found)]
    figure, grid = grid_of_panels(len(names), len(patches))
    for row, name in zip(grid, names, strict=True):
        for axes, patch in zip(row, patches, strict=True):
            own = [s for s in found if s.model == name and patch in s.patches]
            for index, s in enumerate(own):
                average = s.harmonics(patch)
                seeds = [pick(h) for run in s.runs for h in run.harmonics if h.patch == patch]
                if average:
                    plot_steps(axes, pick(average), seeds, known[s.schedule], index=index)
            axes.axhline(0.0, color="black", linewidth=0.8)
            axes.set_title(text(f"{name}, period {patch_name(patch)}"))
            axes.set(xlabel=f"rollout step (dt = {domain_of(results).dt:g})")
            axes.set(ylabel=label)
            axes.label_outer()
    add_legend(figure, schedule_handles([s.schedule for s in found], known))
    return figure


def shown_patches(results: Results) -> list[Patch]:
    """Periods to draw, finest first; at most `MAX_PATCHES` of those that were followed."""
    patches = dict.fromkeys(patch for s in series(results) for patch in s.patches)
    return spread(sorted(patches, key=_size), MAX_PATCHES)


def _size(patch: Patch) -> tuple[int, ...]:
    return (patch,) if isinstance(patch, int) else patch
