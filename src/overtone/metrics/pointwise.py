"""Errors that compare cell by cell, as The Well 1.2.0 defines them.

With ⟨·⟩ the mean over space, y the truth, x the prediction and eps = 1e-7:

    MSE  = ⟨(x - y)²⟩                    RMSE  = √MSE           MAE = ⟨|x - y|⟩
    NMSE = MSE / (⟨y²⟩ + eps)            VMSE  = MSE / (var(y) + eps)
    r    = cov(x, y) / (std(x) std(y) + eps)                    VRMSE = √VMSE

Variances and standard deviations are the unbiased ones, the covariance is the plain mean. So the
correlation of n cells with themselves is (n - 1)/n, as it is in The Well.

The Well's eps is a number without a unit: it is right for fields of order one, and would hide any
error of a density in g/cm³. So for a field that is smaller than 1e-6 throughout, ⟨y²⟩ < 1e-12,

    eps = max(1e-4 var(y), 1e-7 ⟨y²⟩),

with ⟨y²⟩ in the place of var(y) for NMSE: a share of the field's own power. Everywhere else it is
The Well's number, and so are the errors, also where a flow that is still at rest makes it count;
`epsilon_share` says where. Of a field that is zero, eps is 1e-7.

Every function takes `(..., *space)` tensors in physical units and returns one number for each
sample, time and field, `(...)`, in their precision; squares are taken in float64, so that no unit
is too small or too large for them. Average after the root, not before.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overtone.errors import DomainError, OvertoneError

EPSILON = 1e-7
"""Added to what an error is divided by, as in The Well; `epsilon` says where it is less."""
TINY = 1e-12
"""Mean square below which a field is in units that The Well's number was not meant for."""
SHARE = 1e-4
"""Share of such a field's variance that is added instead."""


def epsilon(power: Tensor, square: Tensor) -> Tensor:
    """What is added to a power before an error is divided by it.

    Args:
        power: variance, or mean square, of the truth, `(...)` float64.
        square: its mean square, `(...)` float64.
    """
    relative = torch.maximum(SHARE * power, EPSILON * square)
    return torch.where((square > 0) & (square < TINY), relative, EPSILON)


def epsilon_share(truth: Tensor, *, ndim: int) -> Tensor:
    """How much eps is in units of the truth's variance, `(...)` float64; infinite for a constant.

    Where it is not small, VRMSE says less than it seems to.
    """
    variance, square = powers(truth.double(), ndim)
    return epsilon(variance, square) / variance


def mse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean square error.

    Args:
        prediction, truth: `(..., *space)`.
        ndim: number of spatial axes.

    Returns:
        `(...)`, as of all functions here.
    """
    return _mse(prediction, truth, ndim).to(truth.dtype)


def rmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Root mean square error, in the field's unit."""
    return _mse(prediction, truth, ndim).sqrt().to(truth.dtype)


def mae(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean absolute error, in the field's unit."""
    return _difference(prediction, truth, ndim).abs().mean(dim=_space(ndim)).to(truth.dtype)


def nmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean square error over the truth's mean square; 1 is the error of predicting zero."""
    _, square = powers(truth.double(), ndim)
    return (_mse(prediction, truth, ndim) / (square + epsilon(square, square))).to(truth.dtype)


def vmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Mean square error over the truth's variance; 1 is the error of predicting its mean."""
    return _vmse(prediction, truth, ndim).to(truth.dtype)


def vrmse(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Variance-scaled root mean square error: `sqrt(MSE / (var(truth) + eps))`.

    The variance is the unbiased one over space; 1 is the error of predicting the spatial mean.

    Args:
        prediction, truth: `(..., *space)` in physical units.
        ndim: number of spatial axes.

    Returns:
        `(...)`: one number for each sample, time and field. Average after, not before, the root.
    """
    return _vmse(prediction, truth, ndim).sqrt().to(truth.dtype)


def pearson(prediction: Tensor, truth: Tensor, *, ndim: int) -> Tensor:
    """Pearson's correlation over space; 0 where one of the two is constant."""
    _difference(prediction, truth, ndim)
    space = _space(ndim)
    x, y = prediction.double(), truth.double()
    pairs = zip(powers(x, ndim), powers(y, ndim), strict=True)
    scale, square = (one.sqrt() * other.sqrt() for one, other in pairs)
    x, y = (values - values.mean(dim=space, keepdim=True) for values in (x, y))
    return ((x * y).mean(dim=space) / (scale + epsilon(scale, square))).to(truth.dtype)


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
    return prediction.double() - truth.double()


def _mse(prediction: Tensor, truth: Tensor, ndim: int) -> Tensor:
    """`mse` in float64."""
    return _difference(prediction, truth, ndim).square().mean(dim=_space(ndim))


def _vmse(prediction: Tensor, truth: Tensor, ndim: int) -> Tensor:
    """`vmse` in float64."""
    variance, square = powers(truth.double(), ndim)
    return _mse(prediction, truth, ndim) / (variance + epsilon(variance, square))


def powers(field: Tensor, ndim: int) -> tuple[Tensor, Tensor]:
    """Variance, the unbiased one, and mean square `(...)` of a field `(..., *space)`."""
    space = _space(ndim)
    return field.var(dim=space), field.square().mean(dim=space)
