"""From many schedules to one: successive halving, the front, and a choice that is not luck.

*Halving.* All schedules are tried on two flights; the better half goes on to two more, the better
half of those to four more, and so on, until all that are left have been tried on all. Better means
on an earlier front of error against price, so that cheap schedules stay for the front's sake.

*The choice.* Few trajectories decide, and the best of many is always lucky. Therefore

- schedules are compared on the same trajectories, by the logarithm of the ratio of their errors:
  what is hard about a trajectory is hard for both and cancels;
- of the schedules whose mean lies within one standard error of the best, the simplest is chosen;
- a sequence that the beam search found must beat the best of the families by more than the standard
  error, on all trajectories and on those alone that it was not searched on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overtone.assess.cost import Cost, Price
from overtone.assess.plan_bench import Bench
from overtone.assess.search_families import complexity
from overtone.schedules import Schedule

FIRST = 2
"""Flights that all schedules are tried on."""
FINALISTS = 12
"""Schedules that are tried on all flights, at least."""
TIE = 0.005
"""Differences of the logarithm of the error that are none."""
LARGE = 1e30
"""Stands for an infinite error, whose differences would be no numbers."""


@dataclass(eq=False)
class Trial:
    """A schedule and what is known of it.

    Attributes:
        schedule: patch and shift of each step.
        cost: of a rollout.
        searched: whether it was made for the trajectories that the beam search saw.
        errors: mean VRMSE of each flight so far, `(flights,)` float64.
    """

    schedule: Schedule
    cost: Cost
    searched: bool = False
    errors: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))

    @property
    def score(self) -> float:
        """Mean over flights of the logarithm of the error."""
        return _log(self.errors).mean().item()


def halve(
    trials: Sequence[Trial],
    bench: Bench,
    price: Price,
    told: Callable[[Sequence[Trial], range], None],
) -> list[Trial]:
    """Try schedules on ever more flights and keep ever fewer; those left are tried on all.

    Args:
        trials: none of them tried before.
        bench: where they are tried.
        price: what is set against the error.
        told: called with what is tried next, and on which flights.
    """
    left, done = list(trials), 0
    while done < len(bench.flights):
        end = min(max(FIRST, 2 * done), len(bench.flights))
        told(left, range(done, end))
        extend(left, bench, end)
        done = end
        if done < len(bench.flights):
            left = _best_fronts(left, max(FINALISTS, math.ceil(len(left) / 2)), price)
    return left


def extend(trials: Sequence[Trial], bench: Bench, end: int) -> None:
    """Try schedules on the flights up to one, those that they were tried on before left out."""
    known = len(trials[0].errors) if trials else 0
    if not trials or known == end:
        return
    found = bench.errors([trial.schedule for trial in trials], range(known, end)).mean(dim=2)
    for trial, errors in zip(trials, found, strict=True):
        trial.errors = torch.cat([trial.errors, errors])


def _best_fronts(trials: Sequence[Trial], num: int, price: Price) -> list[Trial]:
    """At most `num` trials: half of them by their error alone, the others front by front."""
    by_error = sorted(trials, key=lambda trial: trial.score)
    kept = by_error[: -(-num // 2)]
    rest = [trial for trial in trials if trial not in kept]
    while rest and len(kept) < num:
        front = pareto([(t.cost.price(price), t.score) for t in rest])
        layer = sorted((rest[i] for i in front), key=lambda trial: trial.score)
        kept += layer[: num - len(kept)]
        rest = [trial for trial in rest if trial not in layer]
    return kept


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Places of the points that no other one is at most as large as in both numbers.

    Of equal points the first is on the front.
    """
    order = sorted(range(len(points)), key=lambda i: (*points[i], i))
    front, lowest = [], math.inf
    for i in order:
        if points[i][1] < lowest:
            front.append(i)
            lowest = points[i][1]
    return sorted(front)


def choose(
    errors: Tensor,
    schedules: Sequence[Schedule],
    *,
    searched: Sequence[bool],
    unseen: Sequence[int],
) -> int:
    """Which schedule to take; the module's docstring says why.

    Args:
        errors: `(schedules, n)`, one for each trajectory.
        schedules: what made them.
        searched: which of them the beam search found.
        unseen: trajectories that it did not see.
    """
    logs = _log(errors)
    ours = [i for i in range(len(schedules)) if not searched[i]]
    best = min(ours, key=lambda i: logs[i].mean().item())
    # What blows up somewhere has so large a standard error that anything is within it.
    steady = [i for i in ours if errors[i].isfinite().all() or not errors[best].isfinite().all()]
    near = [i for i in steady if _exceeds(logs[i] - logs[best]) <= 0]
    chosen = min(near, key=lambda i: (complexity(schedules[i]), logs[i].mean().item()))
    others = list(unseen)
    if len(others) < 2:
        return chosen
    gains = {i: logs[best] - logs[i] for i in range(len(schedules)) if searched[i]}
    better = [i for i, own in gains.items() if _exceeds(own) > 0 and _exceeds(own[others]) > 0]
    return max(better, key=lambda i: gains[i][others].mean().item(), default=chosen)


def left_out(
    errors: Tensor,
    schedules: Sequence[Schedule],
    *,
    searched: Sequence[bool],
    unseen: Sequence[int],
) -> Tensor:
    """For each trajectory, the error of what is chosen without it, `(n,)`.

    That of the schedule that was chosen with it is too low: it was chosen for being low.
    Arguments are those of `choose`. Where there are fewer than three, nothing can be left out.
    """
    num = errors.shape[1]
    if num < 3:
        return errors[choose(errors, schedules, searched=searched, unseen=unseen)]
    found = []
    for out in range(num):
        others = [i for i in range(num) if i != out]
        places = [others.index(i) for i in unseen if i != out]
        own = choose(errors[:, others], schedules, searched=searched, unseen=places)
        found.append(errors[own, out])
    return torch.stack(found)


def _exceeds(differences: Tensor) -> float:
    """By how much a mean is above its standard error, or above what is no difference at all."""
    mean, num = differences.mean().item(), len(differences)
    error = differences.std().item() / num**0.5 if num > 1 else 0.0
    return mean - max(error, TIE)


def _log(errors: Tensor) -> Tensor:
    return errors.nan_to_num(nan=LARGE, posinf=LARGE).clamp(1 / LARGE, LARGE).log()
