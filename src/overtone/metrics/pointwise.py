"""Errors that compare cell by cell, as The Well 1.2.0 defines them.

With ⟨·⟩ the mean over space, y the truth, x the prediction and eps = 1e-7:

    MSE  = ⟨(x - y)²⟩                    RMSE  = √MSE           MAE = ⟨|x - y|⟩
    NMSE = MSE / (⟨y²⟩ + eps)            VMSE  = MSE / (var(y) + eps)
    r    = cov(x, y) / (std(x) std(y) + eps)                    VRMSE = √VMSE

Variances and standard deviations are the unbiased ones, the covariance is the plain mean. So the
correlation of n cells with themselves is (n - 1)/n, as it is in The Well.

Every function takes `(..., *space)` tensors in physical units and returns one number for each
sample, time and field, `(...)`. Average after the root, not before.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overtone.errors import DomainError, OvertoneError

EPSILON = 1e-7
"""Added to what an error is divided by, as in The Well."""


def mse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean square error.

    Args:
        prediction, truth: `(..., *space)`.
        ndim: number of spatial axes.

    Returns:
        `(...)`, as of all functions here.
    """
    return _difference(prediction, truth, ndim).square().mean(dim=_space(ndim))


def rmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Root mean square error, in the field's unit."""
    return mse(prediction, truth, ndim=ndim).sqrt()


def mae(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean absolute error, in the field's unit."""
    return _difference(prediction, truth, ndim).abs().mean(dim=_space(ndim))


def nmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean square error over the truth's mean square; 1 is the error of predicting zero."""
    return mse(prediction, truth, ndim=ndim) / (truth.square().mean(dim=_space(ndim)) + EPSILON)


def vmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean square error over the truth's variance; 1 is the error of predicting its mean."""
    return mse(prediction, truth, ndim=ndim) / (truth.var(dim=_space(ndim)) + EPSILON)


def vrmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Variance-scaled root mean square error: `sqrt(MSE / (var(truth) + eps))`.

    The variance is the unbiased one over space; 1 is the error of predicting the spatial mean.

    Args:
        prediction, truth: `(..., *space)` in physical units.
        ndim: number of spatial axes.

    Returns:
        `(...)`: one number for each sample, time and field. Average after, not before, the root.
    """
    return vmse(prediction, truth, ndim=ndim).sqrt()


def pearson(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Pearson's correlation over space; 0 where one of the two is constant."""
    _difference(prediction, truth, ndim)
    space = _space(ndim)
    x = prediction - prediction.mean(dim=space, keepdim=True)
    y = truth - truth.mean(dim=space, keepdim=True)
    scale = prediction.std(dim=space) * truth.std(dim=space)
    return (x * y).mean(dim=space) / (scale + EPSILON)


def time_to_decorrelation(correlations: Tensor, threshold: float, dt: float) -> Tensor:
    """How long a rollout stays correlated with the truth.

    The correlation is 1 at time 0, where the rollout starts from the truth, and is interpolated
    linearly between frames. A value that is not finite counts as decorrelated.

    Args:
        correlations: `(..., T)`, those of the frames at times `dt, 2 dt, …, T dt`.
        threshold: between 0 and 1; 0.8 and 0.9 are usual.
        dt: time between frames.

    Returns:
        `(...)`: the first time below the threshold, infinite where there is none. Clamp it to
        `T dt` to average a lower bound.
    """
    if not 0 < threshold < 1:
        raise OvertoneError(f"threshold is {threshold}; expected a number between 0 and 1")
    if correlations.dim() == 0 or correlations.shape[-1] == 0:
        raise OvertoneError("correlations are empty; expected (..., T) with at least one frame")
    values = correlations.nan_to_num(nan=-1.0, posinf=-1.0, neginf=-1.0)
    before = torch.cat([torch.ones_like(values[..., :1]), values[..., :-1]], dim=-1)
    below = values < threshold
    first = below.int().argmax(dim=-1, keepdim=True)
    start, stop = before.gather(-1, first).squeeze(-1), values.gather(-1, first).squeeze(-1)
    time = dt * (first.squeeze(-1) + (start - threshold) / (start - stop))
    return torch.where(below.any(dim=-1), time, math.inf)


def _space(ndim: int) -> tuple[int, ...]:
    return tuple(range(-ndim, 0))


def _difference(prediction: Tensor, truth: Tensor, ndim: int) -> Tensor:
    # Broadcasting would compare one frame with many without a word.
    if prediction.shape != truth.shape or prediction.dim() < ndim:
        raise DomainError(
            f"prediction {tuple(prediction.shape)} and truth {tuple(truth.shape)} differ in shape, "
            f"or have fewer than {ndim} axes; expected two tensors (..., *space) alike"
        )
    return prediction - truth
