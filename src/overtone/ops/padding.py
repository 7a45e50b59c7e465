"""Taking ranges of cells that may reach beyond an axis, and what lies there.

One operation serves padding, cropping and shifting: `take` the cells `start … stop - 1` of an
axis. On a periodic axis cell numbers are meant modulo the length, so a range that starts at 3 is a
roll by 3 and a longer one is circular padding. On other axes the cells outside are ghosts.

Ghost cells carry no field values. What tells a model where and what the boundary is are *marker*
channels, one for each kind of boundary: 1 in the ghost cells, fading out into the domain. The
weights of the first kernel on a marker are the learned boundary tokens of that kind; because the
marker reaches into the domain, they act at every patch, also where no ghost cell is needed.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from overtone.domain import Boundary, Domain, Sides
from overtone.grid import PatchGrid
from overtone.ops.constants import constant

Span = tuple[int, int]
"""A range of cells along one axis: first, and one past the last."""

MARKER_FADE = 1 / 16
"""Distance over which a marker falls by e, as a fraction of the axis."""


def take(
    x: Tensor, dim: int, span: Span, *, periodic: bool, ghosts: Literal["zero", "edge"] = "zero"
) -> Tensor:
    """The cells `span` along a dimension.

    Args:
        x: any tensor.
        dim: the dimension that is a spatial axis.
        span: which cells; may reach beyond both ends.
        periodic: whether the axis wraps.
        ghosts: what lies beyond an axis that does not wrap: zeros, or the outermost cell again.
    """
    start, stop = span
    length = x.shape[dim]
    if (start, stop) == (0, length):
        return x
    if periodic:
        return _take_wrapped(x, dim, start, stop)
    inside = x.narrow(dim, max(start, 0), min(stop, length) - max(start, 0))
    below, above = max(-start, 0), max(stop - length, 0)
    if not below and not above:
        return inside
    parts = [_ghosts(x, dim, 0, below, ghosts), inside, _ghosts(x, dim, length - 1, above, ghosts)]
    return torch.cat(parts, dim)


def follow(fields: Tensor, grid: PatchGrid, *, back: bool = False) -> Tensor:
    """Roll fields by what a program moves a grid by, `PatchGrid.moved`; other grids have none.

    Args:
        fields: `(..., *space)`.
        grid: whose cell `moved` comes to the beginning of every axis that wraps.
        back: the other way.
    """
    if grid.moved is None:
        return fields
    first = fields.dim() - grid.domain.ndim
    for axis, (n, wraps) in enumerate(zip(grid.domain.shape, grid.domain.periodic, strict=True)):
        if wraps:
            cells = -grid.moved[axis] if back else grid.moved[axis]
            order = (torch.arange(n, device=fields.device) + cells) % n
            fields = fields.index_select(first + axis, order)
    return fields


def _take_wrapped(x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    length = x.shape[dim]
    parts = []
    while start < stop:
        first = start % length
        size = min(length - first, stop - start)
        parts.append(x.narrow(dim, first, size))
        start += size
    return torch.cat(parts, dim)


def _ghosts(x: Tensor, dim: int, cell: int, count: int, kind: str) -> Tensor:
    shape = list(x.shape)
    shape[dim] = count
    if kind == "edge":
        return x.narrow(dim, cell, 1).expand(shape)
    return x.new_zeros(shape)


def boundary_markers(domain: Domain, spans: tuple[Span, ...], like: Tensor) -> Tensor:
    """One channel for each kind of non-periodic boundary of a domain, over ranges of cells.

    Args:
        domain: whose boundaries.
        spans: the cells along each axis.
        like: gives device and dtype.

    Returns:
        `(len(domain.kinds), *cells)`: 1 in ghost cells of that kind, `exp(-d)` at distance `d`
        from the nearest such side, in units of `MARKER_FADE` times the axis' extent.
    """
    arguments = (domain.shape, domain.boundaries, domain.kinds, spans)
    return constant(_draw_markers, arguments, like.device, like.dtype)


def _draw_markers(
    shape: tuple[int, ...],
    boundaries: tuple[Sides, ...],
    kinds: tuple[Boundary, ...],
    spans: tuple[Span, ...],
) -> Tensor:
    markers = torch.zeros(len(kinds), *(b - a for a, b in spans), dtype=torch.float64)
    for axis, (start, stop) in enumerate(spans):
        centre = (torch.arange(start, stop, dtype=torch.float64) + 0.5) / shape[axis]
        along = [-1 if a == axis else 1 for a in range(len(shape))]
        for kind, distance in zip(boundaries[axis], (centre, 1 - centre), strict=True):
            if kind in kinds:
                profile = torch.exp(-(distance / MARKER_FADE).clamp(min=0)).reshape(along)
                channel = kinds.index(kind)
                # The nearest side counts, so that nothing is added up in corners.
                markers[channel] = torch.maximum(markers[channel], profile)
    return markers
