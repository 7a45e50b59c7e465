"""A schedule of a model, rolled out from all trajectories and compared with the truth.

Frames are looked at when they come and then forgotten: in memory are the windows of one batch, the
current true frame and, for the laws of physics, the two frames before it. A trajectory that blows
up leaves the batch, the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from overtone.domain import Window
from overtone.evaluate.candidates import Candidate, timed_call
from overtone.evaluate.laws import Setting, deviation, laws
from overtone.evaluate.results import Run
from overtone.evaluate.tally import EARLY, Tally
from overtone.evaluate.trajectories import Trajectories, coordinates
from overtone.metrics import vrmse
from overtone.schedules import Patch, Schedule

MAX_SAMPLES = 40


def sample_steps(steps: int) -> tuple[int, ...]:
    """Steps to keep pictures of: evenly spaced, the first and the last among them."""
    places = torch.linspace(1, steps, min(steps, MAX_SAMPLES), dtype=torch.float64)
    return tuple(places.round().int().tolist())


def roll_out(
    candidate: Candidate,
    schedule: Schedule,
    truth: Trajectories,
    *,
    steps: int,
    patches: Sequence[Patch],
    batch: int,
    seed: int,
    device: str,
    tick: Callable[[], None],
) -> tuple[Run, Tensor]:
    """Measure one schedule.

    Args:
        candidate: the model.
        schedule: patch and shift at each step.
        truth: where to start, and what to compare with.
        steps: length of the rollouts.
        patches: whose artifacts to look for.
        batch: trajectories that are predicted at once.
        seed: of the bootstrap.
        device: where to compute.
        tick: called after each step of each batch.

    Returns:
        What was measured, and the first trajectory's frames at `sample_steps`,
        `(S, C, *space)`, NaN from a blow-up on.
    """
    domain = truth.domain
    tally = Tally(domain, len(truth), steps, patches, seed=seed)
    kept = sample_steps(steps)
    samples = torch.full((len(kept), len(domain.fields), *domain.shape), torch.nan)
    for rows in truth.batches(batch):
        flight = _Flight(candidate, truth, rows, device)
        for step in range(1, steps + 1):
            frame = flight.advance(step, schedule, tally)
            if step in kept and 0 in flight.rows:
                samples[kept.index(step)] = frame[flight.rows.index(0)]
            tick()
        tally.close(rows)
    return _summary(candidate, schedule, truth, tally, steps), samples


class _Flight:
    """The trajectories of one batch that have not blown up."""

    def __init__(self, candidate: Candidate, truth: Trajectories, rows: list[int], device: str):
        self.model, self.truth, self.rows = candidate.model, truth, rows
        window = truth.window(rows, candidate.model.context, truth.first)
        self.window = Window(window.fields.to(device), window.domain)
        layout = truth.layout(rows[0])
        self.setting = Setting(
            dataset=truth.name,
            domain=window.domain,
            axes=layout.axes,
            parameters=tuple(truth.parameters(row) for row in rows),
            coordinates=coordinates(truth.file(rows[0]), layout, window.domain.shape),
        )
        self.measures = laws(self.setting)
        before = _last_two(window.fields)
        self.recent = before, before  # predictions and truths

    def advance(self, step: int, schedule: Schedule, tally: Tally) -> Tensor:
        """Predict and record the next step; frames `(B, C, *space)` of those that are left."""
        if not self.rows:
            return torch.empty(0)
        predicted, seconds = timed_call(self.model, self.window, schedule(step - 1))
        tally.record_seconds(step, seconds, len(self.rows))
        frame, true = predicted.cpu(), self.truth.frame(self.rows, self.truth.first + step - 1)
        error = vrmse(frame, true, ndim=true.dim() - 2)
        good = frame.flatten(1).isfinite().all(dim=1) & error.isfinite().all(dim=1)
        if not bool(good.all()):
            tally.lose(step)
            self._keep(good)
            frame, true, error = frame[good], true[good], error[good]
            predicted = predicted[good.to(predicted.device)]
        if self.rows:
            tally.record(step, self.rows, frame, true, error)
            self._check_laws(step, frame, true, tally)
            self.window = self.window.slide(predicted)
        return frame

    def _keep(self, good: Tensor) -> None:
        left = good.nonzero()[:, 0].tolist()
        self.rows = [self.rows[i] for i in left]
        self.window = Window(self.window.fields[left], self.window.domain)
        self.recent = self.recent[0][left], self.recent[1][left]
        self.setting = self.setting.keep(left)
        self.measures = laws(self.setting) if left else {}

    def _check_laws(self, step: int, frame: Tensor, true: Tensor, tally: Tally) -> None:
        if not self.measures:
            return
        now = [
            torch.cat([before, new[:, None]], dim=1)
            for before, new in zip(self.recent, (frame, true), strict=True)
        ]
        found = {
            name: deviation(measure(now[0]), measure(now[1]))
            for name, measure in self.measures.items()
        }
        tally.record_laws(step, self.rows, found)
        self.recent = now[0][:, 1:], now[1][:, 1:]


def _last_two(fields: Tensor) -> Tensor:
    """The latest two frames of a window; where there is one, NaN stands for the other."""
    if fields.shape[1] >= 2:
        return fields[:, -2:]
    return torch.cat([torch.full_like(fields, torch.nan), fields], dim=1)


def _summary(
    candidate: Candidate, schedule: Schedule, truth: Trajectories, tally: Tally, steps: int
) -> Run:
    domain = truth.domain
    uses: dict[Patch, int] = {}
    for step in range(steps):
        patch = schedule(step).patch
        uses[patch] = uses.get(patch, 0) + 1
    return Run(
        schedule=str(schedule),
        vrmse=tally.vrmse,
        vrmse_10=tally.vrmse_up_to(EARLY),
        vrmse_all=tally.vrmse_up_to(steps),
        fields=tally.fields,
        bsnmse=tally.bsnmse,
        harmonics=tally.harmonics,
        spectra=tally.spectra,
        physics=tally.physics,
        tokens=schedule.tokens(domain, steps),
        flops=sum(n * candidate.flops(domain, patch) for patch, n in uses.items()),
        seconds=tally.seconds,
        blow_up=tally.blow_up,
    )
