"""Kuramoto-Sivashinsky equation: chaos in one dimension, periodic.

    ∂u/∂t + u ∂u/∂x + ∂²u/∂x² + ν ∂⁴u/∂x⁴ = 0     on a ring of length 64.

Small waves of wavenumber k grow at the rate k² - ν k⁴; advection hands what they gain to shorter
waves, which decay. The mean of u is conserved.

Pseudo-spectral: u² on the grid with the 2/3 rule, the stiff linear part exact by exponential time
differencing, fourth order in time, float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace, fourier_space
from overtone.solvers.base import Field, System, cell_centres, uniform
from overtone.solvers.exponential import ExponentialRK4


@dataclass(frozen=True)
class KuramotoSivashinsky(System):
    """The equation and how it is solved.

    The state is `(num, 1, modes)`, complex: the modes of u.

    Args:
        shape: number of cells.
        dt: time between two frames.
        viscosity: ν.
        step: longest solver step.
    """

    shape: tuple[int] = (120,)
    dt: float = 0.5
    viscosity: float = 1.0
    step: float = 0.1

    name = "kuramoto_sivashinsky"
    fields = (Field("u"),)
    axes = ("x",)
    boundaries = "periodic"
    parameters = ("viscosity",)
    extent = (64.0,)

    def __post_init__(self) -> None:
        if min(self.viscosity, self.dt, self.step) <= 0:
            raise OvertoneError(f"{self}: expected positive numbers")
        # Where the modes that are kept end, they must decay: otherwise energy piles up there.
        needed = math.ceil(1.5 * 3 * self.extent[0] / (2 * math.pi * math.sqrt(self.viscosity)))
        if self.shape[0] < needed:
            raise OvertoneError(
                f"{self.shape[0]} cells don't resolve the waves that decay at viscosity "
                f"{self.viscosity:g}; use at least {needed}"
            )

    def initial(self, num: int, *, seed: int) -> Tensor:
        """A sum of eight long waves with random phases and amplitudes, zero mean."""
        random = torch.Generator().manual_seed(seed)
        x = cell_centres(self.shape[0], 2 * math.pi)
        u = torch.zeros(num, *self.shape, dtype=torch.float64)
        for mode in range(1, 9):
            phase = uniform(random, num, 1, 0.0, 2 * math.pi)
            u = u + uniform(random, num, 1, -0.5, 0.5) * torch.cos(mode * x + phase)
        return self.state(u)

    def state(self, u: Tensor) -> Tensor:
        """The state of u, `(num, *shape)`."""
        space = self._space(u)
        return space.mask * space.modes(u)[:, None]

    def advance(self, state: Tensor) -> Tensor:
        """One frame further, in equal solver steps."""
        scheme = _scheme(self, state.device)
        for _ in range(self._steps):
            state = scheme.step(state, self._tendency)
        return state

    def frame(self, state: Tensor) -> Tensor:
        """The field u, `(num, 1, *shape)`."""
        return self._space(state).grid(state)

    @property
    def _steps(self) -> int:
        return math.ceil(self.dt / self.step)

    def _space(self, state: Tensor) -> FourierSpace:
        return fourier_space(self.shape, self.extent, state.device)

    def _tendency(self, state: Tensor) -> Tensor:
        """`-∂(u²/2)/∂x`, dealiased."""
        space = self._space(state)
        return -0.5 * space.mask * space.gradient[0] * space.modes(space.grid(state).square())


@lru_cache(maxsize=8)
def _scheme(system: KuramotoSivashinsky, device: torch.device) -> ExponentialRK4:
    k2 = fourier_space(system.shape, system.extent, device).k2
    return ExponentialRK4.of(k2 - system.viscosity * k2**2, system.dt / system._steps)
