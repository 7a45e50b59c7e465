"""Errors by scale: The Well's binned spectral errors, section "Binned spectral error" of the paper.

Modes are sorted by |k| into bands, three by default with edges evenly spaced on a log scale. A
band's error is the mean square of the residual filtered to it, so the bands' errors add up to the
MSE. The mean belongs to the lowest band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.metrics.pointwise import EPSILON
from overtone.metrics.spectrum import mode_power, wavenumber_norm

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
        raise OvertoneError(f"edges are {edges.tolist()}; expected at least two, ascending")
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

    1 is the error of predicting nothing at that scale.

    Args:
        prediction, truth: `(..., *space)`.
        ndim: number of spatial axes.
        edges: as in `band_energy`.
    """
    error = bsmse(prediction, truth, ndim=ndim, edges=edges)
    return error / (band_energy(truth, ndim=ndim, edges=edges) + EPSILON)
