"""The Bingham closure in two dimensions: the fourth moment of rods from their second.

Rods at angle θ with density ψ(θ) have the moments

    c = ∫ψ dθ,    q = ∫e^{2iθ} ψ dθ,    r = ∫e^{4iθ} ψ dθ.

The closure takes, of all densities with the given c and q, the one with the largest entropy:
ψ ∝ exp(κ cos(2θ - arg q)). Then |q|/c = I₁(κ)/I₀(κ) and |r|/c = I₂(κ)/I₀(κ), and so

    r = h(|q|²/c²) q²/c,     h(0) = 1/2 (isotropic),  h(1) = 1 (all rods parallel),

with one smooth function h, which is tabulated once. This is the exact fourth moment of rods that
align with their mean direction and diffuse in angle, and it keeps every |r| ≤ c.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

NUM_INTERVALS = 1 << 15
"""Of the table; straight lines between its points are then exact to 1e-9."""


def fourth_moment(c: Tensor, q: Tensor) -> Tensor:
    """The fourth moment r.

    Args:
        c: concentration, real and positive, any shape.
        q: second moment, complex, of the same shape; `|q| > c` (which no density has, but a coarse
            grid may) counts as parallel rods.
    """
    squared = q.square()
    order = (q.abs() / c).square()
    return shape_function(order) * squared / c


def shape_function(order: Tensor) -> Tensor:
    """The function h of the squared order parameter `|q|²/c²`, which is clamped to [0, 1]."""
    values, slopes = _table(order.device)
    scaled = order.clamp(0, 1) * NUM_INTERVALS
    index = scaled.to(torch.int64).clamp(max=NUM_INTERVALS - 1)
    return values[index] + (scaled - index) * slopes[index]


@lru_cache(maxsize=8)
def _table(device: torch.device) -> tuple[Tensor, Tensor]:
    """At each interval's start: h, and how much it grows over the interval."""
    order = torch.arange(1, NUM_INTERVALS, dtype=torch.float64) / NUM_INTERVALS
    target = order.sqrt()
    low, high = torch.full_like(order, -10.0), torch.full_like(order, 12.0)
    for _ in range(60):  # bisection for log κ; the ratio of Bessel functions is monotonic
        middle = (low + high) / 2
        kappa = middle.exp()
        above = torch.special.i1e(kappa) / torch.special.i0e(kappa) > target
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    inside = (1 - 2 * target / low.exp()) / order  # I₂ = I₀ - 2 I₁ / κ
    ends = torch.tensor([0.5, 1.0], dtype=torch.float64)
    h = torch.cat([ends[:1], inside, ends[1:]])
    return h[:-1].to(device), h.diff().to(device)
