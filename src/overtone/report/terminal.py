"""The rollouts of an evaluation as a table for the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from overtone.results import Estimate, Harmonics, Results, Run
from overtone.schedules import Constant


def results_table(results: Results) -> Table:
    """One row for each schedule of each model."""
    data = results.data
    table = Table(
        title=f"{data.name}, {data.split}: {data.trajectories} trajectories, {results.steps} steps",
        caption="VRMSE: mean over trajectories, and its 95 % bootstrap interval" + _period(results),
        box=SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    left = ("model", "schedule")
    numbers = ("next\nstep", "VRMSE\n10", "VRMSE\nall", "excess\ndB", "seams\ndB", "tokens", "s")
    lost = any(run.blow_up for model in results.models for run in model.runs)
    for column in (*left, *numbers, *(("blow-up",) if lost else ())):
        if column in left:
            table.add_column(column, min_width=len(column), overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    names = [model.name for model in results.models]
    for model in results.models:
        name = model.name
        if names.count(name) > 1:
            name = f"{name} (seed {model.seed})"
        first = {str(Constant(s.patch)): f"{s.vrmse.value:.4f}" for s in model.next_step}
        for run in model.runs:
            table.add_row(
                name,
                run.schedule,
                first.get(run.schedule, ""),
                _number(run.vrmse_10),
                _number(run.vrmse_all),
                *_artifact(run),
                f"{run.tokens}",
                _short(run.seconds),
                *([f"step {run.blow_up}" if run.blow_up else ""] if lost else []),
            )
    return table


def _number(estimate: Estimate) -> str:
    """The value, and its interval on a line of its own, which keeps the table narrow."""
    return f"{estimate.value:.4f}\n{estimate.low:.2g}–{estimate.high:.2g}"


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _artifact(run: Run) -> tuple[str, str]:
    """Harmonic excess, and seams at the last step, of the coarsest patch."""
    if not run.harmonics:
        return "", ""
    found = _coarsest(run)
    return f"{found.overall:.1f}", f"{found.seams[-1].value:.1f}" if found.seams else ""


def _period(results: Results) -> str:
    """Which patch the artifact is of, the same for all runs; empty if there is none."""
    for run in (run for model in results.models for run in model.runs if run.harmonics):
        return f"\nexcess, seams (at the last step): of period {Constant(_coarsest(run).patch)}"
    return ""


def _coarsest(run: Run) -> Harmonics:
    return max(run.harmonics, key=lambda h: h.patch if isinstance(h.patch, int) else max(h.patch))
