"""The autoregressive rollout: predict, slide the window, ask the schedule or controller again.

This is the only loop that steps a model without gradients. Evaluation, validation, predictions and
users run the same steps, and have one idea of a blow-up. How one step is made, and redone where a
controller asks for it, is in `steering`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from overtone.domain import Domain, Window, require_window
from overtone.errors import OvertoneError, PatchError, RolloutDiverged
from overtone.models.base import Model
from overtone.models.calibration import Calibration
from overtone.models.storage import fingerprint
from overtone.rollout.controllers import Controller, Made, Record, Rule, Task, parse_rule
from overtone.rollout.estimates import (
    PROBES,
    Accumulator,
    Against,
    ErrorEstimate,
    distance,
    ordered,
    parse_against,
)
from overtone.rollout.steering import Steering, Step, memory, num_tokens
from overtone.schedules import Choice, Patch, Planned, Schedule

OnBlowUp = Literal["raise", "drop", "hold"]
"""What happens to a sample that blows up, see `rollout`."""

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
    schedule: Rule | str | int,
    estimate: bool | str | Schedule = False,
    on_blow_up: OnBlowUp = "raise",
    check_finite: bool = True,
    bound: float | Sequence[float] | None = None,
    allow_untrained: bool = False,
    timed: bool = False,
    records: Sequence[Record] | None = None,
) -> Rollout:
    """Predict `steps` frames, each from those before it.

    The frames come one by one; memory is that of the window, and frames that the caller does not
    keep are gone.

    Args:
        model: predicts the next frame.
        window: where to start, `(B, T, C, *space)`.
        steps: number of frames to predict.
        schedule: patch and shift of each step, or its string form such as `"4-8-16+shift"`, or
            one patch; or a controller, such as `"adaptive:0.02"`, which decides as it goes.
        estimate: tell the error of every frame, without the truth, in the rollout's `estimate`.
            What each step is compared with: `"patch"` (the usual, True), `"shift"`, or the schedule
            of a second rollout; see `estimates`. A controller compares its steps in its own way.
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
        records: those of an earlier rollout, which this one goes on with: `window` is where it
            ended, and `steps` are further ones.

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
    rule, against = parse_rule(schedule), parse_against(estimate)
    if reason := plan_objection(rule, model, window.domain):
        raise PatchError(reason)
    # Other people's models look for NaN, and take patches, as they like.
    call: Callable[..., Tensor] = model
    if isinstance(model, Model):
        call = partial(model, check_finite=check_finite, allow_untrained=allow_untrained)
    options = _Options(on_blow_up, limits, timed)
    earlier = _earlier(records, len(window.fields))
    if isinstance(rule, Schedule) and against is None:
        steering = Steering(rule, None, (), None, earlier)
        return Rollout(call, window, steps, steering, options)
    means = _means(model, window.domain)
    return _judged_rollout(rule, against, means, call, window, steps, options, earlier)


def _judged_rollout(
    rule: Rule,
    against: Against | None,
    means: tuple[tuple[Patch, ...], Calibration | None],
    call: Callable[..., Tensor],
    window: Window,
    steps: int,
    options: _Options,
    earlier: Sequence[Record],
) -> Rollout:
    """A rollout whose frames are compared with something.

    Args:
        rule: what decides on the steps.
        against: what they are compared with; None for a controller's own comparison.
        means: patches to compare and to choose from, and what they are worth.
        call: makes frames.
        window, steps: of the rollout.
        options: what else was asked for.
        earlier: of each sample, the steps before.
    """
    patches, calibration = means
    name = str(rule)
    if isinstance(rule, Controller):
        rule = rule.on(_task(means, window.domain, steps + len(earlier[0])))
    kind = against if isinstance(against, str) and isinstance(rule, Schedule) else None
    steering = Steering(rule, kind, patches, calibration, earlier)
    second = None
    if isinstance(against, Schedule):
        if earlier[0]:
            raise OvertoneError(
                "a rollout that goes on can't be compared with a second one, whose frames are "
                "gone; estimate it by 'patch' or 'shift'"
            )
        own = _Options("hold", options.limits, False)
        second = Rollout(call, window, steps, Steering(against, None, (), None, earlier), own)
    elif isinstance(rule, Controller):
        against = PROBES[0]
    assert against is not None
    sums = _sums(earlier, window.domain)
    judge = Accumulator(name, against, window.domain, calibration, len(window.fields), sums)
    return Rollout(call, window, steps, steering, options, judge, second)


def plan_objection(rule: Rule, model: object, domain: Domain) -> str | None:
    """Why a model can't follow a plan on a domain; None if it can, or if there is no plan."""
    if not isinstance(rule, Planned):
        return None
    return rule.objection(fingerprint(model), domain)


@dataclass(frozen=True)
class _Options:
    on_blow_up: OnBlowUp
    limits: Tensor | None
    timed: bool


def _earlier(records: Sequence[Record] | None, batch: int) -> list[Record]:
    """The steps that were made before, of each sample."""
    if records is None:
        return [()] * batch
    if len(records) != batch or len({len(record) for record in records}) != 1:
        raise OvertoneError(
            f"records are of {len(records)} samples and {sorted({*map(len, records)})} steps; "
            f"expected one for each of {batch} samples, all of as many steps"
        )
    return [*records]


def _sums(records: Sequence[Record], domain: Domain) -> Tensor | None:
    """Sums of squares `(B, C)` of what earlier steps have added; None if there are none."""
    if not records or not records[0]:
        return None
    if any(len(made.fields) != len(domain.fields) for record in records for made in record):
        raise OvertoneError(
            "the records are of a rollout without estimates, so errors so far are not known; go on "
            "without, or estimate from the first step on"
        )
    fields = torch.tensor([[made.fields for made in record] for record in records])
    return fields.double().square().sum(dim=1)


def _means(model: Stepper, domain: Domain) -> tuple[tuple[Patch, ...], Calibration | None]:
    """The patches to compare and to choose from, the finest first, and what they are worth."""
    patches = getattr(model, "patches", ())
    if not patches or (isinstance(model, Model) and not model.patched):
        raise OvertoneError(
            f"the model ({type(model).__name__}) has no patches, so a step can't be made in two "
            "ways: estimates and controllers need a model with `patches`"
        )
    calibration = getattr(model, "calibration", None)
    found = calibration.on(domain) if isinstance(calibration, Calibration) else None
    return ordered(patches, domain.ndim), found


def task_of(model: Stepper, domain: Domain, steps: int) -> Task:
    """What a controller is told of a rollout of a model, before it begins."""
    return _task(_means(model, domain), domain, steps)


def _task(means: tuple[tuple[Patch, ...], Calibration | None], domain: Domain, steps: int) -> Task:
    patches, calibration = means
    known = {patch: calibration.error_of(patch) for patch in patches} if calibration else {}
    return Task(domain, steps, patches, {patch: e for patch, e in known.items() if e})


class Rollout(Iterator[Tensor]):
    """The frames of a rollout, and what became of each sample. Made by `rollout`.

    Attributes:
        step: how many frames were made so far.
        choice: patch and shift of the newest frame; None before the first. Where a controller
            chose for each sample, that of the first sample which is left; `choices` has all.
        choices: of each sample that was left before the newest frame, None of the others.
        alive: `(B,)`, whether each sample has not blown up.
        seconds: what the model took for the newest frame, if it is `timed`.
        estimate: how large the newest frame's error is thought to be; None unless asked for.
    """

    def __init__(
        self,
        model: Callable[..., Tensor],
        window: Window,
        steps: int,
        steering: Steering,
        options: _Options,
        judge: Accumulator | None = None,
        second: Rollout | None = None,
    ):
        self.step, self.seconds = 0, 0.0
        self.choice: Choice | None = None
        self.choices: tuple[Choice | None, ...] = (None,) * len(window.fields)
        self.estimate: ErrorEstimate | None = None
        device = window.fields.device
        self.alive: Tensor = torch.ones(len(window.fields), dtype=torch.bool, device=device)
        self._model, self._window, self._steps = model, window, steps
        self._steering, self._judge, self._second = steering, judge, second
        self._on_blow_up = options.on_blow_up
        self._limits: Tensor | None = options.limits
        self._timed = options.timed
        self._left = [*range(len(window.fields))]

    @property
    def records(self) -> tuple[tuple[Made, ...], ...]:
        """For each sample, its steps so far: choices, errors where estimated, and tokens."""
        return tuple(tuple(record) for record in self._steering.records)

    @property
    def tokens(self) -> float:
        """Spent so far for one sample, comparisons included, mean over samples."""
        spent = [sum(made.tokens for made in record) for record in self._steering.records]
        second = 0.0 if self._second is None else self._second.tokens
        return sum(spent) / max(len(spent), 1) + second

    @property
    def window(self) -> Window:
        """The latest frames of the samples that are left: where a further rollout starts."""
        return self._window

    def __repr__(self) -> str:
        """How far it is, in a line."""
        return (
            f"Rollout({self.step} of {self._steps} steps made, schedule {self._steering.rule}, "
            f"{int(self.alive.sum())} of {len(self.alive)} samples alive; iterate over it for "
            "frames)"
        )

    def __next__(self) -> Tensor:
        """The next frame, `(B, C, *space)`."""
        if self.step == self._steps:
            raise StopIteration
        window = self._window
        if not self._left:  # all were dropped
            self.step += 1
            return self._whole(window.fields[:, -1])
        before = self._left
        with torch.no_grad():
            began, step = (_now(window.fields) if self._timed else 0.0), None
            choice = self._steering.plain(window.domain, before)
            if choice is not None:
                with memory(window, choice):
                    frame = self._model(window, choice.patch, choice.shift)
                self._steering.note(window.domain, before, choice)
            else:
                step = self._steering.step(self._model, window, before)
                frame = step.frame
            self.seconds = _now(window.fields) - began if self._timed else 0.0
            self._note(before)
            if self._limits is not None:
                frame = self._judged(frame)
            self._window = self._window.slide(frame)
            if self._judge is not None:
                self._estimate(self._judge, frame, before, step)
        self.step += 1
        return self._whole(frame)

    def _note(self, rows: list[int]) -> None:
        """Say what the newest frame was made with."""
        every: list[Choice | None] = [None] * len(self.alive)
        for row in rows:
            every[row] = self._steering.records[row][-1].choice
        self.choice, self.choices = every[rows[0]], tuple(every)

    def _estimate(
        self, judge: Accumulator, frame: Tensor, before: list[int], step: Step | None
    ) -> None:
        """Compare the newest frame with its step's probe, or with the second rollout's.

        Args:
            judge: what is known of the steps before.
            frame: of the samples that are left.
            before: the samples that were left before the step.
            step: how it was made, where it was compared with something.
        """
        held = [place for place, row in enumerate(self._left) if bool(self.alive[row])]
        rows = [self._left[place] for place in held]
        frame = frame[held]
        if self._second is not None:
            other = next(self._second)[rows]
            choice = self._second.choice
            assert choice is not None
            difference = other - frame
            errors = distance(other, frame, self._window.domain.ndim)
            tokens = num_tokens(self._window.domain, choice) + (step.tokens if step else 0.0)
        else:
            assert step is not None
            kept = [before.index(row) for row in rows]
            difference, tokens = step.difference[kept], step.tokens
            errors = torch.tensor([step.made[place].fields for place in kept])
            errors = errors.reshape(len(kept), -1)
        number = len(self._steering.records[before[0]])
        self.estimate = judge.add(number, torch.tensor(rows).long(), errors, difference, tokens)

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
        self._left = [row for place, row in enumerate(self._left) if bool(good[place])]
        self._window = Window(self._window.fields[good], self._window.domain)
        return frame[good]

    def _whole(self, frame: Tensor) -> Tensor:
        """A frame of all samples, NaN for those that were dropped."""
        if self._on_blow_up != "drop" or len(frame) == len(self.alive):
            return frame
        whole = frame.new_full((len(self.alive), *frame.shape[1:]), torch.nan)
        whole[self.alive] = frame
        return whole


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
