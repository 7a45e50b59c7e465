"""Self-gravity of the mass in a box, with empty space around it.

    ∇²φ = 4πGρ,   φ → 0 far away,   so   φ = -G ∫ ρ(r')/|r - r'| dr'.

The convolution is done by FFT on a grid of twice the size, so that the copies that a transform
implies never reach the box (Hockney's method). Accelerations are central differences of φ. The
kernel is symmetric, so the forces between any two cells are opposite and momentum is conserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

AXES = (-3, -2, -1)

MEAN_INVERSE_DISTANCE = 2.3800774
"""Mean of 1/r over a cube of side 1 around r = 0: the potential of a cell at its own centre."""


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


__all__ = ["acceleration", "potential"]
