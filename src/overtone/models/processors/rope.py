"""Rotary position encoding at physical positions.

Pairs of a query's (and a key's) components are rotated by an angle that is proportional to
position, so that their product depends on the difference of positions alone. Positions are the
tokens' centres as fractions of the domain, so the same place has the same phase at every patch.

Along a periodic axis the frequencies are whole turns per domain: distance is measured round the
circle and the model commutes with shifts. Along other axes they are half turns, so that the two
ends are told apart. The pairs of a head are shared evenly by the axes; what is left over is not
rotated. Along time, positions are frame numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from overtone.grid import PatchGrid
from overtone.ops.constants import constant

SLOWEST_FRAME = 100.0
"""Frames in which the slowest of the time frequencies turns by one radian."""

_complex: list[None] = []
"""As long as those who trace a model and can keep complex numbers."""


def turns(num_pairs: int, max_turns: int) -> list[int]:
    """Distinct whole numbers of turns per domain from 1 to `max_turns`, spaced geometrically."""
    result: list[int] = []
    for i in range(num_pairs):
        geometric = round(max_turns ** (i / max(num_pairs - 1, 1)))
        result.append(max(geometric, result[-1] + 1 if result else 1))
    return result


def space_rotation(grid: PatchGrid, head_dim: int, max_turns: int, like: Tensor) -> Tensor:
    """Rotation of every token of a frame, as cosine and sine.

    Returns:
        `(*grid.shape, head_dim / 2, 2)`, float32 or better, on the device of `like`.
    """
    # Round a circle differences alone matter. One table for all shifts, then, and the very numbers
    # of a program that rolls the fields instead of moving the grid.
    still = grid.at_rest()
    positions = tuple(tuple(still.centres(axis)) for axis in range(len(grid.shape)))
    arguments = (positions, grid.domain.periodic, head_dim, max_turns)
    return constant(_space_table, arguments, like.device, _precision(like))


def _space_table(
    positions: tuple[tuple[float, ...], ...],
    periodic: tuple[bool, ...],
    head_dim: int,
    max_turns: int,
) -> Tensor:
    num_axes = len(positions)
    num_pairs = head_dim // 2 // num_axes
    angles = torch.zeros(*map(len, positions), head_dim // 2, dtype=torch.float64)
    for axis, (centres, wraps) in enumerate(zip(positions, periodic, strict=True)):
        per_domain = torch.tensor(turns(num_pairs, max_turns), dtype=torch.float64)
        per_domain = per_domain if wraps else per_domain / 2
        angle = 2 * math.pi * torch.tensor(centres, dtype=torch.float64)[:, None] * per_domain
        shape = [*(-1 if a == axis else 1 for a in range(num_axes)), num_pairs]
        angles[..., axis * num_pairs : (axis + 1) * num_pairs] = angle.reshape(shape)
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def time_rotation(num_frames: int, head_dim: int, like: Tensor) -> Tensor:
    """Rotation of the first frames, `(num_frames, head_dim / 2, 2)`, as cosine and sine."""
    return constant(_time_table, (num_frames, head_dim), like.device, _precision(like))


def _time_table(num_frames: int, head_dim: int) -> Tensor:
    num_pairs = head_dim // 2
    exponents = torch.arange(num_pairs, dtype=torch.float64) / max(num_pairs - 1, 1)
    frames = torch.arange(num_frames, dtype=torch.float64)
    angles = frames[:, None] * SLOWEST_FRAME**-exponents
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotate pairs of components.

    Args:
        x: `(..., head_dim)`.
        rotation: cosine and sine, `(..., head_dim / 2, 2)`, broadcast against the pairs of `x`.
    """
    pairs = x.unflatten(-1, (-1, 2))
    if x.dtype == rotation.dtype and (_complex or not torch.compiler.is_compiling()):
        # One pass over memory; complex numbers have no half precision and no compiled kernels.
        product = torch.view_as_complex(pairs) * torch.view_as_complex(rotation)
        return torch.view_as_real(product).flatten(-2)
    (a, b), (cos, sin) = pairs.unbind(-1), rotation.unbind(-1)
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2).to(x.dtype)


@contextmanager
def with_complex() -> Iterator[None]:
    """Within it, what traces a model gets the complex product, which rounds as the model does."""
    _complex.append(None)
    try:
        yield
    finally:
        _complex.pop()


def _precision(like: Tensor) -> torch.dtype:
    return torch.promote_types(like.dtype, torch.float32)
