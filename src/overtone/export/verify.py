"""Is a program the model? Both roll out from the same window, and every frame is compared.

The difference of two frames is that of the worst cell, in units of its field's standard deviation
over the window, or of a hundredth of its root mean square where that is more: single precision
tells no smaller fields from none.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from overtone.domain import Window
from overtone.errors import ExportError
from overtone.export.formats import Call
from overtone.models.base import Model
from overtone.rollout import rollout
from overtone.schedules import Constant, Patch, Shifted

BATCHES = (1, 3)
"""Numbers of samples that a program is tried with; it was traced with another."""
STEPS = 4
"""Length of a rollout that a program is tried with."""
FLAT = 1e-2
"""Smallest standard deviation that counts, of a field's root mean square."""


class Program:
    """A loaded program in the place of its model: `rollout` can step it.

    Args:
        call: what was loaded.
        context: frames that it reads.
        moved: for each axis, whether it takes a shift there.
    """

    def __init__(self, call: Call, context: int, moved: Sequence[bool]):
        self.call, self.context, self.moved = call, context, tuple(moved)

    def __call__(
        self, window: Window, patch: int | Sequence[int], shift: int | Sequence[int] = 0
    ) -> Tensor:
        """The next frame; the patch is the program's own, whatever is asked for."""
        shifts = [shift] * window.domain.ndim if isinstance(shift, int) else [*shift]
        given = torch.tensor(shifts) if any(self.moved) else None
        frame = self.call(window.fields.contiguous(), given)
        if frame.shape != window.fields[:, 0].shape:
            raise ExportError(
                f"the program gives frames {tuple(frame.shape)} of a window "
                f"{tuple(window.fields.shape)}"
            )
        return frame


def difference(
    model: Model,
    program: Program,
    window: Window,
    *,
    patch: Patch,
    steps: int = STEPS,
    allow_untrained: bool = False,
) -> float:
    """Largest difference of a program's rollout from the model's.

    Args:
        model: what the program should be.
        program: of one patch.
        window: where to start, `(B, T, C, *space)`.
        patch: the program's.
        steps: how many; every one but the first has another shift.
        allow_untrained: accept a patch that the model was not trained for.
    """
    schedule = Shifted(Constant(patch), offsets=_offsets(program.moved, steps))
    how = {"steps": steps, "schedule": schedule, "check_finite": False}
    unit, largest = _unit(window), 0.0
    theirs = rollout(model, window, **how, allow_untrained=allow_untrained)
    for frame, own in zip(rollout(program, window, **how), theirs, strict=True):
        # NaN on both sides is no agreement: it would be larger than any tolerance.
        found = ((frame - own).abs().flatten(2).amax(dim=2) / unit).max()
        largest = max(largest, float(found.nan_to_num(torch.inf)))
    return largest


def _offsets(moved: Sequence[bool], steps: int) -> list[tuple[int, ...]]:
    """A shift for each step, in cells; none along axes that stay."""
    return [
        tuple((2 * step + 3 * axis * step) * move for axis, move in enumerate(moved))
        for step in range(max(steps, 1))
    ]


def _unit(window: Window) -> Tensor:
    """What differences are measured in, `(B, C)`; 1 for fields that are zero."""
    values = window.fields.transpose(1, 2).flatten(2)
    size = values.square().mean(dim=2).sqrt()
    unit = torch.maximum(values.std(dim=2, correction=0), FLAT * size)
    return torch.where(unit > 0, unit, 1.0)
