"""One rollout that its watcher steers: other schedules while it runs, back, and a push.

All steps are `rollout`'s. Another schedule, going back and a push begin a new rollout from the
window in question, with the record of the steps before it: so a schedule is asked for the step
counted from the start, as if it had been followed from there, and a controller, and what is
estimated, go on with what they know.

A lane keeps the latest states for going back, within a number of bytes. A state's window shares
its frames with its neighbours', so that a step costs one frame, and a push, which changes all
frames of a window, as many as the context has.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from overtone.domain import Domain, Window
from overtone.errors import OvertoneError, PatchError
from overtone.evaluate import Candidate
from overtone.grid import PatchGrid
from overtone.rollout import (
    Controller,
    ErrorEstimate,
    Made,
    Rule,
    parse_rule,
    rollout,
)
from overtone.rollout.estimates import LEVEL
from overtone.rollout.loop import task_of
from overtone.schedules import Choice

LONGEST = 1_000_000
"""Steps after which a rollout ends."""
LOOK_AHEAD = 64
"""Steps of a schedule whose patches must be known to the model before it is followed."""


@dataclass(frozen=True)
class State:
    """Where a lane was after a step.

    Attributes:
        step: counted from the start, which is 0.
        frames: the window, T frames `(C, *space)`; the last is what is shown.
        choice: patch and shift of the step; None at the start.
        seconds: what the model took.
        estimate: the error that is expected without seeing the truth, and the bounds of its 90 %
            interval, where they are known; None unless it was asked for.
        pushed: whether the window was changed by hand, here or before.
        cost: frames that no other state shares.
    """

    step: int
    frames: tuple[Tensor, ...]
    choice: Choice | None = None
    seconds: float = 0.0
    estimate: tuple[float, float | None, float | None] | None = None
    pushed: bool = False
    cost: int = 1


class Lane:
    """A model's rollout from one window.

    Args:
        candidate: the model.
        window: where to start, one sample `(1, T, C, *space)`.
        schedule: followed first, or its string form; or a controller.
        memory: bytes for the states that are kept.
        estimate: tell what errors are expected, which costs a second, coarser call at each step;
            without effect on a model that has no patches.

    Attributes:
        stopped: why there are no more steps; empty while there are.
    """

    def __init__(
        self,
        candidate: Candidate,
        window: Window,
        schedule: Rule | str,
        *,
        memory: int,
        estimate: bool = False,
    ):
        self.candidate, self.domain = candidate, window.domain
        self._estimate = estimate and candidate.patched
        self.stopped = ""
        frames = tuple(window.fields[0])
        size = frames[0].numel() * frames[0].element_size()
        self._most = max(2 * len(frames) + 2, memory // size)
        self._states: deque[State] = deque()
        self._cost = 0
        self._keep(State(0, frames, cost=len(frames)))
        self._made: list[Made] = []
        self.schedule = followable(candidate, schedule, self.domain, 0)
        self._begin()

    @property
    def state(self) -> State:
        """Where it is."""
        return self._states[-1]

    @property
    def oldest(self) -> int:
        """The earliest step that it can go back to."""
        return self._states[0].step

    def at(self, step: int) -> State:
        """Where it was after a step that is still kept, or where it stopped before it."""
        if step < self.oldest:
            raise OvertoneError(
                f"step {step} is no longer kept; the earliest is {self.oldest}. Start again to go "
                "back further"
            )
        return self._states[min(step - self.oldest, len(self._states) - 1)]

    def advance(self) -> bool:
        """Make one step; False, with `stopped`, where there is none."""
        if self.stopped:
            return False
        try:
            frame = next(self._rollout)
        except OvertoneError as error:
            self.stopped = str(error)
            return False
        except StopIteration:
            self.stopped = f"a rollout here ends after {LONGEST:,} steps; start again"
            return False
        before = self.state
        self._made.append(self._rollout.records[0][-1])
        self._keep(
            State(
                before.step + 1,
                (*before.frames[1:], frame[0]),
                self._rollout.choice,
                self._rollout.seconds,
                _numbers(self._rollout.estimate),
                before.pushed,
            )
        )
        return True

    def steer(self, schedule: str) -> None:
        """Follow another schedule from the next step on."""
        self.schedule = followable(self.candidate, schedule, self.domain, self.state.step)
        self._begin()

    def back(self, step: int) -> None:
        """Return to a step that is still kept; what came after it is forgotten."""
        if self.at(step) is self.state:
            return
        while self.state.step > step:
            self._cost -= self._states.pop().cost
        del self._made[step:]
        self._begin()

    def push(
        self,
        channel: int,
        cell: Sequence[int],
        *,
        radius: float,
        strength: float,
        most: float = math.inf,
    ) -> None:
        """Add a bump to a field, to all frames of the window alike: nothing moves by it alone.

        Args:
            channel: the field.
            cell: the bump's centre, one number for each axis.
            radius: of the bump, its standard deviation in cells.
            strength: its height in standard deviations of the field. A field that is positive
                throughout is multiplied instead, and stays so.
            most: what would take the field beyond this value is refused, as is what is not finite.
        """
        state = self.state
        shape = bump(self.domain, cell, radius).to(state.frames[-1])
        frames = tuple(frame.clone() for frame in state.frames)
        values = torch.stack([frame[channel] for frame in frames])
        positive = bool((values > 0).all())
        spread = (values.log() if positive else values).std().item()
        for frame in frames:
            height = strength * spread * shape
            frame[channel] = frame[channel] * height.exp() if positive else frame[channel] + height
            if not bool(frame[channel].isfinite().all()) or frame[channel].abs().max() > most:
                raise OvertoneError(
                    f"another push would take {self.domain.fields[channel]} beyond {most:.3g}; go "
                    "on from here, go back, or start again"
                )
        self._cost -= self._states.pop().cost
        self._keep(replace(state, frames=frames, pushed=True, cost=len(frames)))
        self._begin()

    def _keep(self, state: State) -> None:
        self._states.append(state)
        self._cost += state.cost
        while len(self._states) > 1 and self._cost > self._most:
            self._cost -= self._states.popleft().cost

    def _begin(self) -> None:
        """Go on from the current state, whatever stopped it before."""
        self.stopped = ""
        known = all(made.fields for made in self._made)
        # A controller that takes over knows nothing of steps that nobody has judged.
        fresh = isinstance(self.schedule, Controller) and not known
        self._rollout = rollout(
            self.candidate.model,
            Window(torch.stack(self.state.frames)[None], self.domain),
            steps=LONGEST - self.state.step,
            schedule=self.schedule,
            estimate=self._estimate and known,
            allow_untrained=self.candidate.allow_untrained,
            timed=True,
            records=None if fresh else [self._made],
        )


def _numbers(found: ErrorEstimate | None) -> tuple[float, float | None, float | None] | None:
    """An estimate and its bounds, of the one sample that a lane has."""
    if found is None:
        return None
    low, high = found.bounds.get(LEVEL, (None, None))
    bounds = (None if low is None else low.item(), None if high is None else high.item())
    return found.value.item(), *bounds


def bump(domain: Domain, cell: Sequence[int], radius: float) -> Tensor:
    """A Gaussian of height 1 around a cell `(*space)`; it goes round periodic axes."""
    total = torch.ones(domain.shape)
    for axis, (centre, n, wraps) in enumerate(
        zip(cell, domain.shape, domain.periodic, strict=True)
    ):
        away = (torch.arange(n) - centre).abs()
        away = torch.minimum(away, n - away) if wraps else away
        along = (-0.5 * (away / radius).square()).exp()
        total = total * along.reshape(-1, *(1,) * (domain.ndim - axis - 1))
    return total


def followable(candidate: Candidate, schedule: Rule | str, domain: Domain, step: int) -> Rule:
    """A schedule that the model can follow from a step on, as far as can be seen."""
    chosen = parse_rule(schedule)
    if isinstance(chosen, Controller):
        chosen.on(task_of(candidate.model, domain, LONGEST))  # refuses what it can't steer
        return chosen
    if not candidate.patched:
        return chosen
    patches = {chosen(step).patch: None}
    for later in range(step + 1, step + LOOK_AHEAD):
        try:
            patches[chosen(later).patch] = None
        except PatchError:  # a schedule that is written out ends; the rollout will say so
            break
    if reason := candidate.objection(list(patches), domain):
        known = ", ".join(map(str, candidate.model.patches))
        raise PatchError(
            f"schedule {chosen} can't be followed by '{candidate.name}', {reason}; it knows {known}"
        )
    for patch in patches:
        PatchGrid.lay(domain, patch)  # refuses what the grid can't hold
    return chosen
