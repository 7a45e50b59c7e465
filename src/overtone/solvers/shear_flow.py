"""Shear flow: incompressible 2D Navier-Stokes with a passive tracer, periodic in both axes.

In vorticity form, with velocity u = (u, w) and tracer s on the coordinates (x, z):

    ∂ω/∂t + u·∇ω = ν ∇²ω,     ∂s/∂t + u·∇s = D ∇²s,     ν = 1/Re,  D = ν/Sc,

    ω = ∂w/∂x - ∂u/∂z,   u = ∂ψ/∂z, w = -∂ψ/∂x, -∇²ψ = ω, plus the conserved mean velocity,
    ∇²p = -∇·(u·∇u).

Pseudo-spectral: products on the grid with the 2/3 rule, diffusion exact by an integrating factor,
fourth-order Runge-Kutta in time, float64. The initial state follows the shear_flow dataset of The
Well: layers u = ±1/2 with tanh edges at z = ±1/2, tracer s = u, and a sinusoidal perturbation of w
at the layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import dealias_mask, wavenumbers
from overtone.solvers.base import Field, System, cell_centres, num_substeps, uniform
from overtone.solvers.steppers import integrating_factor_rk4

AXES = (-2, -1)


@dataclass(frozen=True)
class ShearFlow(System):
    """A shear flow and how it is solved.

    The state is `(num, 4, *modes)`, complex: vorticity, tracer, and the mean velocities u and w in
    their zeroth modes.

    Args:
        shape: number of cells along x and z.
        dt: time between two frames.
        reynolds: Re.
        schmidt: Sc.
        courant: largest number of cells that the flow crosses in a solver step.
    """

    shape: tuple[int, int] = (64, 128)
    dt: float = 0.1
    reynolds: float = 1e4
    schmidt: float = 1.0
    courant: float = 0.5

    name = "shear_flow"
    fields = (Field("tracer"), Field("pressure"), Field("velocity", 1))
    axes = ("x", "z")
    boundaries = "periodic"
    parameters = ("reynolds", "schmidt")
    extent = (1.0, 2.0)

    def __post_init__(self) -> None:
        if min(self.shape) < 4 or self.reynolds <= 0 or self.schmidt <= 0 or self.dt <= 0:
            raise OvertoneError(
                f"{self}: expected at least 4 cells along each axis and positive numbers"
            )

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Two layers; seeds differ in their thickness and in the waves at each of them."""
        random = torch.Generator().manual_seed(seed)
        x = cell_centres(self.shape[0], 1.0)[:, None]
        z = cell_centres(self.shape[1], 2.0, start=-1.0)[None, :].abs()
        width = uniform(random, num, 2, 0.05, 0.15)
        # On the periodic axis the layers' tails beyond z = ±1 come from their neighbours.
        u = 0.5 * (1 + torch.tanh((z - 0.5) / width) - torch.tanh((z + 0.5) / width))
        u = (u + 0.5 * (1 - torch.tanh((1.5 - z) / width))).expand(num, *self.shape)
        w = torch.zeros(num, *self.shape, dtype=torch.float64)
        z = cell_centres(self.shape[1], 2.0, start=-1.0)[None, :]
        for centre in (-0.5, 0.5):
            for mode in (1, 2, 3, 4):
                phase = uniform(random, num, 2, 0.0, 2 * math.pi)
                amplitude = uniform(random, num, 2, 0.0, 0.1)
                wave = amplitude * torch.sin(2 * math.pi * mode * x + phase)
                w = w + wave * torch.exp(-((z - centre) ** 2) / 0.01)
        return self.state(u, w, u)

    def state(self, u: Tensor, w: Tensor, s: Tensor) -> Tensor:
        """The state of velocity u, w (without its divergence) and tracer s, `(num, *shape)`."""
        modes = torch.fft.rfftn(torch.stack([u, w, s], dim=1), dim=AXES)
        omega = 1j * (self._kx * modes[:, 1] - self._kz * modes[:, 0])
        # The mean velocity has no vorticity; without forces it stays what it was.
        mean = torch.zeros_like(modes[:, :2])
        mean[..., 0, 0] = modes[:, :2, 0, 0]
        return torch.cat([omega[:, None], modes[:, 2:], mean], dim=1)

    def advance(self, state: Tensor) -> Tensor:
        """One frame further, in as many equal solver steps as the flow's speed asks for."""
        speed = self._velocity(state).abs().amax().item()
        spacing = min(self.domain.spacing)
        steps = num_substeps(self.dt, speed, spacing, self.courant)
        half = torch.exp(-self._decay * self.dt / steps / 2)
        for _ in range(steps):
            state = integrating_factor_rk4(state, self.dt / steps, half, self._advection)
        return state

    def frame(self, state: Tensor) -> Tensor:
        """Tracer, pressure, u and w, `(num, 4, *shape)`."""
        velocity = self._velocity(state)
        tracer, pressure = self._grid(state[:, 1]), self._pressure(*velocity.unbind(dim=1))
        return torch.cat([torch.stack([tracer, pressure], dim=1), velocity], dim=1)

    @cached_property
    def _kx(self) -> Tensor:
        return wavenumbers(self.shape, self.extent)[0]

    @cached_property
    def _kz(self) -> Tensor:
        return wavenumbers(self.shape, self.extent)[1]

    @cached_property
    def _inverse_laplacian(self) -> Tensor:
        k2 = self._kx**2 + self._kz**2
        return torch.where(k2 > 0, -1 / k2.clamp(min=1e-30), 0.0)

    @cached_property
    def _mask(self) -> Tensor:
        return dealias_mask(self.shape)

    @cached_property
    def _decay(self) -> Tensor:
        """Rates of vorticity, tracer and the mean flow, `(4, *modes)`."""
        k2 = self._kx**2 + self._kz**2
        return torch.stack([k2, k2 / self.schmidt, 0 * k2, 0 * k2]) / self.reynolds

    def _velocity(self, state: Tensor) -> Tensor:
        """U and w on the grid, `(num, 2, *shape)`."""
        psi = -state[:, 0] * self._inverse_laplacian
        modes = torch.stack([1j * self._kz * psi, -1j * self._kx * psi], dim=1)
        return self._grid(modes + state[:, 2:])

    def _advection(self, state: Tensor) -> Tensor:
        """`-u·∇` of vorticity and tracer; the mean flow does not change."""
        u, w = self._velocity(state).split(1, dim=1)
        carried = state[:, :2]
        flux = u * self._grid(1j * self._kx * carried) + w * self._grid(1j * self._kz * carried)
        tendency = -self._mask * torch.fft.rfftn(flux, dim=AXES)
        return torch.cat([tendency, torch.zeros_like(tendency)], dim=1)

    def _pressure(self, u: Tensor, w: Tensor) -> Tensor:
        """From ∇²p = -∇·∇·(uu), with zero mean."""
        products = torch.stack([u * u, 2 * u * w, w * w], dim=1)
        uu, uw, ww = (self._mask * torch.fft.rfftn(products, dim=AXES)).unbind(dim=1)
        source = self._kx**2 * uu + self._kx * self._kz * uw + self._kz**2 * ww
        return self._grid(source * self._inverse_laplacian)

    def _grid(self, modes: Tensor) -> Tensor:
        return torch.fft.irfftn(modes, s=self.shape, dim=AXES)
