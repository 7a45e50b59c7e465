"""How sure an average over trajectories is: percentile intervals by bootstrap.

Trajectories are drawn with replacement, as many as there are, a thousand times; the interval holds
the middle 95 % of the means. Frames and fields of one trajectory depend on each other, so they are
averaged first and only whole trajectories are drawn. All columns share the draws.

Values that are not finite:

- NaN says that there is nothing to average, e.g. the steps after a blow-up. It is left out of the
  mean and of every draw. If nothing is left, the result is NaN.
- Infinity is a value: the mean is infinite with one, and so are the draws that contain it.

One trajectory tells nothing about others: its interval is a point.

Whether numbers that came one after the other fall (`falls`) is asked of their order alone: in how
many pairs is the later one not smaller, and how often would a random order have as few such pairs?
This is Kendall's test for a trend, exact for any number of values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import OvertoneError

DRAWS = 1000
LEVEL = 0.95
FEW = 8
"""Trajectories below which a bootstrap interval is itself a rough guess."""
HUGE = 1e8
"""From here on nobody counts digits: an error that large has run away."""


@dataclass(frozen=True)
class Interval:
    """A mean over trajectories and the bounds of its interval, each `(...)` float64."""

    value: Tensor
    low: Tensor
    high: Tensor


def bootstrap(values: Tensor, *, seed: int = 0, draws: int = DRAWS) -> Interval:
    """Mean and interval of each column.

    Args:
        values: `(N, ...)`, one row for each trajectory.
        seed: of the draws.
        draws: how many.
    """
    if values.dim() == 0 or len(values) == 0:
        raise OvertoneError(
            f"values have shape {tuple(values.shape)}; expected (N, ...) of at least 1 trajectory"
        )
    shape = values.shape[1:]
    columns = values.detach().double().cpu().reshape(len(values), -1)
    mean = _mean(columns, torch.ones(1, len(columns), dtype=torch.float64), 0.0)[0]
    if len(columns) == 1:
        low = high = mean
    else:
        # Deviations from the mean are exactly 0 where all values are equal.
        centre = torch.where(mean.isfinite(), mean, 0.0)
        means = _mean(columns, _counts(len(columns), draws, seed), centre)
        low, high = _percentiles(means)
    return Interval(*(part.reshape(shape) for part in (mean, low, high)))


def number(value: float) -> str:
    """Three significant digits, whole thousands and millions; a dash for what is not a number."""
    if not math.isfinite(value):
        return "–"
    if 999.5 <= abs(value) < HUGE:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".").replace("e+0", "e").replace("e+", "e")


def has_width(low: float, high: float) -> bool:
    """Whether two bounds are an interval: finite, and not one point."""
    return math.isfinite(low) and math.isfinite(high) and low < high


def with_interval(value: float, low: float, high: float) -> str:
    """A value and its interval in words, e.g. `0.0623 [0.0467, 0.0803]`; alone if there is none."""
    said = number(value)
    if said == "–" or not has_width(low, high):
        return said
    return f"{said} [{number(low)}, {number(high)}]"


def falls(values: Sequence[float]) -> bool:
    """Whether numbers fall from one to the next, more surely than chance would have it.

    Args:
        values: in their order; infinity and NaN are larger than any other.
    """
    known = [value if math.isfinite(value) else math.inf for value in values]
    rises = sum(a <= b for i, a in enumerate(known) for b in known[i + 1 :])
    ways = [1]  # orders of n numbers by their rising pairs
    for n in range(2, len(known) + 1):
        most = len(ways) + n - 1
        ways = [sum(ways[max(0, k - n + 1) : k + 1]) for k in range(most)]
    return sum(ways[: rises + 1]) < (1 - LEVEL) * sum(ways)


def _counts(num: int, draws: int, seed: int) -> Tensor:
    """How often each draw holds each trajectory, `(draws, N)`."""
    random = torch.Generator().manual_seed(seed)
    drawn = torch.randint(num, (draws, num), generator=random)
    counts = torch.zeros(draws, num, dtype=torch.float64)
    return counts.scatter_add_(1, drawn, torch.ones_like(drawn, dtype=torch.float64))


def _mean(columns: Tensor, counts: Tensor, centre: Tensor | float) -> Tensor:
    """Means `(draws, K)` of columns `(N, K)` under counts `(draws, N)`; NaN where all are NaN."""
    missing, endless = columns.isnan(), columns.isinf()
    finite = torch.where(missing | endless, 0.0, columns - centre)
    present = counts @ (~missing).double()
    mean = centre + counts @ finite / present
    mean = torch.where(counts @ endless.double() > 0, torch.inf, mean)
    return torch.where(present > 0, mean, torch.nan)


def _percentiles(means: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds of the middle of each column, without interpolation: infinity minus itself is NaN."""
    ordered = means.sort(dim=0)[0]
    last = (~means.isnan()).sum(dim=0) - 1  # NaN is sorted to the end
    tail = (1 - LEVEL) / 2
    low = (tail * last).floor().long().clamp(min=0)
    high = ((1 - tail) * last).ceil().long().clamp(min=0)
    bounds = [ordered.gather(0, index[None])[0] for index in (low, high)]
    return bounds[0], bounds[1]
