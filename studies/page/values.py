"""Single numbers by name, for tables and for sentences: no number of the prose is typed.

| mark | renders |
|---|---|
| `value: number COMPARISON A QUANTITY` | the number, mean over seeds |
| `value: interval COMPARISON A QUANTITY` | with its interval, or the range over seeds |
| `value: change COMPARISON A B QUANTITY` | how far A is above or below B, in % of B |
| `value: changes COMPARISON A B QUANTITY` | the same, lowest and highest over seeds |
| `value: share COMPARISON A B QUANTITY` | A in % of B |
| `value: times COMPARISON A B QUANTITY` | A divided by B |
| `value: plan-change COMPARISON SCHEDULE QUANTITY` | its plan against a schedule, in % |
| `value: plan-within LIMIT SCHEDULE QUANTITY COMPARISON…` | how many are at most so many % above |

| quantity | A and B are | meaning |
|---|---|---|
| `vrmse_10`, `vrmse_all` | `MODEL:SCHEDULE` | mean over the first ten steps, over all |
| `vrmse@STEP` | `MODEL:SCHEDULE` | at a step |
| `LAW@STEP` | `MODEL:SCHEDULE` | deviation from a law, e.g. `divergence@50` |
| `bsnmse@BAND` | `MODEL:SCHEDULE` | band low, mid or high |
| `excess@PERIOD`, `share@PERIOD` | `MODEL:SCHEDULE` | grid artifact: dB, part of the power |
| `seams`, `seams@STEP` | `MODEL:SCHEDULE` | dB at the grid of the last step, of a step |
| `worst_seams@PERIOD` | `MODEL:SCHEDULE` | dB at the last step, at the worst of all offsets |
| `tokens`, `seconds_per_step` | `MODEL:SCHEDULE` | of the whole rollout; of one step |
| `next_step` | `MODEL:PATCH` | VRMSE of one step from true frames |
| `parameters`, `updates`, `minutes`, `cpu_minutes`, `pflop` | `MODEL` | of its training |

`MODEL:*` is the mean over all schedules that the model followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from overtone.errors import suggest
from overtone.evaluate.results import Estimate, Harmonics, ModelResult, NextStep, Run
from overtone.report.series import mean
from overtone.report.style import patch_name
from overtone.report.summary import number
from studies.page.blocks import Block, PageError
from studies.page.markdown import change, estimates, percent
from studies.page.sources import Library, Source

SEED = int | None
Seeds = dict[SEED, Estimate]
NOT_RUN = "not run yet"
PLANNED, WITHIN = "plan-change", "plan-within"
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
    "cpu_minutes": _of_training("cpu_minutes"),
    "pflop": _of_training("flops", 1e-15),
}
OF_RUN: dict[str, Callable[[Run], Estimate]] = {
    "vrmse_10": lambda run: run.vrmse_10,
    "vrmse_all": lambda run: run.vrmse_all,
    "tokens": lambda run: plain(run.tokens),
    "seams": lambda run: at_step(run, run.seams, str(max(len(run.seams), 1))),
}
NAMES = (*OF_MODEL, *OF_RUN, "seconds_per_step", "next_step")
OF_PERIOD: dict[str, Callable[[Run, Harmonics], Estimate]] = {
    "excess": lambda _, h: plain(h.overall),
    "share": lambda _, h: plain(h.share),
    "worst_seams": lambda run, h: at_step(run, h.worst_seams, str(max(len(h.worst_seams), 1))),
}
PLACED = ("vrmse@STEP", "seams@STEP", "LAW@STEP", "bsnmse@BAND",
          *(f"{name}@PERIOD" for name in OF_PERIOD))  # fmt: skip


def measure(source: Source, operand: str, quantity: str) -> Seeds:
    """A quantity of each seed.

    Args:
        source: the comparison.
        operand: `MODEL`, `MODEL:SCHEDULE`, `MODEL:*` or `MODEL:PATCH`, as the quantity needs.
        quantity: see the module's table.
    """
    model, rest = source.split(operand)
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
        periods = {patch_name(h.patch): h for h in run.harmonics}
        return OF_PERIOD[name](run, _entry(periods, where, "period"))
    own = {"vrmse": run.vrmse, "seams": run.seams}
    curve = own[name] if name in own else _entry(run.physics, name, "law")
    return at_step(run, curve, where)


def at_step(run: Run, curve: tuple[Estimate, ...], step: str) -> Estimate:
    """A value at a step, counted from 1; NaN if the rollout blew up before.

    Args:
        run: the rollout.
        curve: something that it has at each step; empty if the study's file does not keep it.
        step: which step.
    """
    if not step.isdecimal() or int(step) < 1:
        raise PageError(f"step is '{step}'; expected 1, 2, …")
    if not curve and run.blow_up != 1:
        raise PageError(
            "the study's file does not keep this for each step; name it in the comparison's "
            "`curves` (studies/catalogue.py) and run `make reproduce` again"
        )
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


def _mean(seeds: Seeds) -> float:
    return mean([value.value for value in seeds.values()])


def _interval(seeds: Seeds, quantity: str) -> str:
    alike = len({value.value for value in seeds.values()}) == 1
    if len(seeds) > 1 and not alike:
        return estimates(list(seeds.values()))
    only = next(iter(seeds.values()))
    return written(only.value, quantity) if only.low == only.high else estimates([only])


def _changes(a: Seeds, b: Seeds) -> str:
    """Seeds are compared pair by pair."""
    if set(a) != set(b):
        raise PageError(f"the seeds differ, {list(a)} and {list(b)}; use change")
    ratios = sorted(a[seed].value / b[seed].value for seed in a)
    low, high = (change(ratio, 1.0) for ratio in (ratios[0], ratios[-1]))
    return low if low == high else f"{low} to {high}"


OF_ONE: dict[str, Callable[[Seeds, str], str]] = {
    "number": lambda a, quantity: written(_mean(a), quantity),
    "interval": _interval,
}
OF_TWO: dict[str, Callable[[Seeds, Seeds], str]] = {
    "change": lambda a, b: change(_mean(a), _mean(b)),
    "changes": _changes,
    "share": lambda a, b: percent(100 * _mean(a) / _mean(b)),
    "times": lambda a, b: number(_mean(a) / _mean(b)),
}


def _plan_and(other: str, quantity: str, name: str, library: Library) -> tuple[Seeds, Seeds] | None:
    """A number of a comparison's plan, and of a schedule that it was given the tokens of.

    Args:
        other: the schedule.
        quantity: the number.
        name: of the comparison.
        library: of results.

    Returns:
        Both, or None where the comparison was not run.
    """
    source = library.source(name)
    if source is None:
        return None
    if source.plan is None:
        raise PageError(f"'{name}' has no plan")
    model = source.models()[0]  # whom the plan is for
    own, against = (measure(source, f"{model}:{rule}", quantity)
                    for rule in (source.plan["schedule"], other))  # fmt: skip
    return own, against


def _plan_change(block: Block, library: Library) -> str:
    """A comparison's plan against a schedule that it was given the tokens of, in %."""
    if block.options or len(block.names) != 3:
        raise PageError(f"expected 'value: {PLANNED} COMPARISON SCHEDULE QUANTITY'")
    name, other, quantity = block.names
    pair = _plan_and(other, quantity, name, library)
    return NOT_RUN if pair is None else OF_TWO["change"](*pair)


def _plan_within(block: Block, library: Library) -> str:
    """In how many comparisons the plan is at most some % above a schedule."""
    if block.options or len(block.names) < 4:
        raise PageError(f"expected 'value: {WITHIN} LIMIT SCHEDULE QUANTITY COMPARISON…'")
    limit, other, quantity, *names = block.names
    pairs = [_plan_and(other, quantity, name, library) for name in names]
    found = [_mean(pair[0]) / _mean(pair[1]) - 1 for pair in pairs if pair is not None]
    if not found:
        return NOT_RUN
    return f"{sum(100 * change <= float(limit) for change in found)} of {len(found)}"


def render_value(block: Block, library: Library) -> str:
    """The number of a mark."""
    kind = block.kind
    if kind == PLANNED:
        return _plan_change(block, library)
    if kind == WITHIN:
        return _plan_within(block, library)
    if kind not in OF_ONE and kind not in OF_TWO:
        known = [*OF_ONE, *OF_TWO]
        raise PageError(
            f"there is no value '{kind}'{suggest(kind, known)}; there are {', '.join(known)}"
        )
    comparison, operands, quantity = _arguments(block, 1 if kind in OF_ONE else 2)
    source = library.source(comparison)
    if source is None:
        return NOT_RUN
    seeds = [measure(source, operand, quantity) for operand in operands]
    if kind in OF_ONE:
        return OF_ONE[kind](seeds[0], quantity)
    return OF_TWO[kind](seeds[0], seeds[1])


def _arguments(block: Block, count: int) -> tuple[str, Sequence[str], str]:
    if block.options or len(block.names) != count + 2:
        rollouts = " ".join("AB"[:count])
        raise PageError(f"expected 'value: {block.kind} COMPARISON {rollouts} QUANTITY'")
    return block.names[0], block.names[1:-1], block.names[-1]
