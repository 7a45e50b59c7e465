"""Seams: does a residual jump at the borders of patches more than within them?

A model whose patches disagree leaves a step at every border. If the steps follow the flow, so that
their size and sign differ from patch to patch, the residual has no lines at the patch grid's
harmonics (`harmonics.py` sees nothing), but anyone who looks at a picture sees the grid. With d the
difference of neighbouring cells along an axis,

    seam = 10 log10( mean of d² across borders / mean of d² within patches )

in dB, mean over the axes: 0 without seams, also for steep residuals, since fronts of the flow cross
borders as often as other places.
"""

from __future__ import annotations

import torch
from torch import Tensor

from overtone.errors import PatchError
from overtone.metrics.harmonics import Patch, grid_of
from overtone.metrics.lattice import check_patch
from overtone.metrics.spectrum import Periodic, wrapping

LARGEST = 60.0
"""dB at which a ratio is cut, as of a residual that is constant within every patch."""


def seams(residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True) -> Tensor:
    """How much more a residual jumps across the borders of patches than within patches.

    Args:
        residual: prediction minus truth, `(..., *space)`.
        patch: period of the grid in cells, one for all axes or one for each; the grid begins at
            the first cell. An axis with patches of one cell has no cells within.
        ndim: number of spatial axes.
        periodic: whether each axis wraps, so that its ends meet at a border.

    Returns:
        `(...)` dB, mean over the axes that have borders.
    """
    return seam_height(*jumps(residual, patch, ndim=ndim, periodic=periodic))


def seam_height(across: Tensor, within: Tensor) -> Tensor:
    """What `seams` returns, from what `jumps` returns."""
    ratio = torch.where(across + within > 0, across / within.clamp(min=1e-300), 1.0)
    return (10 * ratio.clamp(min=1e-300).log10()).clamp(-LARGEST, LARGEST).mean(dim=0)


def jumps(
    residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True
) -> tuple[Tensor, Tensor]:
    """Mean square jumps across the borders of patches and within patches.

    Args:
        residual, patch, ndim, periodic: as for `seams`.

    Returns:
        Two tensors `(A, ...)`, for each of the A axes that have borders.
    """
    patches = check_patch(patch, grid_of(residual, ndim))
    axes = zip(range(-ndim, 0), patches, wrapping(periodic, ndim), strict=True)
    found = [
        _along(residual.double(), axis, size, wraps, ndim)
        for axis, size, wraps in axes
        if 1 < size < residual.shape[axis]
    ]
    if not found:
        raise PatchError(f"patch {patch} has no borders on a grid {tuple(residual.shape[-ndim:])}")
    across, within = zip(*found, strict=True)
    return torch.stack(across), torch.stack(within)


def _along(
    residual: Tensor, axis: int, patch: int, wraps: bool, ndim: int
) -> tuple[Tensor, Tensor]:
    """Along one axis, two of `(...)`."""
    squares = (residual - residual.roll(1, dims=axis)).square()
    place = torch.arange(residual.shape[axis], device=residual.device)
    if not wraps:
        squares, place = squares.narrow(axis, 1, len(place) - 1), place[1:]
    border = place % patch == 0
    space = tuple(range(-ndim, 0))
    across = squares.index_select(axis, border.nonzero()[:, 0]).mean(dim=space)
    within = squares.index_select(axis, (~border).nonzero()[:, 0]).mean(dim=space)
    return across, within
