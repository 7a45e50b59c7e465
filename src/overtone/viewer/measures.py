"""The numbers of one step: errors, seams and the spectrum of the residual, as `evaluate` has them.

Residuals are in units of each field's standard deviation over space, so that fields of different
units can be averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from overtone.domain import Domain
from overtone.grid import PatchGrid
from overtone.metrics import axis_spectrum, seams, vrmse
from overtone.metrics.pointwise import epsilon, powers
from overtone.schedules import Choice


@dataclass(frozen=True)
class Numbers:
    """What is said of a step; None where there is nothing to say.

    Attributes:
        errors: VRMSE of each field.
        error: their mean.
        seams: dB at the borders of the patch grid that made the step, mean over fields.
        patch, start: the patch and the grid's first cell along each axis.
        tokens: of one frame.
    """

    errors: tuple[float | None, ...] | None
    error: float | None
    seams: float | None
    patch: tuple[int, ...] | None
    start: tuple[int, ...] | None
    tokens: int | None


def measure(frame: Tensor, truth: Tensor | None, choice: Choice | None, domain: Domain) -> Numbers:
    """Compare a frame with the truth.

    Args:
        frame: `(C, *space)`.
        truth: of the same shape; None past the end of the data.
        choice: patch and shift of the step; None at the start, or for a model without patches.
        domain: what they lie on.
    """
    grid = None
    if choice is not None:
        own = choice.on(domain)
        grid = PatchGrid.lay(domain, own.patch, own.shift)
    errors = height = None
    if truth is not None:
        errors = vrmse(frame, truth, ndim=domain.ndim).double().tolist()
        if grid is not None and _has_borders(grid):
            residual = normalised(frame, truth, domain)
            height = seams(
                residual, grid.patch, ndim=domain.ndim, periodic=domain.periodic, shift=grid.start
            )
    return Numbers(
        errors=None if errors is None else tuple(map(finite, errors)),
        error=None if errors is None else finite(sum(errors) / len(errors)),
        seams=None if height is None else finite(height.mean().item()),
        patch=grid.patch if grid else None,
        start=grid.start if grid else None,
        tokens=grid.num_tokens if grid else None,
    )


def normalised(frame: Tensor, truth: Tensor, domain: Domain) -> Tensor:
    """The residual in units of each field's standard deviation, `(C, *space)` float64."""
    truth = truth.double()
    variance, square = powers(truth, domain.ndim)
    scale = (variance + epsilon(variance, square)).sqrt()
    return (frame.double() - truth) / scale.reshape(-1, *(1,) * domain.ndim)


def spectrum(
    frame: Tensor, truth: Tensor, channel: int, axis: int, domain: Domain
) -> list[float | None]:
    """Power of a field's residual by wavenumber along an axis, from 0 to half a cycle per cell.

    Args:
        frame, truth: `(C, *space)`.
        channel: the field.
        axis: of the domain.
        domain: what they lie on.
    """
    residual = normalised(frame, truth, domain)[channel]
    found = axis_spectrum(residual, axis, ndim=domain.ndim, periodic=domain.periodic)
    return [finite(value) for value in found.power.tolist()]


def finite(value: float) -> float | None:
    """A number for JSON, in five digits; None for what JSON can't say."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _has_borders(grid: PatchGrid) -> bool:
    """Whether there are borders between patches, and cells within them."""
    return any(1 < p < n for p, n in zip(grid.patch, grid.domain.shape, strict=True))
