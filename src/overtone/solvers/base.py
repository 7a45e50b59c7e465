"""What every built-in system has in common.

A `System` is a frozen dataclass: its grid, its frame interval and its physical parameters. Its
state is one float64 tensor `(num, …)` in whatever form is best to solve in; `frame` turns it into
physical fields. All trajectories of a call share the parameters and are advanced together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from overtone.domain import BoundarySpec, Domain
from overtone.errors import OvertoneError


@dataclass(frozen=True)
class Field:
    """A physical field as The Well stores it.

    Attributes:
        name: e.g. `"velocity"`.
        order: tensor order: 0 scalar, 1 vector, 2 tensor.
    """

    name: str
    order: int = 0


class System(ABC):
    """A physical system with a solver.

    Subclasses are frozen dataclasses with at least `shape` and `dt`.
    """

    name: ClassVar[str]
    """The Well's name of it, e.g. `"shear_flow"`."""
    fields: ClassVar[tuple[Field, ...]]
    """In The Well's order: scalars, then vectors, then tensors."""
    axes: ClassVar[tuple[str, ...]]
    """Names of the coordinates, e.g. `("x", "z")`."""
    boundaries: ClassVar[BoundarySpec]
    parameters: ClassVar[tuple[str, ...]]
    """Names of the attributes that are physical parameters, recorded in the files."""

    extent: ClassVar[tuple[float, ...]]
    """Physical length of each axis."""

    shape: tuple[int, ...]
    dt: float

    @abstractmethod
    def initial(self, num: int, *, seed: int) -> Tensor:
        """Random initial states of `num` trajectories; the same for the same seed."""

    @abstractmethod
    def advance(self, state: Tensor) -> Tensor:
        """The states one frame interval later."""

    @abstractmethod
    def frame(self, state: Tensor) -> Tensor:
        """Physical fields `(num, C, *shape)` of the states, channels in The Well's order."""

    @property
    def domain(self) -> Domain:
        """What the frames live on."""
        return Domain(self.shape, self.extent, self.boundaries, self.channels, self.dt)

    @property
    def coordinates(self) -> tuple[list[float], ...]:
        """Positions of the cells along each axis; centres that begin at 0 unless overridden."""
        pairs = zip(self.shape, self.extent, strict=True)
        return tuple([*map(float, cell_centres(n, length))] for n, length in pairs)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels: scalars, vector components, tensor components row by row."""
        names: list[str] = []
        for field in self.fields:
            suffixes = [""]
            for _ in range(field.order):
                suffixes = [s + axis for s in suffixes for axis in self.axes]
            names += [f"{field.name}_{s}" if s else field.name for s in suffixes]
        return tuple(names)

    def trajectory(
        self, num: int, steps: int, *, seed: int = 0, device: torch.device | str = "cpu"
    ) -> Iterator[Tensor]:
        """Yield `steps` frames of `num` trajectories, each `(num, C, *shape)` in float32.

        Initial states are drawn on the CPU, so that a seed means the same on every device.
        """
        yield from self.evolve(self.initial(num, seed=seed).to(device), steps)

    def evolve(self, state: Tensor, steps: int) -> Iterator[Tensor]:
        """Yield `steps` frames, the first being that of the given states."""
        for step in range(steps):
            if step:
                state = self.advance(state)
            frame = self.frame(state).float()
            if not bool(frame.isfinite().all()):
                raise OvertoneError(
                    f"{self.name} became unstable at frame {step}, time {step * self.dt:g}; use a "
                    "finer grid, a smaller courant number or milder parameters"
                )
            yield frame


def uniform(random: torch.Generator, num: int, ndim: int, low: float, high: float) -> Tensor:
    """One number for each trajectory, `(num, 1, …)` to broadcast over `ndim` axes."""
    unit = torch.rand(num, *(1,) * ndim, generator=random, dtype=torch.float64)
    return low + (high - low) * unit


def cell_centres(n: int, length: float, start: float = 0.0) -> Tensor:
    """Coordinates of cell centres along an axis, float64."""
    return start + (torch.arange(n, dtype=torch.float64) + 0.5) * length / n


def num_substeps(dt: float, speed: float, spacing: float, courant: float) -> int:
    """Equal solver steps that a frame interval needs so that nothing crosses too many cells."""
    if not math.isfinite(speed):
        return 1  # the frame after it reports the instability
    return max(1, math.ceil(dt * speed / (courant * spacing)))
