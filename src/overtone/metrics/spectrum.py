"""Power spectra of fields and residuals.

The power of a mode is |x̂|²/N², N being the number of cells, so that all modes together have the
field's mean square (Parseval). Spectra collect modes into bins and keep that sum.

On an axis that is not periodic the two ends do not meet, and the jump between them would fill
the whole spectrum. There the field, less its mean, is multiplied by a Hann window, and the power
is divided by the window's mean square: a homogeneous field keeps its mean square on average. The
window widens a line to the two bins beside it and to no others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import DomainError

Periodic = bool | Sequence[bool]
"""Whether axes wrap: one answer for all, or one for each."""


@dataclass(frozen=True)
class Spectrum:
    """Power by wavenumber.

    Attributes:
        wavenumber: `(K,)`, cycles per cell, or per unit length where a spacing was given.
        power: `(..., K)`; adds up to the mean square of the field.
    """

    wavenumber: Tensor
    power: Tensor


def mode_power(field: Tensor, *, ndim: int, periodic: Periodic = True) -> Tensor:
    """Power of every Fourier mode.

    Args:
        field: `(..., *space)`.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.

    Returns:
        `(..., *space)`, float64, in the order of `torch.fft.fftn`. The zeroth mode holds the
        square of the mean.
    """
    wraps = wrapping(periodic, ndim)
    space = tuple(range(-ndim, 0))
    field = field.double()
    mean = field.mean(dim=space, keepdim=True)
    field = field - mean
    for axis, wrap in enumerate(wraps):
        if not wrap:
            field = field * along(hann(field.shape[axis - ndim]), axis, ndim)
    power = torch.fft.fftn(field, dim=space).abs().square()
    power = power / math.prod(field.shape[-ndim:]) ** 2
    power[(..., *(0,) * ndim)] += mean.square().reshape(power.shape[:-ndim])
    return power


def isotropic_spectrum(
    field: Tensor,
    *,
    ndim: int,
    periodic: Periodic = True,
    spacing: Sequence[float] | None = None,
) -> Spectrum:
    """Power in shells of equal |k|, as wide as the smallest wavenumber of the longest axis.

    Args:
        field: `(..., *space)`.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.
        spacing: physical length of a cell along each axis; 1 if it is not given.
    """
    shape = field.shape[-ndim:]
    spacing = tuple(spacing or (1.0,) * ndim)
    width = 1 / max(n * dx for n, dx in zip(shape, spacing, strict=True))
    shell = (wavenumber_norm(shape, spacing) / width).round().long().flatten()
    power = mode_power(field, ndim=ndim, periodic=periodic).flatten(-ndim)
    total = power.new_zeros(*power.shape[:-1], int(shell.max()) + 1)
    total.index_add_(-1, shell.to(power.device), power)
    return Spectrum(width * torch.arange(total.shape[-1], dtype=torch.float64), total)


def axis_spectrum(
    field: Tensor, axis: int, *, ndim: int, periodic: Periodic = True, spacing: float = 1.0
) -> Spectrum:
    """Power by wavenumber along one axis, summed over the others and over both signs.

    Args:
        field: `(..., *space)`.
        axis: from 0 to `ndim - 1`.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.
        spacing: physical length of a cell along the axis.
    """
    if not 0 <= axis < ndim:
        raise DomainError(f"axis is {axis}; expected one from 0 to {ndim - 1}")
    power = mode_power(field, ndim=ndim, periodic=periodic)
    others = tuple(a - ndim for a in range(ndim) if a != axis)
    power = power.sum(dim=others) if others else power
    n = power.shape[-1]
    folded = power[..., : n // 2 + 1].clone()
    folded[..., 1 : (n + 1) // 2] += power[..., n // 2 + 1 :].flip(-1)
    return Spectrum(torch.arange(n // 2 + 1, dtype=torch.float64) / (n * spacing), folded)


def wavenumber_norm(shape: Sequence[int], spacing: Sequence[float] | None = None) -> Tensor:
    """|k| of every mode of a grid in cycles per unit length, `(*shape)`, float64."""
    spacing = spacing or (1.0,) * len(shape)
    square = torch.zeros((), dtype=torch.float64)
    for axis, (n, dx) in enumerate(zip(shape, spacing, strict=True)):
        k = torch.fft.fftfreq(n, d=dx, dtype=torch.float64)
        square = square + along(k.square(), axis, len(shape))
    return square.sqrt()


def hann(n: int) -> Tensor:
    """A Hann window over cell centres with mean square 1, `(n,)` float64."""
    angle = 2 * math.pi * (torch.arange(n, dtype=torch.float64) + 0.5) / n
    window = 1 - angle.cos()
    return window / window.square().mean().sqrt()


def along(values: Tensor, axis: int, ndim: int) -> Tensor:
    """Values `(n,)` shaped to broadcast along one of the last `ndim` axes."""
    return values.reshape([-1 if a == axis else 1 for a in range(ndim)])


def wrapping(periodic: Periodic, ndim: int) -> tuple[bool, ...]:
    """Whether each axis wraps, from one answer for all or one for each."""
    wraps = (periodic,) * ndim if isinstance(periodic, bool) else tuple(periodic)
    if len(wraps) != ndim:
        raise DomainError(f"periodic is {periodic!r}; expected one bool, or one for each of {ndim}")
    return wraps
