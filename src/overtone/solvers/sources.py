"""What changes a gas besides its own flow: radiative cooling and self-gravity.

Cooling at constant density is solved exactly for piecewise power laws,

    dT/dt = -s r(T),    r(T) = r_k (T/T_k)^a_k   between the nodes T_k and T_{k+1}.

The time that a unit strength s = 1 needs to cool from T down to the lowest node,

    Y(T) = ∫ dT'/r(T')  from T_0 to T,

is a closed form in each piece, and so is its inverse. A step is then T' = Y⁻¹(Y(T) - s dt): exact
for any length of the step, so it never overshoots and needs no substeps (the exact integration
scheme of Townsend, 2009).

Gravity is that of the mass in a box, with empty space around it:

    ∇²φ = 4πGρ,   φ → 0 far away,   so   φ = -G ∫ ρ(r')/|r - r'| dr'.

The convolution is done by FFT on a grid of twice the size, so that the copies that a transform
implies never reach the box (Hockney's method). Accelerations are central differences of φ. The
kernel is symmetric, so the forces between any two cells are opposite and momentum is conserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from overtone.errors import OvertoneError

LEAST_POWER = 1e-9
"""Stands for 1 - a = 0, where power laws become exponentials; the error is of its size."""
MEAN_INVERSE_DISTANCE = 2.3800774
"""Mean of 1/r over a cube of side 1 around r = 0: the potential of a cell at its own centre."""
AXES = (-3, -2, -1)
"""The axes of space."""


@dataclass(frozen=True)
class CoolingCurve:
    """Cooling rate as a function of temperature.

    Gas below the lowest node or above the highest one does not cool.

    Args:
        temperatures: the nodes T_k, increasing.
        rates: r at the nodes, positive, in units of temperature per time at unit strength.
    """

    temperatures: tuple[float, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        nodes, rates = self.temperatures, self.rates
        increasing = all(low < high for low, high in pairwise((0.0, *nodes)))
        if len(nodes) < 2 or len(nodes) != len(rates) or not increasing or min(rates) <= 0:
            raise OvertoneError(
                f"temperatures {nodes} and rates {rates}; expected two or more nodes, increasing "
                "and positive, and a positive rate for each"
            )

    def rate(self, temperature: float) -> float:
        """`r(T)` between the lowest and the highest node."""
        nodes = self.temperatures
        k = max(i for i, node in enumerate(nodes[:-1]) if i == 0 or node <= temperature)
        power = math.log(self.rates[k + 1] / self.rates[k]) / math.log(nodes[k + 1] / nodes[k])
        return self.rates[k] * (temperature / nodes[k]) ** power

    def above(self, floor: float) -> CoolingCurve:
        """The same curve without cooling below a temperature."""
        if floor >= self.temperatures[-1]:
            raise OvertoneError(
                f"the cooling floor is {floor:g}; expected less than {self.temperatures[-1]:g}"
            )
        if floor <= self.temperatures[0]:
            return self
        kept = [(t, r) for t, r in zip(self.temperatures, self.rates, strict=True) if t > floor]
        temperatures, rates = zip((floor, self.rate(floor)), *kept, strict=True)
        return CoolingCurve(temperatures, rates)

    def cool(self, temperature: Tensor, strength: Tensor | float) -> Tensor:
        """Temperature after a step, same shape.

        Args:
            temperature: T, any shape.
            strength: s dt, broadcast against it.
        """
        table = self._table.to(device=temperature.device, dtype=temperature.dtype)
        lowest, highest = self.temperatures[0], self.temperatures[-1]
        inside = temperature.clamp(lowest, highest)
        node, scale, power, start = _pieces(table, 0, inside)
        left = torch.log(inside / node).mul_(power)
        left = torch.expm1(left).mul_(scale).add_(start).sub_(strength).clamp_(min=0)
        node, scale, power, start = _pieces(table, 3, left)
        cooled = torch.log1p((left - start).div_(scale)).div_(power)
        cooled = torch.exp(cooled).mul_(node)
        return torch.where((temperature > lowest) & (temperature <= highest), cooled, temperature)

    @cached_property
    def _table(self) -> Tensor:
        """Numbers of each piece: T_k, T_k/(r_k (1 - a_k)), 1 - a_k and Y(T_k), `(4, pieces)`."""
        rows: list[Sequence[float]] = []
        start = 0.0
        for k in range(len(self.rates) - 1):
            ratio = self.temperatures[k + 1] / self.temperatures[k]
            power = 1 - math.log(self.rates[k + 1] / self.rates[k]) / math.log(ratio)
            power = power if abs(power) > LEAST_POWER else LEAST_POWER
            scale = self.temperatures[k] / self.rates[k] / power
            rows.append((self.temperatures[k], scale, power, start))
            start += scale * math.expm1(power * math.log(ratio))
        return torch.tensor(rows, dtype=torch.float64).T.contiguous()


def potential(density: Tensor, spacing: Sequence[float], constant: float) -> Tensor:
    """Gravitational potential with one layer of ghost cells, `(num, nx + 2, ny + 2, nz + 2)`.

    Args:
        density: ρ, `(num, nx, ny, nz)`.
        spacing: length of a cell along each axis.
        constant: G in the units of the rest.
    """
    shape = tuple(density.shape[-3:])
    doubled = tuple(2 * n for n in shape)
    kernel = _kernel(shape, tuple(spacing)).to(device=density.device)
    modes = torch.fft.rfftn(density, s=doubled, dim=AXES)
    phi = torch.fft.irfftn(modes.mul_(kernel), s=doubled, dim=AXES).mul_(-constant)
    # Index -1 of the doubled grid is the ghost cell below the box, index n the one above.
    phi = torch.roll(phi, (1, 1, 1), dims=AXES)
    return phi[..., : shape[0] + 2, : shape[1] + 2, : shape[2] + 2]


def acceleration(density: Tensor, spacing: Sequence[float], constant: float) -> Tensor:
    """`-∇φ`, `(num, 3, nx, ny, nz)`; arguments as for `potential`."""
    phi = potential(density, spacing, constant)
    parts = []
    for axis, length in zip(AXES, spacing, strict=True):
        inner = phi
        for other in AXES:
            if other != axis:
                inner = inner.narrow(other, 1, inner.shape[other] - 2)
        n = inner.shape[axis] - 2
        parts.append((inner.narrow(axis, 0, n) - inner.narrow(axis, 2, n)) / (2 * length))
    return torch.stack(parts, dim=1)


def _pieces(table: Tensor, key: int, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The table's rows for the piece that each value lies in, by one of its rows."""
    piece = torch.bucketize(values, table[key, 1:], right=True)
    node, scale, power, start = (row[piece] for row in table)
    return node, scale, power, start


@lru_cache(maxsize=4)
def _kernel(shape: tuple[int, ...], spacing: tuple[float, ...]) -> Tensor:
    """Transform of a cell's volume over its distance, on the doubled grid."""
    squared = torch.zeros((), dtype=torch.float64)
    volume = 1.0
    for axis, (n, length) in enumerate(zip(shape, spacing, strict=True)):
        index = torch.arange(2 * n, dtype=torch.float64)
        distance = torch.minimum(index, 2 * n - index) * length
        squared = squared + distance.square().reshape([-1 if a == axis else 1 for a in range(3)])
        volume *= length
    inverse = squared.clamp(min=1e-300).rsqrt()
    inverse[0, 0, 0] = MEAN_INVERSE_DISTANCE / volume ** (1 / 3)
    return torch.fft.rfftn(volume * inverse, dim=AXES).real
