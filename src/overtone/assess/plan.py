"""The best schedule for a budget: what is tried, what is chosen, and what to expect of it.

`plan` measures what a step costs at each patch, tries schedules on the validation split, chooses
one, and answers with a `Plan`: the schedule, the error to expect of it, its cost, and the front of
error against cost that it was chosen from.

*What error to expect.* The mean over the trajectories of the split would be too low, since the
schedule was chosen for it. So each trajectory in turn is left out, a schedule is chosen by the
others, and its error on the one left out counts. The interval is the bootstrap's, over these
errors: it is that of a mean over trajectories, as in every evaluation. A conformal interval would
be for one new trajectory, and needs 19 of them for 90 %; what can be said with any number is
`worst`: of n trajectories like these, one more has a larger error with a chance of 1 in n + 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor

from overtone.assess.cost import PRICES, Costs, Price, read_limits
from overtone.assess.plan_bench import Bench
from overtone.assess.plan_file import Option, Plan, PlannedModel, spent
from overtone.assess.search import Trial, choose, extend, halve, left_out, pareto
from overtone.assess.search_beam import Beam
from overtone.assess.search_families import (
    complexity,
    distinct,
    families,
    shift_kinds,
    shifted,
)
from overtone.errors import DataError, OvertoneError
from overtone.evaluate.candidates import Candidate, Evaluable, Note
from overtone.evaluate.results import Data, estimate
from overtone.evaluate.trajectories import Reading, Trajectories
from overtone.files import fingerprint as fingerprint_files
from overtone.models.storage import fingerprint
from overtone.progress import Tick
from overtone.schedules import Constant, Cycle, Schedule, Shifted, require_countable
from overtone.version import machine

STARTS = 3
"""Frames that each trajectory is started from, if it is long enough."""
CHEAP = 0.4
"""Below this part of a budget only constants and cycles are tried."""
MOST_SEARCHED = 4
"""Trajectories that the beam search sees, at most; never more than half of them."""


def plan(
    model: Evaluable | Candidate,
    data: str | Path,
    *,
    steps: int,
    tokens: float | None = None,
    flops: float | None = None,
    seconds: float | None = None,
    error: float | None = None,
    starts: int = STARTS,
    seed: int = 0,
    device: str = "cpu",
    command: str = "",
    progress: Tick | None = None,
    note: Note | None = None,
    **reading: Unpack[Reading],
) -> Plan:
    """Find the schedule of the lowest error within a budget, or the cheapest within an error.

    Args:
        model: what predicts, or a candidate, which has a name.
        data: as for `WellFolder`; its validation split is used.
        steps: length of the rollouts to plan for.
        tokens, flops, seconds: what a rollout of one trajectory may cost; all that are given hold.
            Seconds are those of one core of a CPU.
        error: mean VRMSE over all steps that is good enough: the cheapest schedule that reaches it
            is chosen, by the first of the limits, or by tokens. None for the lowest error.
        starts: frames that each trajectory is started from, at most.
        seed: of the order of trajectories, and of the bootstrap.
        device: where to compute.
        command: what the plan says how it was made.
        progress: called as the work goes on.
        note: told what else the plan says.
        reading: split (`"valid"`, never `"test"`), start, trajectories, stride, coarsen.

    Returns:
        The plan; where no schedule reaches the error, the best one with `fits` False.

    Raises:
        OvertoneError: nothing was asked for, or even the cheapest schedule exceeds a limit.
    """
    candidate = model if isinstance(model, Candidate) else Candidate("model", model)
    limits = read_limits(tokens, flops, seconds)
    _require_question(limits, error, starts, require_countable(steps))
    reading["split"] = _split(reading)
    truth = Trajectories(data, candidate.model.domain.fields, candidate.model.context, reading)
    try:
        truth.require_steps(steps)
        candidate.prepare(device)
        stage = _Stage(progress)
        options: dict[str, Any] = {"steps": steps, "starts": starts, "seed": seed}
        bench = Bench(candidate, truth, **options, device=device, tick=stage.tick)
        window = truth.window([0], candidate.model.context, truth.first).to(device)
        work = _Work(bench, Costs(candidate, window), limits, error, stage)
        made = work.record(work.run(), command, seed)
    finally:
        truth.close()
    if note:
        for text in made.notes:
            note(text)
    return made


def _require_question(
    limits: Mapping[Price, float], error: float | None, starts: int, steps: int
) -> None:
    if not limits and error is None:
        raise OvertoneError(
            "nothing is limited; give what a rollout may cost (tokens, flops or seconds) or the "
            "error that is good enough"
        )
    if error is not None and not 0 < error < math.inf:
        raise OvertoneError(f"error is {error!r}; expected a positive VRMSE such as 0.1")
    if starts < 1 or steps < 1:
        raise OvertoneError(f"steps is {steps} and starts {starts}; expected at least 1")


def _split(reading: Reading) -> str:
    split = reading.get("split", "valid")
    if split == "test":
        raise DataError(
            "a plan that is made on the test split says nothing about other data; plan on valid, "
            "and evaluate the plan on test"
        )
    return split


class _Stage:
    """How far a part of the work is."""

    def __init__(self, progress: Tick | None):
        self._progress, self._done, self._total, self._what = progress, 0, 1, ""

    def begin(self, what: str, total: int) -> None:
        """Go on to another part, of so many steps at most."""
        self._done, self._total, self._what = -1, max(total, 1), what
        self.tick()

    def tick(self) -> None:
        """Another step is done."""
        self._done += 1
        if self._progress:
            self._progress(min(self._done, self._total), self._total, self._what)


@dataclass(frozen=True)
class _Found:
    """What was chosen, and from what."""

    trials: list[Trial]
    errors: Tensor
    chosen: int
    expected: Tensor
    fits: bool
    notes: list[str]

    def record(self, *, price: Price, seed: int, **about: Any) -> Plan:
        """All of it as plain data."""
        means = [float(mean) for mean in self.errors.mean(dim=1)]
        points = [(t.cost.price(price), m) for t, m in zip(self.trials, means, strict=True)]
        front = pareto(points)
        order = sorted(range(len(self.trials)), key=lambda i: points[i])
        options = tuple(
            Option(
                schedule=str(self.trials[i].schedule),
                error=estimate(self.errors[i], seed=seed),
                cost=spent(self.trials[i].cost),
                on_front=i in front,
                searched=self.trials[i].searched,
            )
            for i in order
        )
        own = self.trials[self.chosen]
        return Plan(
            **about,
            seed=seed,
            price=price,
            fits=self.fits,
            schedule=str(own.schedule),
            error=estimate(self.expected, seed=seed),
            worst=self.errors[self.chosen].max().item(),
            cost=spent(own.cost),
            options=options,
            notes=tuple(self.notes),
        )


class _Work:
    """One search.

    Attributes:
        patches: from fine to coarse.
        price: what is set against the error.
        tried: schedules that were tried so far.
    """

    def __init__(
        self,
        bench: Bench,
        costs: Costs,
        limits: Mapping[Price, float],
        target: float | None,
        stage: _Stage,
    ):
        candidate = bench.candidate
        if not candidate.patched:
            raise OvertoneError(
                f"model '{candidate.name}' has no patches, so there is nothing to plan"
            )
        self.bench, self.costs, self.limits, self.target = bench, costs, limits, target
        self._stage, self.tried = stage, 0
        self.patches = sorted(candidate.model.patches, key=lambda p: math.prod(candidate.sizes(p)))
        limited: list[Price] = [kind for kind in PRICES if kind in limits]
        self.price: Price = limited[0] if limited else "tokens"

    def run(self) -> _Found:
        """Measure, try, choose."""
        self._stage.begin("measuring the cost of a step", 1)
        self._require_affordable()
        trials = [Trial(schedule, self.costs.of(schedule, self.bench.steps))
                  for schedule in self._schedules()]  # fmt: skip
        trials = [trial for trial in trials if self._worth_trying(trial)]
        self.tried = len(trials)
        left = halve(trials, self.bench, self.price, self._tell)
        seen = self._searched()
        left += self._sequences(left, seen)
        return self._choice(left, seen)

    def record(self, found: _Found, command: str, seed: int) -> Plan:
        """What was found, and of what.

        Args:
            found: by `run`.
            command: how to make it again.
            seed: of the bootstrap.
        """
        candidate, truth = self.bench.candidate, self.bench.truth
        return found.record(
            command=command,
            seed=seed,
            machine=machine(),
            model=PlannedModel(
                name=candidate.name,
                fingerprint=fingerprint(candidate.model),
                patches=tuple(self.patches),
            ),
            data=Data(
                name=truth.name,
                split=truth.folder.split,
                fingerprint=fingerprint_files(truth.folder.files),
                trajectories=len(truth),
                start=truth.start,
                domain=truth.folder.domain.to_dict(),
            ),
            starts=len(self.bench.flights),
            steps=self.bench.steps,
            limits=self.limits,
            target=self.target,
            price=self.price,
            tried=self.tried,
        )

    def _tell(self, trials: Sequence[Trial], flights: range) -> None:
        what = f"{len(trials)} schedules from {len(flights)} starts"
        total = self.bench.num_steps([trial.schedule for trial in trials], flights)
        self._stage.begin(what, total)

    def _require_affordable(self) -> None:
        """Refuse limits that not even one patch at all steps meets."""
        constants = [Constant(patch) for patch in self.patches]
        costs = {str(own): self.costs.of(own, self.bench.steps) for own in constants}
        if "flops" in self.limits and not any(cost.flops for cost in costs.values()):
            raise OvertoneError(
                f"FLOPs of model '{self.bench.candidate.name}' can't be counted; limit tokens or "
                "seconds"
            )
        if any(cost.within(self.limits) for cost in costs.values()):
            return
        name, least = min(costs.items(), key=lambda item: item[1].price(self.price))
        asked = " and ".join(f"{limit:g} {kind}" for kind, limit in self.limits.items())
        needed = " and ".join(f"{least.price(kind):g} {kind}" for kind in self.limits)
        raise OvertoneError(
            f"no schedule of {self.bench.steps} steps fits into {asked}: the cheapest, '{name}', "
            f"takes {needed}. Allow at least that, or ask for fewer steps"
        )

    def _schedules(self) -> list[Schedule]:
        domain, steps = self.bench.domain, self.bench.steps
        made = [
            shifted(schedule, kind, domain, self.patches[-1])
            for schedule in families(self.patches, steps, self._shares())
            for kind in shift_kinds(domain)
        ]
        return distinct(made, domain, steps)

    def _shares(self) -> list[float]:
        """Parts of the steps that the budget pays for at a finer patch, for each two patches."""
        steps = [self.costs.step(Constant(patch)(0)) for patch in self.patches]
        found: list[float] = []
        for i, fine in enumerate(steps):
            for coarse in steps[i + 1 :]:
                parts = [
                    (limit / self.bench.steps - coarse.price(kind))
                    / (fine.price(kind) - coarse.price(kind))
                    for kind, limit in self.limits.items()
                    if fine.price(kind) > coarse.price(kind)
                ]
                found += [min(parts)] if parts and 0 < min(parts) < 1 else []
        return found

    def _worth_trying(self, trial: Trial) -> bool:
        """Whether it is within the limits, and simple if it leaves most of them unused."""
        if not trial.cost.within(self.limits):
            return False
        used = max((trial.cost.price(k) / v for k, v in self.limits.items()), default=1.0)
        inner = trial.schedule.schedule if isinstance(trial.schedule, Shifted) else trial.schedule
        return used >= CHEAP or isinstance(inner, (Constant, Cycle))

    def _searched(self) -> list[int]:
        """Flights that the beam search may see: one of each of at most half of the trajectories."""
        rows = self.bench.trajectories(range(len(self.bench.flights)))
        num = min(MOST_SEARCHED, len(rows) // 2)
        # At least two trajectories must be left to judge what it finds.
        return list(range(num)) if len(rows) - num >= 2 and len(self.patches) > 1 else []

    def _sequences(self, left: Sequence[Trial], seen: Sequence[int]) -> list[Trial]:
        """What the beam search finds, tried on all flights."""
        if not seen:
            return []
        best = min(left, key=lambda trial: trial.score).schedule
        kind = "still" if not isinstance(best, Shifted) else "along" if best.offsets else "shifted"
        beam = Beam(self.bench, self.costs, self.patches, kind, self.limits, self.price)
        self._stage.begin(f"sequences from {len(seen)} starts", beam.num_steps(seen))
        known = [trial.schedule for trial in left]
        fresh = distinct([*known, *beam.search(seen)], self.bench.domain, self.bench.steps)
        found = [
            Trial(schedule, self.costs.of(schedule, self.bench.steps), searched=True)
            for schedule in fresh
            if schedule not in known
        ]
        found = [trial for trial in found if trial.cost.within(self.limits)]
        self.tried += len(found)
        flights = range(len(self.bench.flights))
        self._tell(found, flights)
        extend(found, self.bench, len(flights))
        return found

    def _choice(self, trials: list[Trial], seen: Sequence[int]) -> _Found:
        flights = range(len(self.bench.flights))
        errors = self.bench.by_trajectory(torch.stack([t.errors for t in trials]), flights)
        rows = self.bench.trajectories(flights)
        unseen = [i for i in range(len(rows)) if i not in {*seen}]
        able = self._reaching(errors)
        fits = bool(able) or self.target is None
        if self.target is not None and fits:
            price: Callable[[int], tuple[Any, ...]] = lambda i: (  # noqa: E731
                trials[i].cost.price(self.price),
                complexity(trials[i].schedule),
            )
            chosen = min(able, key=price)
            return _Found(trials, errors, chosen, errors[chosen], fits, self._notes(rows, seen))
        schedules = [trial.schedule for trial in trials]
        searched = [trial.searched for trial in trials]
        chosen = choose(errors, schedules=schedules, searched=searched, unseen=unseen)
        expected = left_out(errors, schedules=schedules, searched=searched, unseen=unseen)
        if not bool(errors[chosen].isfinite().all()):
            raise OvertoneError(
                f"every schedule that was tried blows up within {self.bench.steps} steps on the "
                "validation split; ask for fewer steps, or train the model longer"
            )
        notes = [*self._about(trials, errors, chosen), *self._notes(rows, seen)]
        return _Found(trials, errors, chosen, expected, fits, notes)

    def _reaching(self, errors: Tensor) -> list[int]:
        """Schedules whose mean error, and a standard error more, is good enough."""
        if self.target is None:
            return []
        num = errors.shape[1]
        spread = errors.std(dim=1) / num**0.5 if num > 1 else torch.zeros(len(errors))
        good = errors.mean(dim=1) + spread <= self.target
        return [i for i, own in enumerate(good) if bool(own)]

    def _about(self, trials: Sequence[Trial], errors: Tensor, chosen: int) -> list[str]:
        """Why not the schedule of the lowest error, if another was chosen."""
        means = errors.mean(dim=1)
        best = int(means.argmin())
        if best == chosen:
            return []
        other = trials[best]
        why = (
            "is not surely better where it was not searched"
            if other.searched
            else "can't be told from the plan by so few trajectories, and is less simple"
            if not trials[chosen].searched
            else "is worse on most trajectories"
        )
        return [
            f"'{other.schedule}' has a lower mean error ({means[best]:.4f} against "
            f"{means[chosen]:.4f}), but {why}"
        ]

    def _notes(self, rows: Sequence[int], seen: Sequence[int]) -> list[str]:
        notes: list[str] = []
        if len(self.patches) == 1:
            notes.append(f"the model knows one patch, {self.patches[0]}: only shifts differ")
        elif not seen:
            notes.append(
                f"there are {len(rows)} validation trajectories; sequences are searched for with "
                "at least 3"
            )
        return notes
