"""Shear flow: incompressible 2D Navier-Stokes with a passive tracer, periodic in both axes.

In vorticity form, with velocity u = (u, w) and tracer s on the coordinates (x, z):

    ∂ω/∂t + u·∇ω = ν ∇²ω,     ∂s/∂t + u·∇s = D ∇²s,     ν = 1/Re,  D = ν/Sc,

    ω = ∂w/∂x - ∂u/∂z,   u = ∂ψ/∂z, w = -∂ψ/∂x, -∇²ψ = ω, plus the conserved mean velocity,
    ∇²p = -∇·(u·∇u).

Pseudo-spectral: products on the grid with the 2/3 rule, diffusion exact, the rest of fourth order
in time, float64. The initial state follows the shear_flow dataset of The
Well: layers u = ±1/2 with tanh edges at z = ±1/2, tracer s = u, and a sinusoidal perturbation of w
at the layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace
from overtone.solvers.base import Field, cell_centres, uniform
from overtone.solvers.spectral import IncompressibleFlow, advection, pressure, vorticity


@dataclass(frozen=True)
class ShearFlow(IncompressibleFlow):
    """A shear flow and how it is solved.

    The state is `(num, 2, *modes)`, complex: vorticity (with the mean velocity in its zeroth mode,
    see `spectral.py`) and tracer.

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

    @property
    def coordinates(self) -> tuple[list[float], ...]:
        """Cell centres of [0, 1] and [-1, 1]."""
        x, z = cell_centres(self.shape[0], 1.0), cell_centres(self.shape[1], 2.0, start=-1.0)
        return [*map(float, x)], [*map(float, z)]

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Two layers; seeds differ in their thickness and in the waves at each of them."""
        random = torch.Generator().manual_seed(seed)
        x = cell_centres(self.shape[0], 1.0)[:, None]
        z = cell_centres(self.shape[1], 2.0, start=-1.0)[None, :].abs()
        # A layer thicker than 1/(2π) is stable in a box of length 1; these all roll up.
        width = uniform(random, num, 2, 0.04, 0.1)
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
        space = self.space(u)
        omega = vorticity(space, torch.stack([u, w], dim=1))
        return torch.stack([omega, space.modes(s)], dim=1)

    def from_frame(self, frame: Tensor) -> Tensor:
        """The state of a frame's velocity and tracer; its pressure follows from them."""
        tracer, _, u, w = frame.unbind(dim=1)
        return self.state(u, w, tracer)

    def linear(self, space: FourierSpace) -> Tensor:
        """Viscosity, and diffusion of the tracer."""
        return -torch.stack([space.k2, space.k2 / self.schmidt]) / self.reynolds

    def nonlinear(self, state: Tensor) -> Tensor:
        """Advection of vorticity and tracer."""
        return advection(self.space(state), state)

    def frame(self, state: Tensor) -> Tensor:
        """Tracer, pressure, u and w, `(num, 4, *shape)`."""
        space, velocity = self.space(state), self.velocity(state)
        scalars = torch.stack([space.grid(state[:, 1]), pressure(space, velocity)], dim=1)
        return torch.cat([scalars, velocity], dim=1)
