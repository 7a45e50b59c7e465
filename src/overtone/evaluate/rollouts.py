"""A schedule of a model, rolled out from all trajectories and compared with the truth.

Frames are looked at when they come and then forgotten: in memory are the windows of one batch, the
current true frame and, for the laws of physics, the two frames before it. A trajectory that blows
up leaves the batch, the others go on.

What a calibrated model tells of its own error comes from a rollout of the first trajectory alone,
so that comparisons count neither in the time nor in the tokens of the schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from overtone.domain import Domain, per_axis
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.laws import Setting, deviations
from overtone.evaluate.results import Run, Told
from overtone.evaluate.tally import EARLY, Tally
from overtone.evaluate.trajectories import Trajectories, coordinates
from overtone.metrics import vrmse
from overtone.models.base import short_patch
from overtone.models.calibration import Calibration
from overtone.rollout import Controller, Rollout, Rule, rollout
from overtone.rollout.estimates import LEVEL
from overtone.schedules import Choice, Patch

MAX_SAMPLES = 40


def sample_steps(steps: int) -> tuple[int, ...]:
    """Steps to keep pictures of: evenly spaced, the first and the last among them."""
    places = torch.linspace(1, steps, min(steps, MAX_SAMPLES), dtype=torch.float64)
    return tuple(places.round().int().tolist())


def roll_out(
    candidate: Candidate,
    schedule: Rule,
    truth: Trajectories,
    *,
    steps: int,
    patches: Sequence[Patch],
    yardsticks: Mapping[str, Tensor],
    batch: int,
    seed: int,
    device: str,
    tick: Callable[[], None],
) -> tuple[Run, Tensor, Tensor]:
    """Measure one schedule.

    Args:
        candidate: the model.
        schedule: patch and shift at each step, or who decides on them.
        truth: where to start, and what to compare with.
        steps: length of the rollouts.
        patches: whose artifacts to look for.
        yardsticks: name -> errors `(N, steps)` of what to compare with.
        batch: trajectories that are predicted at once.
        seed: of the bootstrap.
        device: where to compute.
        tick: called after each step of each batch.

    Returns:
        What was measured; the first trajectory's frames at `sample_steps`, `(S, C, *space)`, NaN
        from a blow-up on; and the errors of each trajectory, `(N, steps)`.
    """
    domain = truth.domain
    tally = Tally(domain, len(truth), steps, patches, seed=seed)
    kept, cost = sample_steps(steps), _Cost(candidate, domain)
    samples = torch.full((len(kept), len(domain.fields), *domain.shape), torch.nan)
    for rows in truth.batches(batch):
        flight = _Flight(candidate, truth, rows, tally)
        frames = rollout(
            candidate.model,
            flight.start.to(device),
            steps=steps,
            schedule=schedule,
            on_blow_up="drop",
            allow_untrained=candidate.allow_untrained,
            timed=True,
        )
        for step, predicted in enumerate(frames, start=1):
            frame, alive = predicted.cpu(), frames.alive.nonzero()[:, 0].tolist()
            flight.record(step, frame, alive, frames.choices, frames.seconds)
            if step in kept and 0 in rows:
                samples[kept.index(step)] = frame[rows.index(0)]
            tick()
        tally.close(rows)
        cost.add(frames)
    margins = {name: tally.margins(errors) for name, errors in yardsticks.items()}
    run = _summary(schedule, tally, steps, cost)
    told = _told(candidate, schedule, truth, steps, device)
    run = run.model_copy(update={"margins": margins, "told": told})
    return run, samples, tally.errors


class _Flight:
    """One batch on its way: which of its trajectories are left, and their laws.

    Attributes:
        start: what the rollout starts from.
    """

    def __init__(self, candidate: Candidate, truth: Trajectories, rows: list[int], tally: Tally):
        self.truth, self.rows, self.tally = truth, rows, tally
        self.start = truth.window(rows, candidate.model.context, truth.first)
        self.left = [*range(len(rows))]
        layout = truth.layout(rows[0])
        self.setting = Setting(
            dataset=truth.name,
            domain=self.start.domain,
            axes=layout.axes,
            parameters=tuple(truth.parameters(row) for row in rows),
            coordinates=coordinates(truth.file(rows[0]), layout, self.start.domain.shape),
        )
        before = _last_two(self.start.fields)
        self.recent = before, before  # predictions and truths

    def record(
        self,
        step: int,
        frame: Tensor,
        alive: list[int],
        choices: Sequence[Choice | None],
        seconds: float,
    ) -> None:
        """Compare a step with the truth.

        Args:
            step: counted from 1.
            frame: `(B, C, *space)`, NaN where a trajectory was lost.
            alive: places in the batch of those that were not.
            choices: patch and shift of the step, for each of the batch.
            seconds: what the model took for those that were left before.
        """
        if not self.left:
            return
        self.tally.record_seconds(step, seconds, len(self.left))
        if len(alive) < len(self.left):
            self.tally.lose(step)
            self._keep(alive)
        if not alive:
            return
        rows = [self.rows[place] for place in alive]
        frame, true = frame[alive], self.truth.frame(rows, self.truth.first + step - 1)
        for choice in dict.fromkeys(choices[place] for place in alive):
            assert choice is not None
            own = [number for number, place in enumerate(alive) if choices[place] == choice]
            self.tally.record(step, [rows[i] for i in own], frame[own], true[own], choice)
        self._check_laws(step, rows, frame, true)

    def _keep(self, alive: list[int]) -> None:
        places = [self.left.index(place) for place in alive]
        self.left = alive
        self.recent = self.recent[0][places], self.recent[1][places]
        self.setting = self.setting.keep(places)

    def _check_laws(self, step: int, rows: list[int], frame: Tensor, true: Tensor) -> None:
        now = [
            torch.cat([before, new[:, None]], dim=1)
            for before, new in zip(self.recent, (frame, true), strict=True)
        ]
        self.tally.record_laws(step, rows, deviations(self.setting, *now))
        self.recent = now[0][:, 1:], now[1][:, 1:]


def _last_two(fields: Tensor) -> Tensor:
    """The latest two frames of a window; where there is one, NaN stands for the other."""
    if fields.shape[1] >= 2:
        return fields[:, -2:]
    return torch.cat([torch.full_like(fields, torch.nan), fields], dim=1)


class _Cost:
    """What a rollout costs; what controllers spend is not known before. Mean over trajectories."""

    def __init__(self, candidate: Candidate, domain: Domain):
        self.candidate, self.domain = candidate, domain
        self._samples, self._tokens, self._flops = 0, 0, 0

    def add(self, frames: Rollout) -> None:
        """Take a batch that is through.

        FLOPs are those of the frames and of what was refused; comparisons are counted in tokens.
        """
        self._samples += len(frames.records)
        for record in frames.records:
            for made in record:
                self._tokens += made.tokens
                tried = [made.choice, *(choice for choice, _ in made.refused)]
                self._flops += sum(self._price(choice.patch) for choice in tried)

    def _price(self, patch: Patch) -> int:
        sizes = self.candidate.sizes(patch)
        return self.candidate.flops(self.domain, sizes[0] if len(set(sizes)) == 1 else sizes)

    def of(self, schedule: Rule, steps: int) -> tuple[int, int]:
        """Tokens and FLOPs of one trajectory."""
        if isinstance(schedule, Controller):
            count = max(self._samples, 1)
            return round(self._tokens / count), round(self._flops / count)
        uses = Counter(schedule(step).patch for step in range(steps))
        flops = sum(n * self.candidate.flops(self.domain, patch) for patch, n in uses.items())
        return schedule.tokens(self.domain, steps), flops


def _told(
    candidate: Candidate, rule: Rule, truth: Trajectories, steps: int, device: str
) -> Told | None:
    """What the first trajectory's rollout tells of its error; None if nothing calibrated does."""
    calibration = getattr(candidate.model, "calibration", None)
    if not isinstance(calibration, Calibration) or calibration.on(truth.domain) is None:
        return None
    frames = rollout(
        candidate.model,
        truth.window([0], candidate.model.context, truth.first).to(device),
        steps=steps,
        schedule=rule,
        estimate=True,
        on_blow_up="hold",
        allow_untrained=candidate.allow_untrained,
    )
    errors, estimates = [], []
    for step, frame in enumerate(frames):
        if not bool(frames.alive.all()):
            return None
        assert frames.estimate is not None
        true = truth.frame([0], truth.first + step)
        errors.append(vrmse(frame.cpu(), true, ndim=truth.domain.ndim).mean().item())
        estimates.append(frames.estimate)
    bounds = [estimate.bounds.get(LEVEL) for estimate in estimates]
    known = sum(not estimate.beyond for estimate in estimates)
    return Told(
        against=estimates[0].against,
        error=tuple(errors),
        value=tuple(estimate.value.item() for estimate in estimates),
        low=tuple(pair[0].item() for pair in bounds if pair),
        high=tuple(pair[1].item() for pair in bounds if pair),
        horizon=known if known < steps else None,
        patches=tuple(
            short_patch(per_axis(made.choice.patch, truth.domain.ndim, "patch"))
            for made in frames.records[0]
        ),
    )


def _summary(schedule: Rule, tally: Tally, steps: int, cost: _Cost) -> Run:
    tokens, flops = cost.of(schedule, steps)
    return Run(
        schedule=str(schedule),
        vrmse=tally.vrmse,
        vrmse_10=tally.vrmse_up_to(EARLY),
        vrmse_all=tally.vrmse_up_to(steps),
        fields=tally.fields,
        bsnmse=tally.bsnmse,
        energy=tally.energy,
        harmonics=tally.harmonics,
        seams=tally.seams,
        spectra=tally.spectra,
        axis_spectra=tally.axis_spectra,
        physics=tally.physics,
        tokens=tokens,
        flops=flops,
        seconds=tally.seconds,
        blow_up=tally.blow_up,
    )
