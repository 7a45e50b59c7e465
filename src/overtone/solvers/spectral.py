"""Systems on periodic grids: `∂y/∂t = L y + N(y)` on Fourier modes.

A new system of this kind says what `L` (diagonal) and `N` are and how many steps a frame needs; the
linear part is then exact and the rest of fourth order in time, by an exponential Runge-Kutta
scheme.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import torch
from torch import Tensor

from overtone.ops.spectral import FourierSpace, fourier_space
from overtone.solvers.base import System
from overtone.solvers.steppers import ExponentialRK4


class SpectralSystem(System):
    """A system whose state is modes `(num, C, *modes)`, complex128."""

    @abstractmethod
    def linear(self, space: FourierSpace) -> Tensor:
        """The diagonal of `L`, which broadcasts against `(C, *modes)`."""

    @abstractmethod
    def nonlinear(self, state: Tensor) -> Tensor:
        """`N` of a state, the same shape."""

    @abstractmethod
    def num_steps(self, state: Tensor) -> int:
        """Equal solver steps to take until the next frame."""

    @abstractmethod
    def from_frame(self, frame: Tensor) -> Tensor:
        """The state whose frame `(num, C, *shape)`, float64, this is: a restart from data."""

    def advance(self, state: Tensor) -> Tensor:
        """One frame further."""
        steps = self.num_steps(state)
        step = scheme(self, steps, state.device).step
        for _ in range(steps):
            state = step(state, self.nonlinear)
        return state

    def space(self, state: Tensor) -> FourierSpace:
        """The grid's operators, on the device of a state or field."""
        return fourier_space(self.shape, self.extent, state.device)


@lru_cache(maxsize=32)
def scheme(system: SpectralSystem, steps: int, device: torch.device) -> ExponentialRK4:
    """The time stepper of a system that takes so many steps to a frame; kept for the next frame."""
    space = fourier_space(system.shape, system.extent, device)
    return ExponentialRK4.of(system.linear(space), system.dt / steps)
