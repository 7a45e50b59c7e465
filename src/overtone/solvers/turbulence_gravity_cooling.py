"""Turbulence, gravity and cooling: interstellar gas that collapses into filaments, 3D, open sides.

    ∂ρ/∂t + ∇·(ρv) = 0,   ∂(ρv)/∂t + ∇·(ρvv) + ∇p = -ρ∇φ,   ∇²φ = 4πGρ,
    ∂E/∂t + ∇·((E + p)v) = -ρv·∇φ - (ρ/m_H)² Z Λ(T),     E = p/(γ - 1) + ρ|v|²/2,   γ = 5/3.

At the start a sphere of uniform gas moves at random with the spectrum of Burgers turbulence,
E(k) ∝ k⁻², as fast as virial balance asks for; around it the gas is thin. The potential is that of
the mass in the box alone. Finite volumes (`euler.py`), exact cooling (`sources.py`), Strang
splitting between flow and sources.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.solvers.base import cell_centres
from overtone.solvers.interstellar import GAS_CONSTANT, GRAVITY, InterstellarGas, random_field
from overtone.solvers.sources import acceleration

RADIUS = 24.0
"""Radius of the sphere, pc."""
EDGE = 2.0
"""Width over which its density falls, pc."""
SURROUNDINGS = 0.02
"""Density around the sphere over that inside."""
JEANS_CELLS = 4
"""Cells that a Jeans length must have: gas does not cool to where it has fewer."""


@dataclass(frozen=True)
class TurbulenceGravityCooling(InterstellarGas):
    """Self-gravitating turbulent gas and how it is solved.

    Args:
        shape: number of cells along x, y and z.
        dt: time between two frames, Myr.
        rho0: hydrogen density of the sphere at the start, atoms per cm³.
        T0: temperature at the start, K.
        Z: metallicity in units of the sun's; the strength of cooling.
        courant: how much of a cell the fastest waves may cross in a solver step.
    """

    dt: float = 0.14

    name = "turbulence_gravity_cooling"

    @property
    def lowest_temperature(self) -> float:
        """That of dense molecular clouds."""
        return 10.0

    @property
    def virial_speed(self) -> float:
        """Rms speed that balances the sphere's own gravity, pc/Myr."""
        mass = 4 / 3 * math.pi * RADIUS**3 * self.mean_density
        return math.sqrt(0.6 * GRAVITY * mass / RADIUS)

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Seeds differ in the velocity field."""
        random = torch.Generator().manual_seed(seed)
        axes = [
            cell_centres(n, length, start=-length / 2)
            for n, length in zip(self.shape, self.extent, strict=True)
        ]
        x, y, z = torch.meshgrid(*axes, indexing="ij")
        inside = torch.sigmoid((RADIUS - (x**2 + y**2 + z**2).sqrt()) / (EDGE / 2))
        density = self.mean_density * (SURROUNDINGS + (1 - SURROUNDINGS) * inside)
        density = density.expand(num, *self.shape)
        # E(k) ∝ k⁻² over shells is a power of k⁻⁴ for each mode.
        velocity = random_field(3 * num, self.shape, random, slope=4.0)
        velocity = velocity.reshape(num, 3, *self.shape)
        # The sphere as a whole is at rest.
        weight = inside / inside.sum()
        velocity = velocity - (weight * velocity).sum((2, 3, 4), keepdim=True)
        rms = (weight * velocity.square()).sum((1, 2, 3, 4)).sqrt().reshape(num, 1, 1, 1, 1)
        velocity = velocity * (self.virial_speed / rms)
        return self.state(density, velocity, torch.full_like(density, self.T0))

    def advance(self, state: Tensor) -> Tensor:
        """One frame further."""
        return self.gas.advance(state.clone(), self.dt, self._sources)

    def limit_cooling(self, cooled: Tensor, temperature: Tensor, density: Tensor) -> Tensor:
        """No cooling below where the grid no longer resolves the Jeans length `sqrt(π c²/(Gρ))`."""
        length = JEANS_CELLS * max(self.domain.spacing)
        scale = GRAVITY * length**2 / (math.pi * self.gas.gamma * GAS_CONSTANT)
        return torch.maximum(cooled, torch.minimum(temperature, density * scale))

    def _sources(self, state: Tensor, dt: float) -> Tensor:
        """Gravity accelerates, then radiation cools; in place."""
        density, momentum = state[:, :1], state[:, 1:-1]
        kick = acceleration(state[:, 0], self.domain.spacing, GRAVITY).mul_(dt)
        work = (kick * (momentum + density * kick / 2)).sum(dim=1)
        momentum.addcmul_(density, kick)
        state[:, -1] += work
        return self.cool(state, dt)


__all__ = ["TurbulenceGravityCooling"]
