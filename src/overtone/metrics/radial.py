"""Shells of equal |k|: how loud a spectrum is at each scale, whatever the direction.

Shells are narrow at small |k| and a quarter of an octave wide elsewhere, with a few modes each.
`RadialProfile` is a smooth curve through their medians, to flatten a spectrum; `whiten` makes
every shell of a field equally loud, so that the faintest scales of a residual can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from overtone.metrics.spectrum import wavenumber_norm

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
    modes = torch.fft.fftn(field, dim=space)
    power = modes.abs().square().flatten(-ndim)
    faintest = FAINTEST * power.amax(dim=-1, keepdim=True) + 1e-300
    shells = _all_shells(tuple(field.shape[-ndim:]))
    level = torch.zeros_like(power)
    for shell in shells:
        level[..., shell] = power[..., shell].mean(dim=-1, keepdim=True)
    gain = torch.where(level > faintest, level.clamp(min=1e-300).rsqrt(), 0.0)
    white = torch.fft.ifftn(modes * gain.reshape(modes.shape), dim=space).real
    scale = white.square().mean(dim=space, keepdim=True).sqrt()
    return torch.where(scale > 0, white / scale.clamp(min=1e-300), 0.0)


@lru_cache(maxsize=8)
def _all_shells(shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    wavenumber = wavenumber_norm(shape).flatten()
    return _shells(wavenumber, wavenumber > 0)


def _shells(wavenumber: Tensor, clean: Tensor) -> tuple[Tensor, ...]:
    order = torch.argsort(torch.where(clean, wavenumber, torch.inf))[: int(clean.sum())]
    sorted_k = wavenumber[order].tolist()
    shells, start = [], 0
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
