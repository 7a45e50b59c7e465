"""Time steppers, each of the order that it says; the tests measure it.

- `ssp_rk2`: for `∂y/∂t = f(y)` where positivity must be kept.
- `ExponentialRK4`: for `∂y/∂t = L y + f(y)` with diagonal `L`, real or complex. The linear part is
  exact and `f` is integrated against it by the four stages of Krogstad (2005): fourth order, and at
  least third where rates are so large that the classical order is not reached. Other than with an
  integrating factor, steady states stay steady however stiff the linear part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Tendency = Callable[[Tensor], Tensor]

SERIES_TERMS = 20
"""Enough for round-off at |z| ≤ 1."""


def ssp_rk2(state: Tensor, dt: float, f: Tendency) -> Tensor:
    """Second-order strong-stability-preserving Runge-Kutta for `∂y/∂t = f(y)`.

    Two Euler steps, then the mean of start and end: what one Euler step keeps (positivity, bounded
    variation), it keeps.
    """
    first = torch.add(state, f(state), alpha=dt)
    return torch.add(first, f(first), alpha=dt).add_(state).div_(2)


@dataclass(frozen=True)
class ExponentialRK4:
    """The scheme for one length of step.

    Attributes:
        half: exp(L dt / 2), the linear part's work in half a step.
        full: exp(L dt).
        to_half: what `f` at the start and at the first stage weighs in the second stage; their sum
            is what it weighs in the first.
        to_full: what `f` at the start and at the second stage weighs in the third.
        to_end: what `f` at the start, at both middle stages and at the third weighs in the result.
    """

    half: Tensor
    full: Tensor
    to_half: tuple[Tensor, Tensor]
    to_full: tuple[Tensor, Tensor]
    to_end: tuple[Tensor, Tensor, Tensor]

    @classmethod
    def of(cls, rates: Tensor, dt: float) -> ExponentialRK4:
        """The scheme for the diagonal of L, `(…)`, which broadcasts against the state."""
        z = rates * dt
        half1, half2 = phi(z / 2, 1), phi(z / 2, 2)
        phi1, phi2, phi3 = (phi(z, order) for order in (1, 2, 3))
        return cls(
            half=torch.exp(z / 2),
            full=torch.exp(z),
            to_half=(dt * (half1 / 2 - half2), dt * half2),
            to_full=(dt * (phi1 - 2 * phi2), dt * 2 * phi2),
            to_end=(
                dt * (phi1 - 3 * phi2 + 4 * phi3),
                dt * (2 * phi2 - 4 * phi3),
                dt * (4 * phi3 - phi2),
            ),
        )

    def step(self, state: Tensor, f: Tendency) -> Tensor:
        """The state one step later."""
        halfway, decayed, start = self.half * state, self.full * state, f(state)
        first = f(halfway + (self.to_half[0] + self.to_half[1]) * start)
        second = f(halfway + self.to_half[0] * start + self.to_half[1] * first)
        third = f(decayed + self.to_full[0] * start + self.to_full[1] * second)
        w_start, w_middle, w_third = self.to_end
        return decayed + w_start * start + w_middle * (first + second) + w_third * third


def phi(z: Tensor, order: int) -> Tensor:
    """`φ_n(z) = Σ_j z^j / (j + n)!`: φ_0 = exp and φ_{n+1} = (φ_n - 1/n!) / z; real or complex.

    The recursion loses its digits near zero; there the series is used.
    """
    series = torch.zeros_like(z)
    for j in reversed(range(SERIES_TERMS)):
        series = series * z + 1 / math.factorial(j + order)
    small = z.abs() < 1
    far = torch.where(small, 1.0, z)
    recursion = torch.exp(far)
    for n in range(order):
        recursion = (recursion - 1 / math.factorial(n)) / far
    return torch.where(small, series, recursion)
