"""Systems on periodic grids: `∂y/∂t = L y + N(y)` on Fourier modes.

A new system of this kind says what `L` (diagonal) and `N` are and how many steps a frame needs; the
linear part is then exact and the rest of fourth order in time, by an exponential Runge-Kutta
scheme.

Incompressible 2D flows are such systems, with the vorticity as their state. For velocity (u, v) on
the coordinates (x, y):

    ω = ∂v/∂x - ∂u/∂y,   u = ∂ψ/∂y,  v = -∂ψ/∂x,  -∇²ψ = ω,   ∇²p = -∇·∇·(uu).

The mean velocity has no vorticity and the vorticity has no mean, so the zeroth mode of ω holds the
mean velocity as ū + i v̄. All operators that act on vorticity are zero for that mode, so it is
carried along at no cost.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import torch
from torch import Tensor

from overtone.ops.spectral import FourierSpace, fourier_space
from overtone.solvers.base import System, num_substeps
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


class IncompressibleFlow(SpectralSystem):
    """A system whose state begins with the vorticity of a flow.

    Subclasses have a field `courant`: the largest number of cells that the flow crosses in a solver
    step.
    """

    courant: float

    def num_steps(self, state: Tensor) -> int:
        """As many steps as the flow's speed asks for."""
        speed = self.velocity(state).abs().amax().item()
        return num_substeps(self.dt, speed, min(self.domain.spacing), self.courant)

    def velocity(self, state: Tensor) -> Tensor:
        """Both components on the grid, `(num, 2, *shape)`."""
        space = self.space(state)
        return space.grid(velocity_modes(space, state[:, 0]))


def vorticity(space: FourierSpace, velocity: Tensor) -> Tensor:
    """Modes of the vorticity with the mean velocity, `(num, *modes)`.

    Args:
        space: the grid's Fourier space.
        velocity: u and v on the grid, `(num, 2, *shape)`; its divergence is lost.
    """
    u, v = space.modes(velocity).unbind(dim=1)
    omega = space.gradient[0] * v - space.gradient[1] * u
    omega[..., 0, 0] = torch.complex(u[..., 0, 0].real, v[..., 0, 0].real)
    return omega


def velocity_modes(space: FourierSpace, omega: Tensor) -> Tensor:
    """Modes of u and v, `(num, 2, *modes)`, of `vorticity`'s `(num, *modes)`."""
    psi = -omega * space.inverse_laplacian
    modes = torch.stack([space.gradient[1] * psi, -space.gradient[0] * psi], dim=1)
    mean = omega[..., 0, 0]
    modes[..., 0, 0] = torch.stack([mean.real, mean.imag], dim=-1).to(modes.dtype)
    return modes


def advection(space: FourierSpace, carried: Tensor) -> Tensor:
    """`-u·∇` of vorticity and of tracers, dealiased, `(num, C, *modes)`.

    Args:
        space: the grid's Fourier space.
        carried: modes of the vorticity, then of any number of tracers, `(num, C, *modes)`.
    """
    u, v = space.grid(velocity_modes(space, carried[:, 0])).split(1, dim=1)
    # Three transforms of few channels: one of many is slower, its arrays leave the cache.
    flux = u * space.grid(space.gradient[0] * carried)
    flux = flux + v * space.grid(space.gradient[1] * carried)
    tendency = -space.mask * space.modes(flux)
    # Without forces the mean flow stays what it was, and a tracer's mean is conserved.
    tendency[..., 0, 0] = 0
    return tendency


def pressure(space: FourierSpace, velocity: Tensor) -> Tensor:
    """Pressure on the grid with zero mean, `(num, *shape)`, of velocity `(num, 2, *shape)`."""
    u, v = velocity.unbind(dim=1)
    products = torch.stack([u * u, 2 * u * v, v * v], dim=1)
    uu, uv, vv = (space.mask * space.modes(products)).unbind(dim=1)
    kx, ky = space.k
    return space.grid((kx**2 * uu + kx * ky * uv + ky**2 * vv) * space.inverse_laplacian)
