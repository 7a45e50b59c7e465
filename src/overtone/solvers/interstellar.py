"""What systems of interstellar gas share: units, cooling, random fields, six channels.

Units are parsec, solar mass and million years, so speeds are in pc/Myr (0.978 km/s); temperatures
are in kelvin. The gas is atomic hydrogen: ρ = n m_H, p = n k T, γ = 5/3.

Cooling takes n² Λ(T) of energy per volume and time, with Λ proportional to the metallicity Z (as
in The Well, Z = 0 is adiabatic). Gas at the lowest temperature is kept there: heating is not a
term of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.solvers.base import Field, System, cell_centres
from overtone.solvers.euler import Gas
from overtone.solvers.sources import CoolingCurve

GRAVITY = 4.49850e-3
"""Newton's constant, pc³/(M☉ Myr²)."""
HYDROGEN = 0.0247104
"""Mass density of one hydrogen atom per cm³, M☉/pc³."""
GAS_CONSTANT = 8.62758e-3
"""k/m_H, (pc/Myr)²/K."""
SUPERNOVA_ENERGY = 5.2587e7
"""10⁵¹ erg, M☉ (pc/Myr)²."""
KELVIN_PER_MYR = 1.52376e29
"""(γ - 1) Myr/k: what Λ in erg cm³/s is multiplied with to cool one atom per cm³."""

SOLAR_TEMPERATURES = (10, 30, 100, 1e3, 6e3, 1e4, 2e4, 1e5, 2.5e5, 1e6, 1e7, 4e7, 1e9)
SOLAR_RATES = (
    *(1e-29, 1e-28, 1e-27, 8e-27, 2.5e-26, 4e-24, 5e-23),
    *(3e-22, 4e-22, 1e-22, 2.5e-23, 2.5e-23, 1e-22),
)
"""Λ of solar composition in erg cm³/s: by eye through textbook curves, right to a factor of 2."""


@dataclass(frozen=True)
class InterstellarGas(System):
    """A cube of interstellar gas with open sides.

    The state is that of `Gas`: density, three momentum densities, energy density, float64.

    Args:
        shape: number of cells along x, y and z.
        dt: time between two frames, Myr.
        rho0: mean hydrogen density at the start, atoms per cm³.
        T0: temperature at the start, K.
        Z: metallicity in units of the sun's; the strength of cooling.
        courant: how much of a cell the fastest waves may cross in a solver step.
    """

    shape: tuple[int, int, int] = (32, 32, 32)
    dt: float = 0.01
    rho0: float = 44.5
    T0: float = 100.0
    Z: float = 1.0
    courant: float = 0.8

    fields = (Field("density"), Field("pressure"), Field("temperature"), Field("velocity", 1))
    axes = ("x", "y", "z")
    boundaries = "open"
    parameters = ("rho0", "T0", "Z")
    extent = (60.0, 60.0, 60.0)

    def __post_init__(self) -> None:
        if len(self.shape) != 3 or min(self.shape) < 4 or min(self.dt, self.rho0, self.T0) <= 0:
            raise OvertoneError(f"{self}: expected 4 or more cells along 3 axes, positive numbers")
        if not self.lowest_temperature <= self.T0 < SOLAR_TEMPERATURES[-1] or self.Z < 0:
            raise OvertoneError(
                f"{self}: expected T0 of at least {self.lowest_temperature:g} K and Z of at least 0"
            )

    @property
    @abstractmethod
    def lowest_temperature(self) -> float:
        """Where heating holds the gas, K."""

    @cached_property
    def gas(self) -> Gas:
        """The finite-volume scheme on this grid."""
        density = 1e-5 * self.mean_density
        pressure = density * GAS_CONSTANT * self.lowest_temperature
        domain = self.domain
        return Gas(
            domain.spacing,
            domain.boundaries,
            density_floor=density,
            pressure_floor=pressure,
            courant=self.courant,
        )

    @property
    def mean_density(self) -> float:
        """Mean density at the start, M☉/pc³."""
        return self.rho0 * HYDROGEN

    def state(self, density: Tensor, velocity: Tensor, temperature: Tensor) -> Tensor:
        """The state of fields `(num, *shape)`, `(num, 3, *shape)` and `(num, *shape)`."""
        pressure = GAS_CONSTANT * density * temperature
        primitive = torch.cat([density[:, None], velocity, pressure[:, None]], dim=1)
        return self.gas.conserved(primitive)

    def frame(self, state: Tensor) -> Tensor:
        """Density, pressure, temperature and velocity, `(num, 6, *shape)`."""
        variables = self.gas.primitive(state)
        density, velocity, pressure = variables[:, :1], variables[:, 1:-1], variables[:, -1:]
        temperature = pressure / density / GAS_CONSTANT
        return torch.cat([density, pressure, temperature, velocity], dim=1)

    def cool(self, state: Tensor, dt: float) -> Tensor:
        """The state after radiation alone acted on it; energy is changed in place."""
        variables = self.gas.primitive(state)
        density, pressure = variables[:, 0], variables[:, -1]
        temperature = pressure / density / GAS_CONSTANT
        cooled = temperature.clamp(min=self.lowest_temperature)
        if self.Z:
            cooled = self._curve.cool(cooled, density * (self.Z * dt / HYDROGEN))
        cooled = self.limit_cooling(cooled, temperature, density)
        change = (cooled - temperature) * density * (GAS_CONSTANT / (self.gas.gamma - 1))
        state[:, -1] += change
        return state

    def limit_cooling(self, cooled: Tensor, temperature: Tensor, density: Tensor) -> Tensor:
        """The temperature to use in place of `cooled`; all are `(num, *shape)`."""
        return cooled

    @cached_property
    def _curve(self) -> CoolingCurve:
        rates = tuple(KELVIN_PER_MYR * rate for rate in SOLAR_RATES)
        return CoolingCurve(SOLAR_TEMPERATURES, rates).above(self.lowest_temperature)


def random_field(
    num: int, shape: tuple[int, ...], random: torch.Generator, *, slope: float, waves: int = 8
) -> Tensor:
    """Gaussian random fields `(num, *shape)` of mean 0 and variance 1, float64.

    A sum of Fourier modes with up to `waves` waves in the box and random coefficients. The same
    generator gives the same field on every grid.

    Args:
        num: how many.
        shape: the grid.
        random: where the coefficients come from.
        slope: the power of a mode of wavenumber k is k^-slope.
        waves: largest wavenumber.
    """
    k = torch.arange(-waves, waves + 1, dtype=torch.float64)
    squared = torch.zeros((), dtype=torch.float64)
    for axis in range(len(shape)):
        squared = squared + k.square().reshape([-1 if a == axis else 1 for a in range(len(shape))])
    keep = (squared > 0) & (squared <= waves**2)
    amplitude = torch.where(keep, squared.clamp(min=1) ** (-slope / 4), 0.0)
    parts = torch.randn(2, num, *squared.shape, generator=random, dtype=torch.float64)
    field = torch.complex(parts[0], parts[1]) * amplitude
    for n in shape:
        phase = 2 * math.pi * k * cell_centres(n, 1.0)[:, None]
        wave = torch.polar(torch.ones_like(phase), phase)
        # The first remaining axis of modes becomes the last axis of the grid.
        field = torch.einsum("nk...,xk->n...x", field, wave)
    return field.real / amplitude.square().sum().sqrt()


__all__ = ["GAS_CONSTANT", "GRAVITY", "SUPERNOVA_ENERGY", "InterstellarGas", "random_field"]
