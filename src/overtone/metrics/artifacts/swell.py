"""Power *around* a patch's harmonics, against the power midway between them.

`harmonic_excess` looks for lines: power on the very modes of a patch lattice. But patches that err
by steps of their own, which follow the flow from patch to patch, spread each harmonic over the
bandwidth of that flow, and a plot of the spectrum shows a row of humps instead of lines. The
*swell* is how high these stand, along one axis:

1. modes nearer to a harmonic (a multiple of 1/patch) than to the middle between two make a band
   around it, the others the bands midway; the mean log-power and the mean log-wavenumber of each;
2. a cubic in log-wavenumber through the four nearest midway bands says how loud the band around
   a harmonic would be without it. Power laws give it exactly, and the fall-off of a smooth field
   to a fraction of a dB;
3. the mean over the harmonics of what is above that, in dB.

The harmonic at the grid's own limit, 1/2, has a midway band on one side only and is left out, as
is the mean. A field without patches has a swell of 0 dB on average; one spectrum is noisy, so give
many trajectories. What this does not see: steps that a flow modulates by more than a quarter of
the distance between harmonics, which fill the bands midway as well. Patches that are off by
constants of their own, each independent of the next, have their power midway and none on the
harmonics: a negative swell. `seams` sees both.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from overtone.errors import PatchError
from overtone.metrics.artifacts.harmonics import DECIBEL, FLOOR

NODES = 4
"""Midway bands that a harmonic is compared with; with fewer, a slope looks like a swell."""
LEAST_PATCHES = 4
"""Along the axis: with fewer no mode lies midway."""


def harmonic_swell(power: Tensor, patch: int, cells: int) -> Tensor:
    """How far the power around the harmonics of a patch stands above that midway between them.

    Args:
        power: `(..., cells // 2 + 1)`, by wavenumber along an axis (see `axis_spectrum`).
        patch: period of the grid along that axis in cells; it need not divide the axis.
        cells: number of cells along the axis.

    Returns:
        `(...)`, dB.
    """
    around, expected = _weights(patch, cells)
    floor = FLOOR * power.sum(dim=-1, keepdim=True) / power.shape[-1] + 1e-300
    level = (power.double() + floor).log()
    return DECIBEL * (level @ (around - expected).T).mean(dim=-1)


def has_swell(patch: int, cells: int) -> bool:
    """Whether an axis has enough patches, and a patch enough cells, to tell."""
    return patch >= 2 * NODES and cells >= LEAST_PATCHES * patch


@lru_cache(maxsize=64)
def _weights(patch: int, cells: int) -> tuple[Tensor, Tensor]:
    """How the mean levels around each harmonic, and those expected there, follow from the modes.

    Both are `(harmonics, cells // 2 + 1)` and have rows that add up to 1.
    """
    if not has_swell(patch, cells):
        raise PatchError(
            f"an axis of {cells} cells with patches of {patch} does not tell their harmonics from "
            f"what lies between; expected patches of at least {2 * NODES} cells, and at least "
            f"{LEAST_PATCHES} of them"
        )
    mode = torch.arange(cells // 2 + 1, dtype=torch.float64)
    place = mode * patch / cells  # whole numbers are harmonics
    near = (place - place.round()).abs() <= 0.25
    harmonics = torch.arange(1, (patch + 1) // 2, dtype=torch.float64)
    middles = torch.arange(0, patch // 2, dtype=torch.float64) + 0.5
    around = _means(near & (mode > 0) & (place.round() == harmonics[:, None]))
    midway = _means(~near & (place.floor() + 0.5 == middles[:, None]))
    heights = mode.clamp(min=1).log()
    return around, _through(midway @ heights, around @ heights) @ midway


def _means(members: Tensor) -> Tensor:
    """Weights of means over the modes that a mask `(M, K)` chooses in each row."""
    return members.double() / members.sum(dim=1, keepdim=True)


def _through(nodes: Tensor, places: Tensor) -> Tensor:
    """Weights `(M, N)` of values at `nodes` in the polynomials through the nearest of them."""
    rows = torch.zeros(len(places), len(nodes), dtype=torch.float64)
    for row, place in zip(rows, places, strict=True):
        nearest = (nodes - place).abs().argsort()[:NODES]
        for one in map(int, nearest):
            others = nodes[nearest[nearest != one]]
            row[one] = ((place - others) / (nodes[one] - others)).prod()
    return rows
