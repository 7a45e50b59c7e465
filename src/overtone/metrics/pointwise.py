"""Errors that compare cell by cell, as The Well defines them."""

from __future__ import annotations

from torch import Tensor

EPSILON = 1e-7
"""Added to the truth's variance, as in The Well."""


def vrmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Variance-scaled root mean square error: `sqrt(MSE / (var(truth) + eps))`.

    The variance is the unbiased one over space; 1 is the error of predicting the spatial mean.

    Args:
        prediction, truth: `(..., *space)` in physical units.
        ndim: number of spatial axes.

    Returns:
        `(...)`: one number for each sample, time and field. Average after, not before, the root.
    """
    space = tuple(range(-ndim, 0))
    error = (prediction - truth).square().mean(dim=space)
    return (error / (truth.var(dim=space) + EPSILON)).sqrt()
