"""Time steppers: pure functions from a state to the state one step later.

Each is written for a right-hand side `f` and is of the order that its name says; the tests measure
it.
"""

from __future__ import annotations

from collections.abc import Callable

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
    k1 = f(state)
    k2 = f(half * (state + dt / 2 * k1))
    k3 = f(half * state + dt / 2 * k2)
    k4 = f(half * (half * state + dt * k3))
    return half**2 * (state + dt / 6 * k1) + half * (dt / 3) * (k2 + k3) + dt / 6 * k4


def ssp_rk3(state: Tensor, dt: float, f: Tendency) -> Tensor:
    """Third-order strong-stability-preserving Runge-Kutta for `∂y/∂t = f(y)`.

    A convex combination of Euler steps: what one Euler step keeps (positivity, bounded
    variation), it keeps.
    """
    first = state + dt * f(state)
    second = (3 * state + first + dt * f(first)) / 4
    return (state + 2 * second + 2 * dt * f(second)) / 3


__all__ = ["Tendency", "integrating_factor_rk4", "ssp_rk3"]
