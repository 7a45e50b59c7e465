"""A rollout and how far to trust it: `ot.assess(model, window, steps=40, schedule="4-8-16")`.

It is what `rollout(..., estimate=...)` tells frame by frame, gathered over all steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.domain import Window
from overtone.errors import OvertoneError
from overtone.rollout import ErrorEstimate, Made, Rollout, Rule, Stepper, rollout
from overtone.rollout.estimates import LEVEL
from overtone.schedules import Schedule, write_patch


@dataclass(frozen=True, eq=False)
class Assessment:
    """The estimated errors of a rollout, B samples and S steps; NaN where a sample was lost.

    Attributes:
        schedule: what decided on the steps, in its string form.
        against: what frames were compared with.
        value: VRMSE `(B, S)`, mean over fields.
        fields: VRMSE `(B, S, C)` of each field.
        local: VRMSE `(B, S)` that each step alone has added; NaN of a second rollout.
        bounds: level -> lower and upper bound `(B, S)`; empty if not calibrated.
        calibrated: whether these are errors; if not, disagreements.
        horizon: the last step that the calibration knows; later ones use its ratio.
        last: the last frame `(B, C, *space)`.
        map: where its error is, `(B, C, *space)`, in physical units.
        records: of each sample, its steps: choices, errors and tokens.
        tokens: of the rollout and its comparisons, for one sample.
    """

    schedule: str
    against: str
    value: Tensor
    fields: Tensor
    local: Tensor
    bounds: Mapping[float, tuple[Tensor, Tensor]]
    calibrated: bool
    horizon: int
    last: Tensor
    map: Tensor
    records: tuple[tuple[Made, ...], ...]
    tokens: float

    def __repr__(self) -> str:
        """The first and the last step, mean over samples, in two lines."""
        steps = self.value.shape[1]
        means = self.value.nanmean(dim=0)
        kind = "VRMSE" if self.calibrated else "disagreement (not calibrated)"
        text = f"Assessment of {self.schedule} against {self.against}: estimated {kind} "
        text += f"{means[0]:.3g} at step 1, {means[-1]:.3g} at step {steps}"
        if LEVEL in self.bounds:
            low, high = (bound[:, -1].nanmean().item() for bound in self.bounds[LEVEL])
            text += f" ({low:.3g} to {high:.3g}, {100 * LEVEL:.0f} %)"
        if self.calibrated and steps > self.horizon:
            text += f"; calibrated up to step {self.horizon}"
        return f"{text}\n{self.tokens:.0f} tokens a sample, comparisons included"

    def patches(self) -> list[list[str]]:
        """For each sample, the patch of each step as text."""
        return [[write_patch(_short(made.choice.patch)) for made in own] for own in self.records]


def assess(
    model: Stepper,
    window: Window,
    schedule: Rule | str | int,
    *,
    steps: int,
    against: bool | str | Schedule = True,
    allow_untrained: bool = False,
) -> Assessment:
    """Roll a model out and tell the error of every frame, without the truth.

    Args:
        model: with patches. With a calibration (`overtone calibrate`) errors are told, without one
            disagreements.
        window: where to start, `(B, T, C, *space)`.
        schedule: of the rollout; may be a controller such as `"adaptive:0.02"`.
        steps: how many.
        against: what frames are compared with, as `estimate` of `rollout`: `"patch"`, `"shift"`, or
            the schedule of a second rollout, cheaper or finer.
        allow_untrained: as for `rollout`.
    """
    if steps < 1:
        raise OvertoneError(f"steps is {steps}; expected at least 1")
    if not against:
        raise OvertoneError("against is not given; expected 'patch', 'shift' or a schedule")
    frames = rollout(
        model,
        window,
        steps=steps,
        schedule=schedule,
        estimate=against,
        on_blow_up="drop",
        allow_untrained=allow_untrained,
    )
    estimates: list[ErrorEstimate] = []
    last = None
    for frame in frames:
        if frames.estimate is None or frames.estimate.step < frames.step:
            break  # all samples are lost
        estimates.append(frames.estimate)
        last = frame
    assert last is not None
    return gather(str(schedule), estimates, last, frames)


def gather(
    schedule: str, estimates: Sequence[ErrorEstimate], last: Tensor, frames: Rollout
) -> Assessment:
    """The estimates of all steps as one.

    Args:
        schedule: its string form.
        estimates: one for each step.
        last: the last frame `(B, C, *space)`.
        frames: the rollout that they come from.
    """
    first, final = estimates[0], estimates[-1]
    late = [estimate.step for estimate in estimates if estimate.beyond]
    return Assessment(
        schedule=schedule,
        against=first.against,
        value=torch.stack([e.value for e in estimates], dim=1),
        fields=torch.stack([e.fields for e in estimates], dim=1),
        local=torch.stack([e.local for e in estimates], dim=1),
        bounds={
            level: (
                torch.stack([e.bounds[level][0] for e in estimates], dim=1),
                torch.stack([e.bounds[level][1] for e in estimates], dim=1),
            )
            for level in first.bounds
        },
        calibrated=first.calibrated,
        horizon=(late[0] - 1) if late else final.step,
        last=last,
        map=final.map,
        records=frames.records,
        tokens=frames.tokens,
    )


def _short(patch: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return patch[0] if isinstance(patch, tuple) and len(set(patch)) == 1 else patch
