"""Single numbers of a comparison by name, for sentences and for tables of one quantity.

| quantity | of | meaning |
|---|---|---|
| `vrmse_10`, `vrmse_all` | `MODEL:SCHEDULE` | mean over the first ten steps, over all |
| `vrmse@STEP` | `MODEL:SCHEDULE` | at a step |
| `LAW@STEP` | `MODEL:SCHEDULE` | deviation from a law, e.g. `divergence@50` |
| `bsnmse@BAND` | `MODEL:SCHEDULE` | band low, mid or high |
| `excess@PERIOD`, `share@PERIOD` | `MODEL:SCHEDULE` | grid artifact: dB, part of the power |
| `seams@PERIOD` | `MODEL:SCHEDULE` | dB at the last step |
| `tokens`, `seconds_per_step` | `MODEL:SCHEDULE` | of the whole rollout; of one step |
| `next_step` | `MODEL:PATCH` | VRMSE of one step from true frames |
| `parameters`, `updates`, `minutes`, `pflop` | `MODEL` | the model and its training |

`MODEL:*` is the mean over all schedules that the model followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from overtone.errors import suggest
from overtone.evaluate.results import Estimate, Harmonics, ModelResult, NextStep, Run
from overtone.report.series import mean
from overtone.report.style import patch_name
from overtone.report.summary import number
from studies.page.blocks import PageError
from studies.page.sources import Source

SEED = int | None
EVERY = "*"
"""In place of a schedule: the mean over all."""
COUNTS = ("tokens", "parameters", "updates")


def plain(value: float) -> Estimate:
    """A number without an interval."""
    return Estimate(value=value, low=value, high=value)


def _of_training(name: str, scale: float = 1.0) -> Callable[[ModelResult], Estimate]:
    return lambda model: plain(float(model.training.get(name, math.nan)) * scale)


OF_MODEL: dict[str, Callable[[ModelResult], Estimate]] = {
    "parameters": lambda model: plain(model.num_parameters),
    "updates": _of_training("updates"),
    "minutes": _of_training("minutes"),
    "pflop": _of_training("flops", 1e-15),
}
OF_RUN: dict[str, Callable[[Run], Estimate]] = {
    "vrmse_10": lambda run: run.vrmse_10,
    "vrmse_all": lambda run: run.vrmse_all,
    "tokens": lambda run: plain(run.tokens),
}
NAMES = (*OF_MODEL, *OF_RUN, "seconds_per_step", "next_step")
OF_PERIOD: dict[str, Callable[[Harmonics], Estimate]] = {
    "excess": lambda h: plain(h.overall),
    "share": lambda h: plain(h.share),
    "seams": lambda h: h.seams[-1] if h.seams else plain(math.nan),
}
PLACED = ("vrmse@STEP", "LAW@STEP", "bsnmse@BAND", *(f"{name}@PERIOD" for name in OF_PERIOD))


def measure(source: Source, operand: str, quantity: str) -> dict[SEED, Estimate]:
    """A quantity of each seed.

    Args:
        source: the comparison.
        operand: `MODEL`, `MODEL:SCHEDULE`, `MODEL:*` or `MODEL:PATCH`, as the quantity needs.
        quantity: see the module's table.
    """
    model, _, rest = operand.partition(":")
    seeds = source.seeds(model)
    if quantity in OF_MODEL:
        return {m.seed: OF_MODEL[quantity](m) for m in seeds}
    if quantity == "next_step":
        return {m.seed: _next_step(source, m, rest).vrmse for m in seeds}
    steps = source.results.steps
    if rest == EVERY:
        return {
            m.seed: plain(mean([_of_rollout(run, quantity, steps).value for run in m.runs]))
            for m in seeds
        }
    source.rollout(operand)  # refuses what is not there
    runs = {m.seed: run for m in seeds for run in m.runs if run.schedule == rest}
    return {seed: _of_rollout(run, quantity, steps) for seed, run in runs.items()}


def _of_rollout(run: Run, quantity: str, steps: int) -> Estimate:
    return plain(run.seconds / steps) if quantity == "seconds_per_step" else of_run(run, quantity)


def of_run(run: Run, quantity: str) -> Estimate:
    """A quantity of a rollout; NaN at steps that it did not reach."""
    if quantity in OF_RUN:
        return OF_RUN[quantity](run)
    name, at, where = quantity.partition("@")
    if not at:
        raise PageError(
            f"there is no quantity '{quantity}'{suggest(quantity, NAMES)}; expected one of "
            f"{', '.join((*NAMES, *PLACED))}"
        )
    if name == "bsnmse":
        return _entry(run.bsnmse, where, "band")
    if name in OF_PERIOD:
        return OF_PERIOD[name](
            _entry({patch_name(h.patch): h for h in run.harmonics}, where, "period")
        )
    curve = run.vrmse if name == "vrmse" else _entry(run.physics, name, "law")
    return at_step(curve, where)


def at_step(curve: tuple[Estimate, ...], step: str) -> Estimate:
    """A value at a step, counted from 1; NaN if the rollout blew up before."""
    if not step.isdecimal() or int(step) < 1:
        raise PageError(f"step is '{step}'; expected 1, 2, …")
    return curve[int(step) - 1] if int(step) <= len(curve) else plain(math.nan)


def written(value: float, quantity: str) -> str:
    """A quantity's number as text."""
    if quantity in COUNTS and math.isfinite(value):
        return f"{value:,.0f}"
    return number(value)


def _next_step(source: Source, model: ModelResult, patch: str) -> NextStep:
    found = {patch_name(step.patch): step for step in model.next_step}
    if patch not in found:
        raise PageError(
            f"'{source.name}' has no next-step error of '{model.name}' at patch '{patch}'; "
            f"expected {model.name}:PATCH with one of {', '.join(found) or 'none'}"
        )
    return found[patch]


def _entry(entries: Any, name: str, what: str) -> Any:
    if name not in entries:
        raise PageError(
            f"there is no {what} '{name}'; expected one of {', '.join(entries) or 'none'}"
        )
    return entries[name]
