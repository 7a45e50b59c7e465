"""Physics over a rollout: how far what predictions conserve or keep small is from the truth's."""

from __future__ import annotations

from matplotlib.figure import Figure

from overtone.report.multiples import grid_of_panels, plot_steps
from overtone.report.series import domain_of, model_names, series
from overtone.report.style import (
    NothingToDraw,
    add_legend,
    fit_scale,
    looks,
    schedule_handles,
    styled,
    text,
)
from overtone.results import Results


@styled
def physics_constraints(results: Results) -> Figure:
    """Deviation from each law: a column for each law, a row for each model."""
    found = [s for s in series(results) if any(run.physics for run in s.runs)]
    if not found:
        raise NothingToDraw("no rollout has physics constraints")
    constraints = list(dict.fromkeys(name for s in found for run in s.runs for name in run.physics))
    names = [name for name in model_names(results) if any(s.model == name for s in found)]
    known = looks(results)
    figure, grid = grid_of_panels(len(names), len(constraints), common=False)
    for row, name in zip(grid, names, strict=True):
        for axes, constraint in zip(row, constraints, strict=True):
            own = [s for s in found if s.model == name]
            for index, s in enumerate(own):
                seeds = [run.physics[constraint] for run in s.runs if constraint in run.physics]
                plot_steps(axes, s.physics(constraint), seeds, known[s.schedule], index=index)
            axes.set_title(text(f"{name}: {constraint}"))
    for axes, constraint in zip(grid[0], constraints, strict=True):
        fit_scale(axes, "y", [e.value for s in found for e in s.physics(constraint)])
    for axes in grid[-1]:
        axes.set(xlabel=f"rollout step (dt = {domain_of(results).dt:g})")
    for axes in grid[:, 0]:
        axes.set(ylabel="deviation / truth's own\n(0 = as the truth)")
    add_legend(figure, schedule_handles([s.schedule for s in found], known))
    return figure
