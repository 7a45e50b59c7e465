"""What one page watches: one or two lanes from the same start, seen in one way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from overtone.domain import Domain
from overtone.errors import OvertoneError
from overtone.metrics import vrmse
from overtone.viewer.lane import Lane, State
from overtone.viewer.measures import finite, measure, spectrum
from overtone.viewer.messages import (
    MAX_CELLS,
    Back,
    Exact,
    Look,
    Open,
    Plane,
    Push,
    Show,
    Steer,
    Step,
    View,
    pack,
)
from overtone.viewer.stage import Stage

SLICE = 0.25
"""Seconds after which a request for many steps is answered with those made, for others' sake."""
REACH = 1000.0
"""How far pushes may take a field, in units of the largest value on its scale."""
TRACE = 256
"""Steps of one axis that are shown one after the other."""
NUMBERS = ("error", "errors", "seams", "patch", "start", "tokens", "ms", "estimate")
"""What is said of a lane at each step."""


class Session:
    """The lanes of one page.

    Args:
        stage: what there is to see.
        memory: bytes for the states of all lanes.
    """

    def __init__(self, stage: Stage, *, memory: int = 64_000_000):
        self.stage, self.memory = stage, memory
        self.lanes: list[Lane] = []
        self.trajectory = self.start = 0
        self.view = View()
        self._does: dict[type, Callable[[Any], bytes]] = {
            Open: self._open,
            Step: self._step,
            Show: self._show,
            Back: self._back,
            Steer: self._steer,
            Look: self._look,
            Push: self._push,
            Exact: self._exact,
        }

    @property
    def step(self) -> int:
        """How many steps were made; a lane that stopped may have made fewer."""
        return max(lane.state.step for lane in self.lanes)

    @property
    def domain(self) -> Domain:
        """What the fields live on."""
        return self.stage.domain(self.trajectory)

    def answer(self, message: Any) -> bytes:
        """Do what a message asks for; mistakes are an `OvertoneError`."""
        if not self.lanes and not isinstance(message, Open):
            raise OvertoneError("nothing was opened yet; send 'open' first")
        if isinstance(message, Steer | Push | Exact) and message.lane >= len(self.lanes):
            raise OvertoneError(f"lane {message.lane} was asked for; there is one lane, 0")
        return self._does[type(message)](message)

    def _open(self, message: Open) -> bytes:
        trajectory = message.trajectory
        start = self.stage.require_start(trajectory, message.start)
        for track in message.lanes:
            if track.model >= len(self.stage.candidates):
                raise OvertoneError(
                    f"model {track.model} was asked for; there are {len(self.stage.candidates)}, "
                    "counted from 0"
                )
        view = _visible(message.view, self.stage.domain(trajectory))
        lanes = [
            Lane(
                candidate := self.stage.candidates[track.model],
                self.stage.window(candidate, trajectory, start),
                track.schedule,
                memory=self.memory // len(message.lanes),
                estimate=message.estimate,
            )
            for track in message.lanes
        ]
        self.lanes, self.trajectory, self.start, self.view = lanes, trajectory, start, view
        return self._shown(message.id)

    def _step(self, message: Step) -> bytes:
        points, began = [], time.monotonic()
        for _ in range(message.count):
            moved = [lane.advance() for lane in self.lanes]  # one that stopped stays where it was
            if not any(moved):
                break
            points.append(self._point(self.step))
            if time.monotonic() - began > SLICE:
                break
        return self._shown(message.id, points)

    def _show(self, message: Show) -> bytes:
        return self._shown(message.id, step=min(message.step, self.step))

    def _back(self, message: Back) -> bytes:
        for lane in self.lanes:
            lane.back(message.step)
        return self._shown(message.id)

    def _steer(self, message: Steer) -> bytes:
        self.lanes[message.lane].steer(message.schedule)
        return self._shown(message.id)

    def _look(self, message: Look) -> bytes:
        self.view = _visible(message.view, self.domain)
        return self._shown(message.id)

    def _push(self, message: Push) -> bytes:
        domain = self.domain
        outside = [c >= n for c, n in zip(message.cell, domain.shape, strict=False)]
        if len(message.cell) != domain.ndim or any(outside):
            raise OvertoneError(f"cell {message.cell} is not on a grid of {domain.shape} cells")
        if message.field >= len(domain.fields):
            raise OvertoneError(f"field {message.field} was asked for; there are {domain.fields}")
        scale = self.stage.scale(self.trajectory, self.start, message.field)
        self.lanes[message.lane].push(
            message.field,
            message.cell,
            radius=message.radius,
            strength=message.strength,
            most=REACH * max(abs(scale["low"]), abs(scale["high"])),
        )
        return self._shown(message.id)

    def _exact(self, message: Exact) -> bytes:
        lane = self.lanes[message.lane]
        plane = Plane({"kind": "exact"}, lane.state.frames[-1].cpu().float().numpy(), bits=32)
        return pack({"type": "exact", "id": message.id, "step": lane.state.step}, [plane])

    def truth(self, step: int) -> Tensor | None:
        """The true frame of a step `(C, *space)`; None past the end of the data."""
        number = self.start + self.stage.context - 1 + step
        return self.stage.true_frame(self.trajectory, number)

    def _point(self, step: int) -> dict[str, Any]:
        """The numbers of a step, for the curves."""
        truth, first = self.truth(step), self.truth(0)
        still = None
        if truth is not None and first is not None:
            still = finite(vrmse(first, truth, ndim=self.domain.ndim).mean().item())
        return {
            "step": step,
            "truth": truth is not None,
            "persistence": still,
            "lanes": [self._numbers(lane, step) for lane in self.lanes],
        }

    def _numbers(self, lane: Lane, step: int) -> dict[str, Any]:
        state = lane.at(step)
        if state.step < step:  # it stopped before
            return dict.fromkeys(NUMBERS)
        choice = state.choice if lane.candidate.patched else None
        found = measure(state.frames[-1].cpu(), self.truth(step), choice, self.domain)
        took = None if state.choice is None else finite(1e3 * state.seconds)
        told = {"ms": took, "estimate": told_estimate(state)}
        return {name: told[name] if name in told else getattr(found, name) for name in NUMBERS}

    def _shown(
        self, number: int, points: list[dict[str, Any]] | None = None, step: int | None = None
    ) -> bytes:
        """A step as it is seen, the last one by default.

        Args:
            number: of the message that this answers.
            points: numbers of all steps that were made for it; those of this step if None.
            step: which.
        """
        step = self.step if step is None else step
        domain, truth, view = self.domain, self.truth(step), self.view
        header = {
            "type": "frame",
            "id": number,
            "step": step,
            "head": self.step,
            "oldest": max(lane.oldest for lane in self.lanes),
            "trajectory": self.trajectory,
            "start": self.start,
            "truth": truth is not None,
            "view": view.model_dump(),
            "scale": self.stage.scale(self.trajectory, self.start, view.field),
            "domain": domain.to_dict() | {"periodic": list(domain.periodic)},
            "points": [self._point(step)] if points is None else points,
            "lanes": [self._about(lane, step, truth) for lane in self.lanes],
        }
        planes = self._trace(step) if domain.ndim == 1 else self._planes(step, truth)
        return pack(header, planes)

    def _planes(self, step: int, truth: Tensor | None) -> list[Plane]:
        """Truth and residuals of a step; past the end of the data the predictions."""
        view, domain = self.view, self.domain
        planes = [] if truth is None else [Plane({"kind": "truth"}, seen(truth, view, domain))]
        for place, lane in enumerate(self.lanes):
            frame = seen(lane.at(step).frames[-1].cpu(), view, domain)
            kind = "prediction" if truth is None else "residual"
            values = frame if truth is None else frame - planes[0].values
            planes.append(Plane({"kind": kind, "lane": place}, values))
        return planes

    def _trace(self, step: int) -> list[Plane]:
        """Truth and predictions of one axis, the latest steps one after the other."""
        first = max(0, step + 1 - TRACE, *(lane.oldest for lane in self.lanes))
        steps, planes = range(first, step + 1), []
        truths = [frame for s in steps if (frame := self.truth(s)) is not None]
        rows = [(None, truths)] if truths else []
        rows += [
            (place, [lane.at(s).frames[-1].cpu() for s in steps])
            for place, lane in enumerate(self.lanes)
        ]
        for place, frames in rows:
            about = {"kind": "truth"} if place is None else {"kind": "prediction", "lane": place}
            values = np.stack([seen(frame, self.view, self.domain) for frame in frames])
            planes.append(Plane(about, values))
        return planes

    def _about(self, lane: Lane, step: int, truth: Tensor | None) -> dict[str, Any]:
        state, view = lane.at(step), self.view
        power = None
        if truth is not None and 0 < state.step == step:
            frame = state.frames[-1].cpu()
            power = spectrum(frame, truth, view.field, view.along, self.domain)
        return {
            "model": self.stage.candidates.index(lane.candidate),
            "schedule": str(lane.schedule),
            "step": state.step,  # earlier than what is seen where it stopped before
            "stopped": lane.stopped if step >= lane.state.step else "",
            "pushed": state.pushed,
            "spectrum": power,
        }


def told_estimate(state: State) -> list[float | None] | None:
    """The error that is expected and its bounds, for JSON."""
    if state.estimate is None:
        return None
    return [None if value is None else finite(value) for value in state.estimate]


def seen(frame: Tensor, view: View, domain: Domain) -> np.ndarray:
    """What a view shows of a frame `(C, *space)`: one or two axes, float64."""
    values = frame[view.field].double().numpy()
    if domain.ndim == 3:
        values = (
            values.mean(axis=view.across)
            if view.mode == "mean"
            else np.take(values, view.index, axis=view.across)
        )
    every = 1
    while values[(slice(None, None, every),) * values.ndim].size > MAX_CELLS:
        every += 1
    return values[(slice(None, None, every),) * values.ndim]


def _visible(view: View, domain: Domain) -> View:
    """A view that the domain has."""
    if view.field >= len(domain.fields):
        raise OvertoneError(f"field {view.field} was asked for; there are {len(domain.fields)}")
    if view.along >= domain.ndim:
        raise OvertoneError(f"axis {view.along} was asked for; there are {domain.ndim}")
    if domain.ndim == 3 and view.index >= domain.shape[view.across]:
        raise OvertoneError(
            f"plane {view.index} was asked for; axis {view.across} has "
            f"{domain.shape[view.across]} cells"
        )
    return view
