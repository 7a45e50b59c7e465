"""An error estimate as an instrument: how well it follows the truth, and whether its bars hold.

All of it is computed from errors and estimates of N rollouts and S steps that the caller has made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

RATES = tuple(i / 20 for i in range(21))
"""False alarms at which a curve of detection is kept."""


def quality(
    errors: Tensor, values: Tensor, bounds: Mapping[float, tuple[Tensor, Tensor]]
) -> dict[str, Any]:
    """What an estimate is worth.

    Args:
        errors, values: true and estimated VRMSE `(N, S)`; NaN where a rollout was lost.
        bounds: level -> lower and upper bounds `(N, S)`.

    Returns:
        `correlation` of the logarithms over all rollouts and steps; `by_step`, the mean over steps
        of that over rollouts alone; `ratio`, median of estimate over error; for each level
        `coverage`, the share of errors within, and `sharpness`, median of upper over lower bound;
        `rollouts` and `steps`.
    """
    there = errors.isfinite() & values.isfinite() & (errors > 0) & (values > 0)
    x, y = values.log(), errors.log()
    columns = [correlation(x[t, s], y[t, s]) for s, t in enumerate(there.T)]
    known = [value for value in columns if math.isfinite(value)]
    found: dict[str, Any] = {
        "rollouts": len(errors),
        "steps": errors.shape[1],
        "correlation": correlation(x[there], y[there]),
        "by_step": sum(known) / len(known) if known else math.nan,
        "ratio": float((values / errors)[there].median()) if bool(there.any()) else math.nan,
        "coverage": {},
        "sharpness": {},
    }
    for level, (low, high) in bounds.items():
        inside = (low <= errors) & (errors <= high)
        found["coverage"][str(level)] = float(inside[there].double().mean())
        found["sharpness"][str(level)] = float((high / low)[there].median())
    return found


def correlation(x: Tensor, y: Tensor) -> float:
    """Pearson's, of two lists of numbers; NaN of fewer than three, or of constants."""
    if len(x) < 3:
        return math.nan
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean()
    scale = (x.square().sum() * y.square().sum()).sqrt()
    return float((x * y).sum() / scale) if scale > 0 else math.nan


def map_likeness(estimate: Tensor, error: Tensor) -> float:
    """Correlation of an estimated map with the true one over space, mean over samples and fields.

    Args:
        estimate, error: absolute errors `(B, C, *space)`.
    """
    pairs = zip(estimate.flatten(0, 1).flatten(1), error.flatten(0, 1).flatten(1), strict=True)
    found = [correlation(a, b) for a, b in pairs if bool(a.isfinite().all() & b.isfinite().all())]
    known = [value for value in found if math.isfinite(value)]
    return sum(known) / len(known) if known else math.nan


def detection(usual: Sequence[float], strange: Sequence[float]) -> dict[str, Any]:
    """How well a score tells what is strange from what is usual.

    Args:
        usual, strange: scores, larger for stranger; what is not finite is the strangest.

    Returns:
        `area` below the curve (1 is perfect, 0.5 is chance), and the share of strange ones that are
        found (`found`) at each of `RATES` false alarms.
    """
    a, b = (torch.tensor([*s], dtype=torch.float64).nan_to_num(nan=math.inf)
            for s in (usual, strange))  # fmt: skip
    if not len(a) or not len(b):
        return {"area": math.nan, "found": []}
    wins = (b[:, None] > a).double() + 0.5 * (b[:, None] == a).double()
    ranked = a.sort(descending=True).values
    found = []
    for rate in RATES:
        allowed = math.floor(rate * len(a) + 1e-9)
        limit = ranked[allowed] if allowed < len(a) else -math.inf
        found.append(float((b > limit).double().mean()))
    return {"area": float(wins.mean()), "found": found}


def front_error(points: Sequence[tuple[float, float]], tokens: float) -> float:
    """The lowest error that open-loop schedules reach with so many tokens.

    Between two schedules one may go on from the one to the other: errors are interpolated along
    logarithms of tokens, on the lower convex hull. Below the cheapest there is none.

    Args:
        points: tokens and error of each schedule.
        tokens: what may be spent.
    """
    usable = sorted((math.log(t), e) for t, e in points if math.isfinite(e))
    hull: list[tuple[float, float]] = []
    for x, y in usable:
        if hull and y >= min(e for _, e in hull):
            continue
        while len(hull) > 1 and _above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    at = math.log(tokens)
    if not hull or at < hull[0][0] - 1e-9:
        return math.inf
    for (x0, y0), (x1, y1) in pairwise(hull):
        if at < x1:
            return y0 + (y1 - y0) * max(at - x0, 0.0) / (x1 - x0)
    return hull[-1][1]


def perfect_error(each: Sequence[tuple[float, Sequence[float]]], tokens: float) -> float:
    """The lowest mean error of N trajectories that have so many tokens on average.

    Each trajectory has the schedule that suits it best, known beforehand. Of a trajectory, only
    what lies on the lower hull of error over tokens is worth choosing; gains per token are taken in
    turn, the largest first, until the tokens are spent (the last one in part).

    Args:
        each: tokens of a schedule, and its error of each trajectory.
        tokens: what one trajectory may spend on average.
    """
    num = len(each[0][1])
    spent, error, gains = 0.0, 0.0, []
    for row in range(num):
        points = sorted((t, errors[row]) for t, errors in each if math.isfinite(errors[row]))
        if not points:
            return math.inf
        hull: list[tuple[float, float]] = []
        for point in points:
            if hull and point[1] >= hull[-1][1]:
                continue
            while len(hull) > 1 and _above(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        spent, error = spent + hull[0][0], error + hull[0][1]
        gains += [((e0 - e1) / (t1 - t0), t1 - t0) for (t0, e0), (t1, e1) in pairwise(hull)]
    left = num * tokens - spent
    if left < 0:
        return math.inf
    for slope, more in sorted(gains, reverse=True):
        taken = min(more, left)
        error, left = error - slope * taken, left - taken
    return error / num


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return b[1] >= a[1] + (c[1] - a[1]) * (b[0] - a[0]) / (c[0] - a[0])
