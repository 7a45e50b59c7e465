"""Supernova explosion: a blast wave in clumpy, cooling interstellar gas, 3D, open sides.

    ∂ρ/∂t + ∇·(ρv) = 0,   ∂(ρv)/∂t + ∇·(ρvv) + ∇p = 0,
    ∂E/∂t + ∇·((E + p)v) = -(ρ/m_H)² Z Λ(T),     E = p/(γ - 1) + ρ|v|²/2,   γ = 5/3.

At the start the gas is at rest and has one temperature; its density is log-normal with clumps of
many sizes. The thermal energy of a supernova, 10⁵¹ erg, is put into a small sphere at the centre.
Finite volumes (`euler.py`), exact cooling (`sources.py`), Strang splitting between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.solvers.base import cell_centres
from overtone.solvers.interstellar import (
    SUPERNOVA_ENERGY,
    InterstellarGas,
    random_field,
)

CLUMPINESS = 0.8
"""Standard deviation of the logarithm of density."""
BLAST_RADIUS = 4.0
"""Width of the Gaussian that the energy is put into, pc."""


@dataclass(frozen=True)
class SupernovaExplosion(InterstellarGas):
    """A supernova and how it is solved.

    Args:
        shape: number of cells along x, y and z.
        dt: time between two frames, Myr.
        rho0: mean hydrogen density at the start, atoms per cm³.
        T0: temperature at the start, K; heating keeps all gas at least as warm.
        Z: metallicity in units of the sun's; the strength of cooling.
        courant: how much of a cell the fastest waves may cross in a solver step.
    """

    dt: float = 0.0025
    rho0: float = 4.45

    name = "supernova_explosion"

    @property
    def lowest_temperature(self) -> float:
        """Heating and cooling balance in the gas around."""
        return self.T0

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Seeds differ in the clumps and, by up to a few parsec, in where the star was."""
        random = torch.Generator().manual_seed(seed)
        clumps = random_field(num, self.shape, random, slope=11 / 3)
        density = self.mean_density * torch.exp(CLUMPINESS * clumps - CLUMPINESS**2 / 2)
        offset = 4.0 * torch.rand(num, 3, generator=random, dtype=torch.float64) - 2.0
        squared = torch.zeros((), dtype=torch.float64)
        for axis, (n, length) in enumerate(zip(self.shape, self.extent, strict=True)):
            x = cell_centres(n, length, start=-length / 2) - offset[:, axis, None]
            squared = squared + x.square().reshape(num, *(-1 if a == axis else 1 for a in range(3)))
        # Shares by mass: hot from the start, but no void hotter than the rest.
        share = density * torch.exp(-squared / BLAST_RADIUS**2)
        cell = math.prod(self.domain.spacing)
        share = share / (share.sum((1, 2, 3), keepdim=True) * cell)
        rest = torch.zeros(num, 3, *self.shape, dtype=torch.float64)
        state = self.state(density, rest, torch.full_like(density, self.T0))
        state[:, -1] += SUPERNOVA_ENERGY * share
        return state

    def advance(self, state: Tensor) -> Tensor:
        """One frame further."""
        return self.gas.advance(state.clone(), self.dt, self.cool)


__all__ = ["SupernovaExplosion"]
