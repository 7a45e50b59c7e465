"""The autoregressive rollout: predict, slide the window, ask the schedule again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from overtone.domain import Domain, Window
from overtone.errors import OvertoneError, RolloutDiverged
from overtone.schedules import Schedule


class Stepper(Protocol):
    """Anything that predicts the next frame of a window at a patch and a shift."""

    @property
    def context(self) -> int:
        """Largest number of frames it looks back on."""
        ...

    def __call__(
        self, window: Window, patch: int | Sequence[int], shift: int | Sequence[int] = 0
    ) -> Tensor:
        """The next frame, `(B, C, *space)`."""
        ...


def rollout(
    model: Stepper,
    window: Window,
    *,
    steps: int,
    schedule: Schedule,
    check_finite: bool = True,
    bound: float | Sequence[float] | None = None,
) -> Iterator[Tensor]:
    """Yield `steps` frames, each predicted from those before it.

    Memory is that of the window: frames that the caller does not keep are gone.

    Args:
        model: predicts the next frame.
        window: where to start, `(B, T, C, *space)`.
        steps: number of frames to predict.
        schedule: patch and shift of each step.
        check_finite: stop at the first frame that holds a NaN or infinity.
        bound: stop when a field's absolute value exceeds it, in physical units; one number for all
            fields or one for each.

    Yields:
        Frames `(B, C, *space)` in physical units.

    Raises:
        RolloutDiverged: with the step and the length of the valid prefix.
    """
    if steps < 0:
        raise OvertoneError(f"steps is {steps}; expected 0 or more")
    limits = _limits(bound, window)
    window = window.last(model.context)
    for step in range(steps):
        choice = schedule(step).on(window.domain)
        with torch.no_grad():
            frame = model(window, choice.patch, choice.shift)
            _require_valid(frame, window.domain, step, check_finite, limits)
            window = window.slide(frame)
        yield frame


def _limits(bound: float | Sequence[float] | None, window: Window) -> Tensor | None:
    if bound is None:
        return None
    num_fields = len(window.domain.fields)
    values = (bound,) * num_fields if isinstance(bound, (int, float)) else tuple(bound)
    if len(values) != num_fields:
        raise OvertoneError(f"bound is {bound!r}; expected one number, or {num_fields} of them")
    return window.fields.new_tensor(values)


def _require_valid(
    frame: Tensor, domain: Domain, step: int, check_finite: bool, limits: Tensor | None
) -> None:
    space = tuple(range(2, frame.dim()))
    if check_finite:
        _stop_at(~frame.isfinite().all(dim=space), domain, step, "is not finite")
    if limits is not None:
        _stop_at(frame.abs().amax(dim=space) > limits, domain, step, "exceeds its bound")


def _stop_at(bad: Tensor, domain: Domain, step: int, what: str) -> None:
    """Raise if any entry of `bad` (B, C) is true."""
    if not bool(bad.any()):
        return
    samples = sorted({int(i) for i in bad.nonzero()[:, 0]})
    names = [domain.fields[i] for i in sorted({int(i) for i in bad.nonzero()[:, 1]})]
    raise RolloutDiverged(
        f"at rollout step {step} the field {', '.join(names)} {what} in sample(s) {samples}; the "
        f"{step} frames before it are valid. Try a schedule with finer patches or fewer steps",
        step=step,
        num_valid=step,
    )
