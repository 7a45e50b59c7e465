"""Turbulent radiative layer: hot gas over cold gas, mixed by shear, cooling where they mix, 2D.

    ∂ρ/∂t + ∇·(ρv) = 0,   ∂(ρv)/∂t + ∇·(ρvv) + ∇p = 0,
    ∂E/∂t + ∇·((E + p)v) = -p/(γ - 1) f(T)/t_cool,     E = p/(γ - 1) + ρ|v|²/2,   γ = 5/3,

    f(T) = exp(-ln²(T/T_mix)/(2 w²)),   T = p/ρ,   T_mix = (T_hot T_cold)^½.

Both phases are in thermal balance: f is nought at and below T_cold and near T_hot. Gas in between
loses its heat in a time t_cool and joins the cold phase, so hot gas flows in from above.

x is periodic, y is open. Cold, dense gas lies below y = 0, hot gas 100 times thinner above it, at
the same pressure. Small waves at the interface grow by the Kelvin-Helmholtz instability. Finite
volumes (`euler.py`), exact cooling (`sources.py`), Strang splitting between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.solvers.base import Field, System, cell_centres, uniform
from overtone.solvers.euler import Gas
from overtone.solvers.sources import CoolingCurve

HOT_DENSITY = 1.0
CONTRAST = 100.0
"""Density of the cold gas over that of the hot gas."""
SHEAR = 0.1
"""Speed of the hot gas relative to the cold gas."""
MACH = 0.5
"""The same speed in units of the hot gas's speed of sound."""
THICKNESS = 0.03
"""Thickness of the interface at the start."""
COOLING_WIDTH = 0.6
"""w, in e-folds of temperature."""
COOLING_NODES = 33


@dataclass(frozen=True)
class TurbulentRadiativeLayer2D(System):
    """A mixing layer and how it is solved.

    The state is that of `Gas`: density, two momentum densities, energy density, float64.

    Args:
        shape: number of cells along x and y.
        dt: time between two frames.
        t_cool: cooling time where gas cools fastest.
        courant: how much of a cell the fastest waves may cross in a solver step.
    """

    shape: tuple[int, int] = (32, 96)
    dt: float = 1.597033
    t_cool: float = 0.32
    courant: float = 0.8

    name = "turbulent_radiative_layer_2D"
    fields = (Field("density"), Field("pressure"), Field("velocity", 1))
    axes = ("x", "y")
    boundaries = ("periodic", "open")
    parameters = ("t_cool",)
    extent = (1.0, 3.0)

    def __post_init__(self) -> None:
        if len(self.shape) != 2 or min(self.shape) < 4 or self.dt <= 0 or self.t_cool <= 0:
            raise OvertoneError(
                f"{self}: expected at least 4 cells along two axes and positive numbers"
            )

    @cached_property
    def gas(self) -> Gas:
        """The finite-volume scheme on this grid."""
        domain = self.domain
        return Gas(
            domain.spacing,
            domain.boundaries,
            gamma=5 / 3,
            density_floor=1e-3 * HOT_DENSITY,
            pressure_floor=1e-4 * self.pressure,
            courant=self.courant,
        )

    @property
    def pressure(self) -> float:
        """Pressure at the start, everywhere: the hot gas's speed of sound is SHEAR / MACH."""
        return HOT_DENSITY * (SHEAR / MACH) ** 2 / (5 / 3)

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Two phases with a tanh edge; seeds differ in the waves of the vertical velocity."""
        random = torch.Generator().manual_seed(seed)
        x = cell_centres(self.shape[0], 1.0)[:, None]
        y = cell_centres(self.shape[1], 3.0, start=-1.0)[None, :]
        hot = (1 + torch.tanh(y / THICKNESS)) / 2
        waves = torch.zeros(num, *self.shape, dtype=torch.float64)
        for mode in range(1, 9):
            phase = uniform(random, num, 2, 0.0, 2 * math.pi)
            amplitude = uniform(random, num, 2, 0.0, 1.0)
            waves = waves + amplitude * torch.sin(2 * math.pi * mode * x + phase)
        density = HOT_DENSITY * (CONTRAST - (CONTRAST - 1) * hot)
        vertical = 0.15 * SHEAR * waves * torch.exp(-((y / 0.1) ** 2))
        flat = torch.stack([density, SHEAR * (hot - 0.5), 0 * hot, 0 * hot + self.pressure])
        primitive = flat.expand(num, 4, *self.shape).clone()
        primitive[:, 2] = vertical
        return self.gas.conserved(primitive)

    def advance(self, state: Tensor) -> Tensor:
        """One frame further."""
        return self.gas.advance(state.clone(), self.dt, self._cool)

    def frame(self, state: Tensor) -> Tensor:
        """Density, pressure and velocity, `(num, 4, *shape)`."""
        return self.gas.primitive(state)[:, [0, 3, 1, 2]]

    @cached_property
    def _curve(self) -> CoolingCurve:
        """T f(T) from the cold gas's temperature up to just below the hot gas's."""
        hot = self.pressure / HOT_DENSITY
        cold, middle = hot / CONTRAST, hot / math.sqrt(CONTRAST)
        ratio = (0.8 * hot / cold) ** (1 / (COOLING_NODES - 1))
        nodes = [cold * ratio**k for k in range(COOLING_NODES)]
        widths = [math.log(t / middle) / COOLING_WIDTH for t in nodes]
        rates = [t * math.exp(-(w**2) / 2) for t, w in zip(nodes, widths, strict=True)]
        return CoolingCurve(tuple(nodes), tuple(rates))

    def _cool(self, state: Tensor, dt: float) -> Tensor:
        """The state after radiation alone acted on it; energy is changed in place."""
        variables = self.gas.primitive(state)
        density, pressure = variables[:, 0], variables[:, -1]
        temperature = pressure / density
        cooled = self._curve.cool(temperature, dt / self.t_cool)
        state[:, -1] += (cooled - temperature) * density / (self.gas.gamma - 1)
        return state


__all__ = ["TurbulentRadiativeLayer2D"]
