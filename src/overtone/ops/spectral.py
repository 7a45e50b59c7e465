"""Fourier space of periodic grids: wavenumbers, derivatives, dealiasing.

Real fields are transformed with `rfftn` over their spatial axes, so the last axis holds the
non-negative wavenumbers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
