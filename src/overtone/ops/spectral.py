"""Fourier space of periodic grids: wavenumbers, derivatives, dealiasing, and changes of grid.

Real fields are transformed with `rfftn` over their spatial axes, so the last axis holds the
non-negative wavenumbers only. `fourier_space` gives the operators of a grid on a device; they are
made once for each grid and device and then shared.

`resample` moves band-limited fields between grids, exactly. Cells have their values at their
centres, `(j + 1/2) L / n`, so the first cells of two grids don't lie at the same place. In Fourier
space that is a phase: a mode of k turns per domain, sampled at n cells, becomes for m cells

    F'_k = (m / n) · exp(iπk (1/m - 1/n)) · F_k.

Modes that both grids resolve are kept; the others, and the Nyquist mode, which can't be moved, are
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor


def wavenumbers(
    shape: Sequence[int], extent: Sequence[float], *, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    """Angular wavenumber along each axis, each broadcastable against an `rfftn` of that shape."""
    ndim = len(shape)
    result = []
    for axis, (n, length) in enumerate(zip(shape, extent, strict=True)):
        frequencies = torch.fft.rfftfreq if axis == ndim - 1 else torch.fft.fftfreq
        k = 2 * math.pi * frequencies(n, d=length / n, dtype=dtype)
        result.append(k.reshape([-1 if a == axis else 1 for a in range(ndim)]))
    return result


def dealias_mask(shape: Sequence[int], *, dtype: torch.dtype = torch.float64) -> Tensor:
    """1 for modes below two thirds of the Nyquist wavenumber along every axis, 0 elsewhere.

    Products of two fields that are cut off so have no aliasing error on the modes that remain.
    """
    keep = torch.ones((), dtype=dtype)
    for n, k in zip(shape, wavenumbers(shape, [2 * math.pi] * len(shape)), strict=True):
        keep = keep * (k.abs() < n / 3).to(dtype)
    return keep


class FourierSpace:
    """Operators on the modes of real fields on a periodic grid, float64, on one device.

    Attributes:
        shape: number of cells along each axis.
        k: wavenumber along each axis, broadcastable.
        k2: squared length of the wavevector, `(*modes)`.
        gradient: `ik`, `(ndim, *modes)`, complex.
        inverse_laplacian: `-1/k²`, and 0 for the mean, `(*modes)`.
        mask: 1 for the modes that the 2/3 rule keeps, `(*modes)`.
    """

    def __init__(self, shape: tuple[int, ...], extent: tuple[float, ...], device: torch.device):
        self.shape = shape
        self.k = tuple(k.to(device) for k in wavenumbers(shape, extent))
        full = torch.stack(torch.broadcast_tensors(*self.k))
        self.k2 = full.square().sum(dim=0)
        self.gradient = 1j * full
        self.inverse_laplacian = torch.where(self.k2 > 0, -1 / self.k2.clamp(min=1e-30), 0.0)
        self.mask = dealias_mask(shape).to(device)
        self._axes = tuple(range(-len(shape), 0))

    def modes(self, fields: Tensor) -> Tensor:
        """Complex modes `(…, *modes)` of real fields `(…, *shape)`."""
        if 0 in fields.stride():  # of an expanded field, which not every MKL transforms
            fields = fields.contiguous()
        return torch.fft.rfftn(fields, dim=self._axes)

    def grid(self, modes: Tensor) -> Tensor:
        """Real fields `(…, *shape)` of modes `(…, *modes)`."""
        return torch.fft.irfftn(modes, s=self.shape, dim=self._axes)


@lru_cache(maxsize=32)
def fourier_space(
    shape: tuple[int, ...], extent: tuple[float, ...], device: torch.device
) -> FourierSpace:
    """The Fourier space of a grid on a device, kept for the next call."""
    with torch.inference_mode(False):  # what is kept must be usable outside of it too
        return FourierSpace(shape, extent, device)


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
