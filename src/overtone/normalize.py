"""Sample-wise normalisation and delta targets.

For each sample and field, over all frames and cells of its context:

    m = mean,   s = standard deviation,   d = root mean square of the change between frames.

The model reads `(x - m) / s` and predicts the change from the last frame in a unit `u`, so the next
frame is `x_T + u · output`. The obvious unit is `d`. That is right for one step, but in a rollout
`d` is the model's own doing: changes that come out too large make the unit of the next one larger,
and nothing calls them back. So a trained model knows the pace of each field, how much of `s` it
usually changes by, and

    u = √(d · pace · s),

in which every step halves the logarithm of such an error. Without a pace, u = d.

Amplitudes are the same story, told more slowly. If `s` is the window's own standard deviation, a
field that has grown twofold looks to the model as it did before, and it may grow twofold again. So
a trained model also knows the scale of each field, the standard deviation that it usually has, and

    s = √(standard deviation · scale):

what is too large looks too large, by half of its logarithm, and the model has seen in its data what
follows then. Windows of unlike amplitude still come nearer to each other than they are.

With causal time attention every frame of a window makes a prediction, and none may see a later
frame, not even through a mean. So frame `t` has statistics of its own, over the frames `1 … t`;
those of the last frame are the statistics of the whole context.

Floors are relative, and squares are taken in units of the field's own size (`size_of`), so that
1e-30 and 1e30 are treated as 1. A constant field comes out as zeros, and a steady window predicts
next to no change. A field that is zero everywhere has no size, and so no unit: it stays zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

STD_FLOOR = 1e-5
"""Smallest standard deviation, relative to the field's root mean square: above float32 rounding."""

CHANGE_FLOOR = 1e-4
"""Smallest unit of change, relative to the standard deviation."""

REST = 1e-3
"""Smallest standard deviation, relative to the scale: what is below it is at rest."""

MAX_SPREAD = 1.5
"""Largest standard deviation of the logarithm of a pace, about a factor of 4.5."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """What each frame may know of its context.

    Attributes:
        mean, std, change: `(B, T, C)`, in physical units, for each frame over the frames up to it;
            `std` is what fields are measured in, by the scale where there is one.
        unit: `(B, T, C)`, what predicted changes are measured in; 0 where the field is zero.
    """

    mean: Tensor
    std: Tensor
    change: Tensor
    unit: Tensor

    def normalise(self, fields: Tensor) -> Tensor:
        """`(x - m) / s` for fields `(B, T, C, *space)`."""
        return (fields - _expand(self.mean, fields)) / _expand(self.std, fields)

    def denormalise(self, fields: Tensor) -> Tensor:
        """The inverse of `normalise`."""
        return fields * _expand(self.std, fields) + _expand(self.mean, fields)

    def add_change(self, fields: Tensor, change: Tensor) -> Tensor:
        """Next frames from frames and predicted changes, all `(B, T, C, *space)`."""
        return fields + change.to(fields.dtype) * _expand(self.unit, fields)

    def change_between(self, fields: Tensor, following: Tensor) -> Tensor:
        """The inverse of `add_change`: what a model should predict, `(B, T, C, *space)`.

        Where there is no unit, changes stay as they are; `add_change` does not see them.
        """
        unit = torch.where(self.unit > 0, self.unit, 1.0)
        return (following - fields) / _expand(unit, fields)

    def last(self) -> Statistics:
        """Those of the last frame alone, with T = 1: of the whole context."""
        return Statistics(*(x[:, -1:] for x in (self.mean, self.std, self.change, self.unit)))


def statistics(
    fields: Tensor,
    *,
    pace: Tensor | None = None,
    scale: Tensor | None = None,
    causal: bool = True,
) -> Statistics:
    """Statistics of every frame's context.

    Args:
        fields: `(B, T, C, *space)` in physical units.
        pace: how much of its standard deviation each field usually changes by, `(C,)`; 0 where that
            is not known.
        scale: the standard deviation that each field usually has, `(C,)`, in physical units; 0
            where that is not known.
        causal: whether a frame knows only the frames up to it, or the whole window.
    """
    every = (1, *range(3, fields.dim()))
    size = size_of(fields, dim=every)
    mean, var, change = (_up_to_each if causal else _of_all)(fields / size)
    std = (var + STD_FLOOR**2 * (var + mean.square())).sqrt()
    if scale is not None:
        std = _measured_by(scale.to(std.dtype) / size.flatten(2), std)
    known = std > 0
    std = torch.where(known, std, 1.0)

    # The first frame has no change behind it; its unit is the standard deviation.
    without = std.shape[1] - change.shape[1]
    step = (change + (CHANGE_FLOOR * std[:, without:]).square()).sqrt()
    step = torch.cat([std[:, :without], step], dim=1) if without else step
    unit = step
    if pace is not None:
        unit = torch.where(pace > 0, (step * pace.to(std.dtype) * std).sqrt(), step)
    unit, size = unit * known, size.flatten(2)
    found = ((x * size).expand(-1, fields.shape[1], -1) for x in (mean, std, step, unit))
    return Statistics(*found)


def _measured_by(scale: Tensor, std: Tensor) -> Tensor:
    """The geometric mean of scales `(B, 1, C)` and standard deviations `(B, T, C)`.

    A field that is at rest in a window has a scale to start by; one without a scale keeps its own.
    """
    awake = torch.hypot(std, REST * scale)
    return torch.where(scale > 0, (awake * scale).sqrt(), std)


def _up_to_each(fields: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, variance `(B, T, C)` and mean square change `(B, T - 1, C)` of the frames up to each.

    Args:
        fields: `(B, T, C, *space)`.
    """
    space = tuple(range(3, fields.dim()))
    mean = fields.mean(dim=space)
    # In two passes, which is as exact as `torch.var` and takes a tenth of its time.
    var = _mean_square(fields - _expand(mean, fields))
    change = _mean_square(fields.diff(dim=1))
    # The frames' means vary around each context's own mean. Measured from the first frame's, so
    # that the difference of squares is exact enough also where the mean is large.
    drift = mean - mean[:, :1]
    var, drift, square = _running_mean(torch.stack([var, drift, drift.square()])).unbind()
    between = (square - drift.square()).clamp(min=0)
    return mean[:, :1] + drift, var + between, _running_mean(change)


def _of_all(fields: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What `_up_to_each` says of the last frame, with T = 1; no change `(B, 0, C)` of one frame."""
    every = (1, *range(3, fields.dim()))
    mean = fields.mean(dim=every, keepdim=True)
    var = _mean_square(fields - mean).mean(dim=1, keepdim=True)
    change = _mean_square(fields.diff(dim=1))
    change = change.mean(dim=1, keepdim=True) if change.shape[1] else change
    return mean.flatten(2), var, change


def _mean_square(fields: Tensor) -> Tensor:
    """Mean square of each frame, `(B, T, C)`; a norm needs no memory for the squares."""
    cells = fields.flatten(3)
    return torch.linalg.vector_norm(cells, dim=-1).square() / cells.shape[-1]


def size_of(fields: Tensor, dim: tuple[int, ...]) -> Tensor:
    """The power of two below the largest absolute value, of the same dimensions; 1 where that is 0.

    Dividing by a power of two is exact, so squares, variances and roots that are taken in such
    units and taken back are the very same numbers, as long as they neither under- nor overflow.

    Args:
        fields: any tensor.
        dim: what to look over.
    """
    largest = fields.detach().abs().amax(dim=dim, keepdim=True)
    known = largest >= torch.finfo(fields.dtype).tiny  # what is smaller has lost its digits
    largest = torch.where(known, largest, 1.0)
    mantissa, _ = torch.frexp(largest)
    return largest / (2 * mantissa)


def spread_of(fields: Tensor) -> Tensor:
    """The standard deviation of each field over all frames and cells, `(B, C)`; 0 if it has none.

    Args:
        fields: windows `(B, T, C, *space)`.
    """
    stats = statistics(fields, causal=False).last()
    return torch.where(stats.unit > 0, stats.std, 0.0)[:, 0]


def change_share(fields: Tensor, scale: Tensor | None = None) -> Tensor:
    """How much of its standard deviation each field changes by from frame to frame, `(B, C)`.

    Args:
        fields: windows `(B, T, C, *space)` of at least two frames.
        scale: as for `statistics`.
    """
    stats = statistics(fields, scale=scale, causal=False).last()
    return (stats.change / stats.std)[:, 0]


def typical_pace(shares: Tensor, own: Tensor | None = None) -> Tensor:
    """The pace of each field `(C,)`, by what many windows change by, `(N, C)`.

    The mean; and 0, unknown, where windows differ by more than `MAX_SPREAD`: a field that rests at
    first and rushes later has no pace of its own.

    Args:
        shares: of what fields are measured in.
        own: of their own standard deviation, which tells whether they differ; by default the same.
            By a scale, a window at rest seems slower than it is.
    """
    spread = (shares if own is None else own).log().std(dim=0, correction=0)
    return torch.where(spread <= MAX_SPREAD, shares.mean(dim=0), 0.0)


def typical_scale(spreads: Tensor) -> Tensor:
    """The scale of each field `(C,)`, by the standard deviations of many windows, `(N, C)`.

    The mean, also of a field that rests at first: it is the one that runs away where nothing calls
    it back, and what rests is told from what is lost by looking smaller.
    """
    return spreads.mean(dim=0)


def _running_mean(x: Tensor) -> Tensor:
    """Mean over the frames up to each, `(..., T, C)`."""
    count = torch.arange(1, x.shape[-2] + 1, device=x.device, dtype=x.dtype)
    return x.cumsum(dim=-2) / count[:, None]


def _expand(x: Tensor, like: Tensor) -> Tensor:
    return x.reshape(*x.shape, *(1,) * (like.dim() - x.dim()))
