"""Power spectra of fields and residuals: mode by mode, shell by shell, band by band.

*Modes.* The power of a mode is |x̂|²/N², N being the number of cells, so that all modes together
have the field's mean square (Parseval). Spectra collect modes into bins and keep that sum. On an
axis that is not periodic the two ends do not meet, and the jump between them would fill the whole
spectrum. There the field, less its mean, is multiplied by a Hann window, and the power is divided
by the window's mean square: a homogeneous field keeps its mean square on average. The window widens
a line to the two bins beside it and to no others.

*Shells* of equal |k| say how loud a spectrum is at each scale, whatever the direction. They are
narrow at small |k| and a quarter of an octave wide elsewhere, with a few modes each.
`RadialProfile` is a smooth curve through their medians, to flatten a spectrum; `whiten` makes every
shell of a field equally loud, so that the faintest scales of a residual can be seen.

*Bands* sort the errors by scale (The Well's binned spectral errors, section "Binned spectral error"
of the paper): three by default, with edges evenly spaced on a log scale of |k|. A band's error is
the mean square of the residual filtered to it, so the bands' errors add up to the MSE. The mean
belongs to the lowest band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor
from torch.fft import fftfreq, fftn, ifftn  # pyright: ignore[reportUnknownVariableType]

from overtone.errors import DomainError, OvertoneError
from overtone.metrics.pointwise import epsilon, powers
from overtone.ops import listed

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
    power = cast("Tensor", fftn(field, dim=space)).abs().square()
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
        k = cast("Tensor", fftfreq(n, d=dx, dtype=torch.float64))
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


CLIFF = 5.0
"""Shells, or the quartiles of a neighbourhood, so many e-folds apart are an edge of the spectrum.

Modes there, or in a spectrum of which every other mode is empty, are left out.
"""

SHELL_MODES = 8
SHELL_RATIO = 2**0.25
"""A shell of the radial profile has at least so many modes and spans at least such a ratio."""

FAINTEST = 1e-12
"""Shells fainter than this, as a share of the loudest mode's power, are rounding errors."""

LOUDEST = 3.0
"""Standard deviations beyond which a value is cut before it is squared: one shock is no grid."""


@dataclass(frozen=True, eq=False)
class RadialProfile:
    """Shells of modes, and where every mode lies between them.

    Attributes:
        shells: indices of the modes of each shell, in order of rising |k|.
        below, above, blend: `(N,)`: every mode's log |k| between two shells' centres.
    """

    shells: tuple[Tensor, ...]
    below: Tensor
    above: Tensor
    blend: Tensor

    def flatten(self, log_power: Tensor) -> Tensor:
        """Log-power less its profile, both `(..., N)`: flat for any isotropic spectrum.

        Where the spectrum ends in a cliff, nobody knows on which side of it a mode should be: NaN.
        """
        profile = torch.stack([_median(log_power[..., shell]) for shell in self.shells], dim=-1)
        low, high = profile[..., self.below], profile[..., self.above]
        return torch.where(
            (high - low).abs() < CLIFF, log_power - torch.lerp(low, high, self.blend), torch.nan
        )


def lay_profile(wavenumber: Tensor, clean: Tensor) -> RadialProfile:
    """The profile through some modes.

    Args:
        wavenumber: `(N,)`, |k| of all modes.
        clean: `(N,)` bool: which of them make the profile.
    """
    shells = _shells(wavenumber, clean)
    # The mean has no log |k|; it takes the smallest one.
    log_k = wavenumber.clamp(min=wavenumber[wavenumber > 0].min().item()).log()
    centres = torch.stack([_median(log_k[shell]) for shell in shells])
    above = torch.searchsorted(centres, log_k).clamp(1, max(len(shells) - 1, 1))
    above = above.clamp(max=len(shells) - 1)
    below = (above - 1).clamp(min=0)
    gap = (centres[above] - centres[below]).clamp(min=1e-9)
    # Beyond the outermost centres the profile goes on straight.
    blend = torch.where(above == below, 0.0, (log_k - centres[below]) / gap)
    return RadialProfile(shells, below, above, blend)


def envelope(residual: Tensor, wraps: tuple[bool, ...]) -> Tensor:
    """Local energy of a residual with all its scales made equally loud.

    Where errors are large at the edges of patches, but of random sign, this is periodic though
    the residual is not. Axes that do not wrap are mirrored at their ends, so that they do.

    Args:
        residual: `(..., *space)`.
        wraps: whether each axis does.

    Returns:
        `(..., *space)`, float64; 1 on average but for what is cut, 0 where the residual is
        constant.
    """
    ndim, shape = len(wraps), residual.shape[-len(wraps) :]
    field = residual.double()
    field = field - field.mean(dim=tuple(range(-ndim, 0)), keepdim=True)
    for axis, wrap in enumerate(wraps):
        if not wrap:
            field = torch.cat([field, field.flip(axis - ndim)], dim=axis - ndim)
    white = whiten(field, ndim)
    for axis, n in enumerate(shape):
        white = white.narrow(axis - ndim, 0, n)
    return white.clamp(-LOUDEST, LOUDEST).square()


def whiten(field: Tensor, ndim: int) -> Tensor:
    """A periodic field `(..., *space)` filtered so that all shells have the same mean power."""
    space = tuple(range(-ndim, 0))
    modes = cast("Tensor", fftn(field, dim=space))
    power = modes.abs().square().flatten(-ndim)
    faintest = FAINTEST * power.amax(dim=-1, keepdim=True) + 1e-300
    shells = _all_shells(tuple(field.shape[-ndim:]))
    level = torch.zeros_like(power)
    for shell in shells:
        level[..., shell] = power[..., shell].mean(dim=-1, keepdim=True)
    gain = torch.where(level > faintest, level.clamp(min=1e-300).rsqrt(), 0.0)
    white = cast("Tensor", ifftn(modes * gain.reshape(modes.shape), dim=space)).real
    scale = white.square().mean(dim=space, keepdim=True).sqrt()
    return torch.where(scale > 0, white / scale.clamp(min=1e-300), 0.0)


@lru_cache(maxsize=8)
def _all_shells(shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    wavenumber = wavenumber_norm(shape).flatten()
    return _shells(wavenumber, wavenumber > 0)


def _shells(wavenumber: Tensor, clean: Tensor) -> tuple[Tensor, ...]:
    order = torch.argsort(torch.where(clean, wavenumber, torch.inf))[: int(clean.sum())]
    sorted_k: list[float] = listed(wavenumber[order])
    shells: list[Tensor] = []
    start = 0
    for stop in range(1, len(order)):
        ratio = sorted_k[stop] / sorted_k[start]
        # Modes of one |k| stay together; rounding makes equal |k| differ in the last digits.
        edge = sorted_k[stop] > sorted_k[stop - 1] * (1 + 1e-9)
        if edge and ratio >= SHELL_RATIO and stop - start >= SHELL_MODES:
            shells.append(order[start:stop])
            start = stop
    rest = order[start:]
    if shells and len(rest) < SHELL_MODES:
        rest = torch.cat([shells.pop(), rest])
    return (*shells, rest)


def _median(values: Tensor) -> Tensor:
    """Over the last axis, symmetric: of a power law it lies at the median of log |k|."""
    ordered = values.sort(dim=-1)[0]
    n = values.shape[-1]
    return (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2


BANDS = ("low", "mid", "high")
"""Names of the default bands."""


def band_edges(shape: Sequence[int], num_bands: int = len(BANDS)) -> Tensor:
    """Edges of The Well's bands in radians per cell, `(num_bands + 1,)` float64.

    Evenly spaced in log k from the smallest wavenumber of the longest axis to just beyond the
    largest |k| of a grid; the first edge is then put to 0.
    """
    low = math.log10(2 * math.pi / max(shape))
    high = math.log10(math.pi * math.sqrt(len(shape)) + 1e-6)
    edges = torch.logspace(low, high, num_bands + 1, dtype=torch.float64)
    edges[0] = 0.0
    return edges


def band_energy(field: Tensor, *, ndim: int, edges: Tensor | None = None) -> Tensor:
    """Mean square of a field filtered to each band.

    Args:
        field: `(..., *space)`.
        ndim: number of spatial axes.
        edges: `(bands + 1,)` in radians per cell, ascending; The Well's by default. A band
            contains its lower edge.

    Returns:
        `(..., bands)`. Modes outside all edges are left out.
    """
    shape = field.shape[-ndim:]
    edges = band_edges(shape) if edges is None else edges.double()
    if edges.dim() != 1 or len(edges) < 2 or not bool((edges.diff() > 0).all()):
        raise OvertoneError(f"edges are {listed(edges)}; expected at least two, ascending")
    k = 2 * math.pi * wavenumber_norm(shape).flatten()
    band = torch.bucketize(k, edges, right=True)
    power = mode_power(field, ndim=ndim).flatten(-ndim)
    # Band 0 takes what lies below the first edge, the last what lies beyond the last one.
    energy = power.new_zeros(*power.shape[:-1], len(edges) + 1)
    energy.index_add_(-1, band.to(power.device), power)
    return energy[..., 1:-1].to(field.dtype)


def bsmse(prediction: Tensor, truth: Tensor, *, ndim: int, edges: Tensor | None = None) -> Tensor:
    """Mean square error in each band, `(..., bands)`."""
    return band_energy(prediction - truth, ndim=ndim, edges=edges)


def bsnmse(prediction: Tensor, truth: Tensor, *, ndim: int, edges: Tensor | None = None) -> Tensor:
    """Mean square error in each band over the truth's energy there, `(..., bands)`.

    1 is the error of predicting nothing at that scale. The eps of all bands is that of the field's
    VRMSE (`pointwise.py`).

    Args:
        prediction, truth: `(..., *space)`.
        ndim: number of spatial axes.
        edges: as in `band_energy`.
    """
    dtype, prediction, truth = truth.dtype, prediction.double(), truth.double()
    error = bsmse(prediction, truth, ndim=ndim, edges=edges)
    floor = epsilon(*powers(truth, ndim))[..., None]
    return (error / (band_energy(truth, ndim=ndim, edges=edges) + floor)).to(dtype)
