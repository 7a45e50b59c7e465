"""The autoregressive rollout: predict, slide the window, ask the schedule again.

This is the only loop that steps a model without gradients. Evaluation, validation, predictions and
users run the same steps, and have one idea of a blow-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from overtone.domain import Domain, Window, require_window
from overtone.errors import OvertoneError, RolloutDiverged
from overtone.models.base import Model
from overtone.schedules import Choice, Schedule, parse_schedule

OnBlowUp = Literal["raise", "drop", "hold"]

GROWTH = 1e15
"""A field that grows by more than this blows up, by what its sample starts from."""
AT_REST = 1e-10
"""A field that starts smaller than this share of its sample's largest one is at rest, and measured
by that share: it is zero, or noise that may well grow by many orders."""


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
    schedule: Schedule | str | int,
    on_blow_up: OnBlowUp = "raise",
    check_finite: bool = True,
    bound: float | Sequence[float] | None = None,
    allow_untrained: bool = False,
    timed: bool = False,
) -> Rollout:
    """Predict `steps` frames, each from those before it.

    The frames come one by one; memory is that of the window, and frames that the caller does not
    keep are gone.

    Args:
        model: predicts the next frame.
        window: where to start, `(B, T, C, *space)`.
        steps: number of frames to predict.
        schedule: patch and shift of each step, or its string form such as `"4-8-16+shift"`, or
            one patch.
        on_blow_up: what happens to a sample whose frame is not finite, or beyond its bound.
            `"raise"`: the rollout ends with an error. `"drop"`: the sample leaves the batch; its
            frames are NaN from there on. `"hold"`: its last valid frame is repeated, and the model
            is called with the whole batch as before.
        check_finite: look for blow-ups at all. Without it no step waits for the device, and
            values that are not finite spread from frame to frame.
        bound: largest absolute value of a field, in physical units; one number for all fields or
            one for each. By default 1e15 times the largest value that each sample starts from.
        allow_untrained: accept patches that the model was not trained for.
        timed: measure how long the model takes, for which each step waits for the device.

    Returns:
        An iterator over frames `(B, C, *space)` in physical units.

    Raises:
        RolloutDiverged: with `"raise"`; it has the step and the length of the valid prefix.
    """
    require_window(window, model.domain if isinstance(model, Model) else None)
    if steps < 0:
        raise OvertoneError(f"steps is {steps}; expected 0 or more")
    if on_blow_up not in get_args(OnBlowUp):
        raise OvertoneError(
            f"on_blow_up is {on_blow_up!r}; expected one of {', '.join(get_args(OnBlowUp))}"
        )
    window = window.last(model.context)
    limits = _limits(bound, window) if check_finite or bound is not None else None
    schedule = parse_schedule(schedule)
    # Other people's models look for NaN, and take patches, as they like.
    call: Callable[..., Tensor] = model
    if isinstance(model, Model):
        call = partial(model, check_finite=check_finite, allow_untrained=allow_untrained)
    return Rollout(call, window, steps, schedule, on_blow_up, limits, timed)


class Rollout(Iterator[Tensor]):
    """The frames of a rollout, and what became of each sample. Made by `rollout`.

    Attributes:
        step: how many frames were made so far.
        choice: patch and shift of the newest frame; None before the first.
        alive: `(B,)`, whether each sample has not blown up.
        seconds: what the model took for the newest frame, if it is `timed`.
    """

    def __init__(
        self,
        model: Callable[..., Tensor],
        window: Window,
        steps: int,
        schedule: Schedule,
        on_blow_up: OnBlowUp,
        limits: Tensor | None,
        timed: bool,
    ):
        self.step, self.seconds = 0, 0.0
        self.choice: Choice | None = None
        device = window.fields.device
        self.alive: Tensor = torch.ones(len(window.fields), dtype=torch.bool, device=device)
        self._model, self._window, self._steps = model, window, steps
        self._schedule, self._on_blow_up = schedule, on_blow_up
        self._limits: Tensor | None = limits
        self._timed = timed

    def __repr__(self) -> str:
        """How far it is, in a line."""
        return (
            f"Rollout({self.step} of {self._steps} steps made, schedule {self._schedule}, "
            f"{int(self.alive.sum())} of {len(self.alive)} samples alive; iterate over it for "
            "frames)"
        )

    def __next__(self) -> Tensor:
        """The next frame, `(B, C, *space)`."""
        if self.step == self._steps:
            raise StopIteration
        window = self._window
        self.choice = self._schedule(self.step).on(window.domain)
        if not len(window.fields):  # all were dropped
            self.step += 1
            return self._whole(window.fields[:, -1])
        with torch.no_grad():
            began = _now(window.fields) if self._timed else 0.0
            with _memory(window, self.choice):
                frame = self._model(window, self.choice.patch, self.choice.shift)
            self.seconds = _now(window.fields) - began if self._timed else 0.0
            if self._limits is not None:
                frame = self._judged(frame)
            self._window = self._window.slide(frame)
        self.step += 1
        return self._whole(frame)

    def _judged(self, frame: Tensor) -> Tensor:
        """What the rollout goes on with of a frame, in which samples may have blown up."""
        assert self._limits is not None
        # NaN is not below any limit.
        good = (frame.abs().flatten(2).amax(dim=2) <= self._limits).all(dim=1)
        if self._on_blow_up == "hold":
            self.alive = good = good & self.alive  # what was lost once stays where it was
        if bool(good.all()):
            return frame
        if self._on_blow_up == "raise":
            _raise(frame, self._limits, self._window.domain, self.step)
        if self._on_blow_up == "hold":
            lost = (~good).reshape(-1, *(1,) * (frame.dim() - 1))
            return torch.where(lost, self._window.fields[:, -1], frame)
        alive = self.alive.clone()
        alive[self.alive] = good
        self.alive = alive
        self._limits = self._limits[good]
        self._window = Window(self._window.fields[good], self._window.domain)
        return frame[good]

    def _whole(self, frame: Tensor) -> Tensor:
        """A frame of all samples, NaN for those that were dropped."""
        if self._on_blow_up != "drop" or len(frame) == len(self.alive):
            return frame
        whole = frame.new_full((len(self.alive), *frame.shape[1:]), torch.nan)
        whole[self.alive] = frame
        return whole


@contextmanager
def _memory(window: Window, choice: Choice) -> Generator[None]:
    """Within it, too little memory is an error that says what it was for."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), "")
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and (
            "DefaultCPUAllocator" not in reason
        ):
            raise
        raise OvertoneError(
            f"a step at patch {choice.patch} of {len(window.fields)} samples on a grid of "
            f"{window.domain.shape} cells does not fit into memory; predict fewer samples at once, "
            f"or at a coarser patch ({reason})"
        ) from error


def _now(values: Tensor) -> float:
    """Seconds on the clock that counts, once the device has done what it was given.

    On one core of a CPU that is the core's own time, which does not depend on what else the machine
    is doing. Elsewhere it is the time that passes.
    """
    if values.device.type != "cpu":
        torch.accelerator.synchronize(values.device)
    elif torch.get_num_threads() == 1:
        return time.thread_time()
    return time.perf_counter()


def _limits(bound: float | Sequence[float] | None, window: Window) -> Tensor:
    """The largest absolute value of each sample and field, `(B, C)`."""
    fields, num_fields = window.fields, len(window.domain.fields)
    if bound is None:
        own = fields.abs().amax(dim=(1, *range(3, fields.dim())))
        limits = GROWTH * torch.maximum(own, AT_REST * own.amax(dim=1, keepdim=True))
        # A sample that is zero everywhere tells nothing; it may be anything finite.
        return torch.where(limits > 0, limits, torch.inf).clamp(max=torch.finfo(fields.dtype).max)
    values = (bound,) * num_fields if isinstance(bound, (int, float)) else tuple(bound)
    if len(values) != num_fields:
        raise OvertoneError(f"bound is {bound!r}; expected one number, or {num_fields} of them")
    return fields.new_tensor(values).expand(len(fields), -1)


def _raise(frame: Tensor, limits: Tensor, domain: Domain, step: int) -> None:
    """Say which fields of which samples blew up, and how."""
    finite = frame.isfinite().flatten(2).all(dim=2)
    bad = ~finite if not bool(finite.all()) else frame.abs().flatten(2).amax(dim=2) > limits
    what = "is not finite" if not bool(finite.all()) else "exceeds its bound"
    samples = sorted({int(i) for i in bad.nonzero()[:, 0]})
    names = [domain.fields[i] for i in sorted({int(i) for i in bad.nonzero()[:, 1]})]
    raise RolloutDiverged(
        f"at rollout step {step} the field {', '.join(names)} {what} in sample(s) {samples}; the "
        f"{step} frames before it are valid. Try a schedule with finer patches or fewer steps",
        step=step,
        num_valid=step,
    )
