"""Predictions without a truth, judged by a model: `overtone diagnose PRED --model M`.

Whoever made the predictions, at each frame the model can be asked what it would have made of the
frames before it. Its answer at the finest patch stands in for the truth: the difference is what the
step has added beyond what the model itself would have done; where the two agree, because the same
model made the prediction at that patch, the answer at the next coarser one is taken. As in a
rollout, what the steps add is summed as squares and calibrated by the band of all schedules.

What the model gets wrong at every patch is in none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.data.frames import Frames
from overtone.domain import Window
from overtone.errors import DataError
from overtone.models.base import Model
from overtone.models.calibration import ANY
from overtone.rollout.estimates import PROBES, Accumulator, ErrorEstimate, distance, ordered
from overtone.schedules import Patch

SAME = 1e-4
"""Disagreement below which a frame is the model's own at that patch, up to rounding."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """Estimated errors of predictions, N samples and S steps.

    Attributes:
        value: VRMSE `(N, S)`, or disagreement if not calibrated.
        local: VRMSE `(N, S)` that each step has added.
        low, high: bounds `(N, S)` of the 90 % interval; None without.
        calibrated: whether these are errors.
        first: the first frame that is judged, counted from 0: the model's context.
        fields: VRMSE `(N, C)` of each field at the last step.
        names: of the fields.
    """

    value: Tensor
    local: Tensor
    low: Tensor | None
    high: Tensor | None
    calibrated: bool
    first: int
    fields: Tensor
    names: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What it comes to."""
        steps = self.value.shape[1]
        kind = "error (VRMSE)" if self.calibrated else "disagreement (VRMSE, not calibrated)"
        start, end = (self.value[:, place].mean().item() for place in (0, -1))
        text = f"estimated {kind}: {start:.3g} at the first judged frame, {end:.3g} after {steps}"
        if self.low is not None and self.high is not None:
            ends = self.low[:, -1].mean().item(), self.high[:, -1].mean().item()
            text += f", 90 % of such errors are within {ends[0]:.3g} to {ends[1]:.3g}"
        worst = int(self.fields.mean(dim=0).argmax())
        text += f"; largest in field '{self.names[worst]}'"
        place = divmod(int(self.local.argmax()), steps)
        return f"{text}; the hardest step is frame {self.first + place[1]} of sample {place[0]}"


def judge(
    model: Model,
    frames: Frames,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Judgement:
    """Tell the errors of predictions by what a model would have made of them.

    Args:
        model: of the same fields and grid; calibrated or not.
        frames: the predictions, with their context at the beginning.
        progress: called after every frame, with the frames that are done and of all frames.
    """
    order = _order(model, frames)
    steps = min(frames.lengths) - model.context
    if steps < 1:
        raise DataError(
            f"the prediction '{frames.name}' has {min(frames.lengths)} frames; a model with a "
            f"context of {model.context} needs more"
        )
    num, rows = len(frames.lengths), []
    for sample in range(num):
        row = []
        for step, told in enumerate(_steps(model, frames, sample, steps, order), start=1):
            row.append(told)
            if progress is not None:
                progress(sample * steps + step, num * steps)
        rows.append(row)
    first = rows[0][0]
    low, high = (
        _table(rows, lambda told, side=side: told.bounds[0.9][side])
        if 0.9 in first.bounds
        else None
        for side in (0, 1)
    )
    return Judgement(
        value=_table(rows, lambda told: told.value),
        local=_table(rows, lambda told: told.local),
        low=low,
        high=high,
        calibrated=first.calibrated,
        first=model.context,
        fields=torch.cat([row[-1].fields for row in rows]),
        names=model.domain.fields,
    )


def _table(
    rows: Sequence[Sequence[ErrorEstimate]], pick: Callable[[ErrorEstimate], Tensor]
) -> Tensor:
    """A number of each estimate, `(N, S)`."""
    return torch.stack([torch.cat([pick(told) for told in row]) for row in rows])


def _order(model: Model, frames: Frames) -> list[int]:
    """Where the model's fields are in the frames."""
    wanted, own = model.domain.fields, frames.channels
    if frames.shape != model.domain.shape:
        raise DataError(
            f"the prediction '{frames.name}' lies on {frames.shape} cells, the model was trained "
            f"on {model.domain.shape}; give a model of this grid"
        )
    if not own and frames.num_channels == len(wanted):
        return [*range(len(wanted))]
    if set(wanted) - set(own):
        raise DataError(
            f"the prediction '{frames.name}' has the fields {own or frames.num_channels}, the "
            f"model needs {wanted}; give a model of these fields"
        )
    return [own.index(name) for name in wanted]


def _steps(
    model: Model, frames: Frames, sample: int, steps: int, order: list[int]
) -> Iterator[ErrorEstimate]:
    """What each frame of a trajectory behind the context is thought to be off by."""
    domain = model.domain
    context = [frames.read(sample, step)[order] for step in range(model.context)]
    window = Window(torch.stack(context)[None].float(), domain)
    calibration = None if model.calibration is None else model.calibration.on(domain)
    summed = Accumulator(ANY, PROBES[0], domain, calibration, 1)
    answers = ordered(model.patches, domain.ndim)[:2]
    for step in range(steps):
        frame = frames.read(sample, model.context + step)[order][None].float()
        with torch.no_grad():
            errors, other = _compare(model, window, frame, answers)
        yield summed.add(step + 1, torch.tensor([0]), errors, other - frame, 0.0)
        window = window.slide(frame)


def _compare(
    model: Model, window: Window, frame: Tensor, answers: Sequence[Patch]
) -> tuple[Tensor, Tensor]:
    """Distance `(1, C)` of a frame from the model's first answer that is not the frame itself."""
    errors, other = torch.zeros(1, frame.shape[1]), frame
    for patch in answers:
        other = model(window, patch)
        errors = distance(other, frame, window.domain.ndim)
        if float(errors.mean()) > SAME:
            break
    return errors, other
