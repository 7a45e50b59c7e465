"""Kolmogorov flow: 2D incompressible Navier-Stokes driven by a sinusoidal force, periodic.

In vorticity form, with velocity u = (u, v) on the coordinates (x, y) of a square of side 2π:

    ∂ω/∂t + u·∇ω = ν ∇²ω - μ ω - n cos(n y),     ν = 1/Re,

which is the momentum equation with the force sin(n y) along x and the linear drag -μ u; see
`spectral.py` for velocity and pressure. The laminar flow u = sin(n y) / (ν n² + μ) is a steady
state; at large Re it is unstable and the flow becomes turbulent. The drag takes the energy that
the inverse cascade brings to the largest scales.

Pseudo-spectral: products on the grid with the 2/3 rule, viscosity and drag exact by exponential
time differencing, fourth order in time, float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace, fourier_space
from overtone.solvers.base import Field, cell_centres
from overtone.solvers.spectral import (
    IncompressibleFlow,
    advection,
    pressure,
    velocity_modes,
    vorticity,
)


@dataclass(frozen=True)
class KolmogorovFlow(IncompressibleFlow):
    """A Kolmogorov flow and how it is solved.

    The state is `(num, 1, *modes)`, complex: vorticity (with the mean velocity in its zeroth mode,
    see `spectral.py`).

    Args:
        shape: number of cells along x and y.
        dt: time between two frames.
        reynolds: Re.
        drag: μ.
        forcing: n, the force's number of waves across the domain.
        courant: largest number of cells that the flow crosses in a solver step.
    """

    shape: tuple[int, int] = (60, 60)
    dt: float = 0.2
    reynolds: float = 100.0
    drag: float = 0.1
    forcing: int = 4
    courant: float = 0.5

    name = "kolmogorov_flow"
    fields = (Field("vorticity"), Field("pressure"), Field("velocity", 1))
    axes = ("x", "y")
    boundaries = "periodic"
    parameters = ("reynolds", "drag", "forcing")
    extent = (2 * math.pi, 2 * math.pi)

    def __post_init__(self) -> None:
        if min(self.reynolds, self.dt, self.courant) <= 0 or self.drag < 0 or self.forcing < 1:
            raise OvertoneError(
                f"{self}: expected positive numbers (the drag may be zero) and a forcing of at "
                "least 1"
            )
        if min(self.shape) < 4 or self.shape[1] <= 3 * self.forcing:
            raise OvertoneError(
                f"{self.shape} cells don't resolve {self.forcing} waves of the force; use at "
                f"least 4 along x and {3 * self.forcing + 1} along y"
            )

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Random vortices with wavenumbers round 4 and unit root-mean-square velocity."""
        random = torch.Generator().manual_seed(seed)
        noise = torch.randn(num, *self.shape, generator=random, dtype=torch.float64)
        space = self.space(noise)
        k = space.k2.sqrt()
        omega = space.mask * (k * torch.exp(-0.5 * (k - 4) ** 2)) * space.modes(noise)
        speed = space.grid(velocity_modes(space, omega)).square().sum(dim=1).mean(dim=(-2, -1))
        return (omega / speed.sqrt()[:, None, None])[:, None]

    def state(self, u: Tensor, v: Tensor) -> Tensor:
        """The state of velocity u, v (without its divergence), `(num, *shape)`."""
        space = self.space(u)
        return (space.mask * vorticity(space, torch.stack([u, v], dim=1)))[:, None]

    def from_frame(self, frame: Tensor) -> Tensor:
        """The state of a frame's velocity; its vorticity and pressure follow from it."""
        return self.state(frame[:, 2], frame[:, 3])

    def linear(self, space: FourierSpace) -> Tensor:
        """Viscosity and drag."""
        return -space.k2 / self.reynolds - self.drag

    def frame(self, state: Tensor) -> Tensor:
        """Vorticity, pressure, u and v, `(num, 4, *shape)`."""
        space, velocity = self.space(state), self.velocity(state)
        omega = state[:, 0].clone()
        omega[..., 0, 0] = 0  # the mean velocity is kept there
        scalars = torch.stack([space.grid(omega), pressure(space, velocity)], dim=1)
        return torch.cat([scalars, velocity], dim=1)

    def nonlinear(self, state: Tensor) -> Tensor:
        """Advection and the force."""
        return advection(self.space(state), state) + _force(self, state.device)


@lru_cache(maxsize=8)
def _force(system: KolmogorovFlow, device: torch.device) -> Tensor:
    """Modes of the curl of the force, `(*modes)`."""
    y = cell_centres(system.shape[1], system.extent[1]).to(device)
    curl = -system.forcing * torch.cos(system.forcing * y).expand(system.shape)
    return fourier_space(system.shape, system.extent, device).modes(curl)
