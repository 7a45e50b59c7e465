"""Moving band-limited periodic fields between grids, exactly.

Cells have their values at their centres, `(j + 1/2) L / n`, so the first cells of two grids don't
lie at the same place. In Fourier space that is a phase: a mode of k turns per domain, sampled at n
cells, becomes for m cells

    F'_k = (m / n) · exp(iπk (1/m - 1/n)) · F_k.

Modes that both grids resolve are kept; the others, and the Nyquist mode, which can't be moved, are
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def resample(fields: Tensor, shape: Sequence[int]) -> Tensor:
    """Periodic fields on another grid of the same domain.

    Args:
        fields: values at cell centres, `(…, *old shape)`.
        shape: number of cells wanted along each of the last axes; where it is the old number,
            nothing is changed along that axis.

    Returns:
        `(…, *shape)`, in the precision given.
    """
    for axis, cells in enumerate(shape, start=fields.dim() - len(shape)):
        fields = _along(fields, axis, cells)
    return fields


def _along(fields: Tensor, axis: int, cells: int) -> Tensor:
    n = fields.shape[axis]
    if n == cells:
        return fields
    kept = (min(n, cells) + 1) // 2  # wavenumbers below half the coarser grid's
    modes = torch.fft.rfft(fields, dim=axis).narrow(axis, 0, kept)
    turns = torch.arange(kept, device=fields.device, dtype=fields.dtype)
    angle = math.pi * (1 / cells - 1 / n) * turns
    move = (cells / n) * torch.polar(torch.ones_like(angle), angle)
    along = [-1 if a == axis else 1 for a in range(fields.dim())]
    return torch.fft.irfft(modes * move.reshape(along), n=cells, dim=axis)
