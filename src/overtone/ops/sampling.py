"""Reading a grid between its cells, from the few cells around each place.

A place is a fraction of an axis; cell `i` of `n` has its centre at `(i + 1/2) / n`. Along each axis
the value at a place is a weighted sum of the nearest cells, whose weights add up to 1:

- `"linear"`: two cells; the result is continuous.
- `"cubic"`: four cells (Catmull and Rom's spline); its derivative is continuous as well.

Both give a cell's own value at its centre. Beyond the outermost centres a periodic axis wraps,
others repeat the outermost cell. Axes are separable. On a grid of places one small matrix for each
axis does it (`sample_grid`); at scattered places the cells of the stencil are gathered
(`sample_points`), so that memory grows with the places and never with places times cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from overtone.ops.constants import constant, full_precision

Spline = Literal["linear", "cubic"]


def sample_grid(
    values: Tensor,
    places: Sequence[Sequence[float]],
    *,
    periodic: Sequence[bool],
    spline: Spline,
) -> Tensor:
    """Values on the grid that is spanned by places along each axis.

    Args:
        values: `(*grid, dim)`.
        places: for each axis, where to read, as fractions of it.
        periodic: for each axis, whether it wraps.
        spline: `"linear"` or `"cubic"`.

    Returns:
        `(*places, dim)`.
    """
    for axis, (along, wraps) in enumerate(zip(places, periodic, strict=True)):
        length = values.shape[axis]
        if not _are_centres(along, length):
            key = (tuple(along), length, wraps, spline)
            matrix = constant(_matrix, key, values.device, values.dtype)
            with full_precision(values):
                values = (values.movedim(axis, -1) @ matrix.T).movedim(-1, axis)
    return values


def sample_points(
    values: Tensor, places: Tensor, *, periodic: Sequence[bool], spline: Spline
) -> Tensor:
    """Values at scattered places.

    Args:
        values: `(*grid, dim)`.
        places: fractions of each axis, `(Q, axes)`.
        periodic: for each axis, whether it wraps.
        spline: `"linear"` or `"cubic"`.

    Returns:
        `(Q, dim)`.
    """
    shape = values.shape[:-1]
    cells = torch.zeros(len(places), 1, dtype=torch.long, device=places.device)
    weights = torch.ones(len(places), 1, dtype=places.dtype, device=places.device)
    for axis, (length, wraps) in enumerate(zip(shape, periodic, strict=True)):
        near, share = stencil(places[:, axis], length, periodic=wraps, spline=spline)
        cells = (cells[:, :, None] * length + near[:, None]).flatten(1)
        weights = (weights[:, :, None] * share[:, None]).flatten(1)
    gathered = values.flatten(0, -2)[cells]
    with full_precision(values):
        return torch.einsum("qk,qkd->qd", weights.to(values.dtype), gathered)


def stencil(
    places: Tensor, length: int, *, periodic: bool, spline: Spline
) -> tuple[Tensor, Tensor]:
    """The cells near each place of an axis, and their weights.

    Args:
        places: fractions of the axis, `(Q,)`.
        length: cells of the axis.
        periodic: whether it wraps.
        spline: `"linear"` (two cells) or `"cubic"` (four).

    Returns:
        Cells and weights, both `(Q, 2)` or `(Q, 4)`.
    """
    position = places * length - 0.5
    below = position.floor()
    t = position - below
    if spline == "linear":
        first, weights = 0, torch.stack([1 - t, t], dim=-1)
    else:
        first = -1
        weights = torch.stack(
            [
                ((-0.5 * t + 1) * t - 0.5) * t,
                (1.5 * t - 2.5) * t * t + 1,
                ((-1.5 * t + 2) * t + 0.5) * t,
                (0.5 * t - 0.5) * t * t,
            ],
            dim=-1,
        )
    offsets = torch.arange(first, first + weights.shape[-1], device=places.device)
    cells = below.long()[:, None] + offsets
    return cells % length if periodic else cells.clamp(0, length - 1), weights


def _matrix(places: tuple[float, ...], length: int, periodic: bool, spline: Spline) -> Tensor:
    """The matrix `(len(places), length)`, float64, that reads an axis at places."""
    at = torch.tensor(places, dtype=torch.float64)
    cells, weights = stencil(at, length, periodic=periodic, spline=spline)
    return torch.zeros(len(places), length, dtype=torch.float64).scatter_add(1, cells, weights)


def _are_centres(places: Sequence[float], length: int) -> bool:
    """Whether places are the centres of an axis' cells, in order: nothing is to be done then."""
    return len(places) == length and all(
        abs(place * length - 0.5 - i) < 1e-9 for i, place in enumerate(places)
    )
