"""Time steppers: pure functions from a state to the state one step later.

Each is written for a right-hand side `f` and is of the order that its name says; the tests measure
it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Tendency = Callable[[Tensor], Tensor]


def integrating_factor_rk4(state: Tensor, dt: float, half: Tensor, f: Tendency) -> Tensor:
    """Fourth-order Runge-Kutta for `∂y/∂t = L y + f(y)` with diagonal `L` treated exactly.

    Args:
        state: y.
        dt: length of the step.
        half: `exp(L dt / 2)`, broadcast against the state.
        f: the rest of the tendency.
    """
    middle = half * state
    k1 = half * f(state)
    k2 = f(middle + dt / 2 * k1)
    k3 = f(middle + dt / 2 * k2)
    k4 = f(half * (middle + dt * k3))
    return half * (middle + dt / 6 * k1 + dt / 3 * (k2 + k3)) + dt / 6 * k4


def ssp_rk2(state: Tensor, dt: float, f: Tendency) -> Tensor:
    """Second-order strong-stability-preserving Runge-Kutta for `∂y/∂t = f(y)`.

    Two Euler steps, then the mean of start and end: what one Euler step keeps (positivity, bounded
    variation), it keeps.
    """
    first = torch.add(state, f(state), alpha=dt)
    return torch.add(first, f(first), alpha=dt).add_(state).div_(2)
