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

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace
from overtone.solvers.base import Field, cell_centres, uniform
from overtone.solvers.spectral import SpectralSystem


@dataclass(frozen=True)
class KuramotoSivashinsky(SpectralSystem):
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
        space = self.space(u)
        return space.mask * space.modes(u)[:, None]

    def from_frame(self, frame: Tensor) -> Tensor:
        """The state of a frame."""
        return self.state(frame[:, 0])

    def frame(self, state: Tensor) -> Tensor:
        """The field u, `(num, 1, *shape)`."""
        return self.space(state).grid(state)

    def num_steps(self, state: Tensor) -> int:
        """As many steps as keep each below the largest."""
        return math.ceil(self.dt / self.step)

    def linear(self, space: FourierSpace) -> Tensor:
        """Growth of long waves and decay of short ones."""
        return space.k2 - self.viscosity * space.k2**2

    def nonlinear(self, state: Tensor) -> Tensor:
        """`-∂(u²/2)/∂x`, dealiased."""
        space = self.space(state)
        return -0.5 * space.mask * space.gradient[0] * space.modes(space.grid(state).square())
