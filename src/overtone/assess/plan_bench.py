"""Where schedules are tried: rollouts from trajectories of the validation split.

Schedules that begin alike share their beginning: the rollouts of many schedules are the branches of
one tree, and every stretch of it is computed once. What a rollout has come to is its window, so a
branch goes on from there.

A trajectory may be started from at several frames, a *flight* each. Flights of one trajectory are
alike, so their errors are averaged before trajectories are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.domain import Domain, Window
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.trajectories import Trajectories
from overtone.metrics import vrmse
from overtone.rollout import rollout
from overtone.schedules import Choice, Schedule

BATCH = 8
"""Flights that are predicted at once, at most."""
MAX_BYTES = 256e6
"""True frames that are in memory at once, for as many flights as that allows."""
APART = 4
"""Flights of one trajectory start at least this part of a rollout apart."""


@dataclass(frozen=True)
class Flight:
    """Where a rollout starts.

    Attributes:
        trajectory: its number in the split.
        first: the frame that is predicted first.
    """

    trajectory: int
    first: int


class Replay(Schedule):
    """Choices that are known already, one for each step."""

    def __init__(self, choices: Sequence[Choice]):
        self._choices = tuple(choices)

    def __call__(self, step: int) -> Choice:
        """The choice at a step."""
        return self._choices[step]

    def __str__(self) -> str:
        return f"{len(self._choices)} choices"


@dataclass(frozen=True, eq=False)
class Crew:
    """Flights that are predicted together.

    Attributes:
        start: where they begin, `(B, T, C, *space)`.
        truth: the frames to compare with, `(steps, B, C, *space)`.
        places: their numbers among the flights that were asked for.
    """

    start: Window
    truth: Tensor
    places: list[int]


class Bench:
    """Flights of a model over the trajectories of a split.

    Args:
        candidate: the model, on its device.
        truth: the trajectories.
        steps: length of the rollouts.
        starts: flights of each trajectory, at most; fewer where there is no room.
        seed: of the order of the trajectories. The first flights are of different ones.
        device: where to compute.
        tick: called after every step that was computed.

    Attributes:
        flights: all of them.
        steps: as given.
    """

    def __init__(
        self,
        candidate: Candidate,
        truth: Trajectories,
        *,
        steps: int,
        starts: int = 1,
        seed: int = 0,
        device: str = "cpu",
        tick: Callable[[], None] = lambda: None,
    ):
        self.candidate, self.steps, self.tick = candidate, steps, tick
        self.truth, self._device = truth, device
        order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(seed)).tolist()
        self.flights = tuple(
            Flight(row, offsets[number])
            for number in range(starts)
            for row in order
            if number < len(offsets := self._offsets(row, starts))
        )

    @property
    def domain(self) -> Domain:
        """What the first trajectory lies on."""
        return self.truth.domain

    def trajectories(self, flights: Sequence[int]) -> list[int]:
        """Trajectories of some flights, each once, in their order."""
        return list(dict.fromkeys(self.flights[i].trajectory for i in flights))

    def by_trajectory(self, errors: Tensor, flights: Sequence[int]) -> Tensor:
        """Means over the flights of each trajectory, `(..., n)`, from `(..., flights)`."""
        rows = [self.flights[i].trajectory for i in flights]
        columns = [
            errors[..., [place for place, own in enumerate(rows) if own == row]].mean(dim=-1)
            for row in self.trajectories(flights)
        ]
        return torch.stack(columns, dim=-1)

    def crews(self, flights: Sequence[int]) -> Iterator[Crew]:
        """Some flights in batches that share a domain, with the frames that they need."""
        truth, context = self.truth, self.candidate.model.context
        for places in self._batches(flights):
            own = [self.flights[flights[place]] for place in places]
            starts = [truth.window([f.trajectory], context, f.first).fields for f in own]
            frames = [
                torch.cat([truth.frame([f.trajectory], f.first + step) for f in own])
                for step in range(self.steps)
            ]
            start = Window(torch.cat(starts), truth.domain_of(own[0].trajectory))
            yield Crew(start.to(self._device), torch.stack(frames).to(self._device), places)

    def num_crews(self, flights: Sequence[int]) -> int:
        """How many batches there are of some flights."""
        return len(self._batches(flights))

    def _batches(self, flights: Sequence[int]) -> list[list[int]]:
        """Places among some flights, by domain, as many at once as memory allows."""
        cells = len(self.domain.fields) * math.prod(self.domain.shape)
        most = max(1, min(BATCH, int(MAX_BYTES / (4 * cells * self.steps))))
        groups: dict[Domain, list[int]] = {}
        for place, number in enumerate(flights):
            domain = self.truth.domain_of(self.flights[number].trajectory)
            groups.setdefault(domain, []).append(place)
        return [
            places[at : at + most]
            for places in groups.values()
            for at in range(0, len(places), most)
        ]

    def advance(
        self, crew: Crew, window: Window, step: int, choices: Sequence[Choice]
    ) -> tuple[Window, Tensor]:
        """Go on with a rollout.

        Args:
            crew: whose it is.
            window: what it has come to.
            step: how many steps it has made.
            choices: of the steps to make.

        Returns:
            What it has come to then, and its errors `(B, len(choices))` float64: VRMSE, mean over
            fields; infinite for a sample that blew up.
        """
        frames = rollout(
            self.candidate.model,
            window,
            steps=len(choices),
            schedule=Replay(choices),
            on_blow_up="hold",
            allow_untrained=self.candidate.allow_untrained,
        )
        errors = []
        for number, frame in enumerate(frames):
            true = crew.truth[step + number]
            error = vrmse(frame, true, ndim=window.domain.ndim).double().mean(dim=1)
            errors.append(torch.where(frames.alive, error, torch.inf).cpu())
            window = window.slide(frame)
            self.tick()
        return window, torch.stack(errors, dim=1)

    def errors(self, schedules: Sequence[Schedule], flights: Sequence[int]) -> Tensor:
        """Errors of schedules, `(schedules, flights, steps)` float64; see `advance`."""
        found = torch.empty(len(schedules), len(flights), self.steps, dtype=torch.float64)
        for crew in self.crews(flights):
            found[:, crew.places] = self._tree(schedules, crew)
        return found

    def num_steps(self, schedules: Sequence[Schedule], flights: Sequence[int]) -> int:
        """How many steps `errors` computes: those of the tree, for each crew."""
        choices = [self._choices(schedule) for schedule in schedules]
        tree = {own[:length] for own in choices for length in range(1, self.steps + 1)}
        return len(tree) * self.num_crews(flights)

    def _choices(self, schedule: Schedule) -> tuple[Choice, ...]:
        return tuple(schedule(step).on(self.domain) for step in range(self.steps))

    def _tree(self, schedules: Sequence[Schedule], crew: Crew) -> Tensor:
        """Errors of one crew, `(schedules, B, steps)`."""
        choices = [self._choices(schedule) for schedule in schedules]
        shape = (len(schedules), len(crew.places), self.steps)
        found = torch.empty(shape, dtype=torch.float64)
        # A branch: the step that it begins at, its schedules, and the window that it grows from.
        branches = [(0, list(range(len(schedules))), crew.start)]
        while branches:
            step, members, window = branches.pop()
            if step == self.steps:
                continue
            groups: dict[Choice, list[int]] = {}
            for member in members:
                groups.setdefault(choices[member][step], []).append(member)
            if len(groups) > 1:
                branches += [(step, group, window) for group in groups.values()]
                continue
            end = _fork([choices[member] for member in members], step)
            window, errors = self.advance(crew, window, step, choices[members[0]][step:end])
            found[members, :, step:end] = errors
            branches.append((end, members, window))
        return found

    def _offsets(self, row: int, starts: int) -> list[int]:
        """First predicted frames of a trajectory's flights."""
        first, room = self.truth.first, self.truth.num_targets(row) - self.steps
        apart = max(1, self.steps // APART)
        count = min(starts, 1 + room // apart)
        return [first + (room * i // (count - 1) if i else 0) for i in range(count)]


def _fork(branches: Sequence[Sequence[Choice]], step: int) -> int:
    """The step from which on choices differ, given that they agree at `step`."""
    end = step + 1
    while end < len(branches[0]) and len({branch[end] for branch in branches}) == 1:
        end += 1
    return end
