"""Common colour scales, and what a frame of one to three axes looks like on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from torch import Tensor

from overtone.domain import Domain
from overtone.errors import require_one_of
from overtone.report.style import FIELD_COLOURS, SIGNED_COLOURS

LOG_RATIO = 300
"""Positive fields that span more than this ratio are drawn on a logarithmic scale."""
LOG_REACH = 1e6
"""A logarithmic scale reaches no further down than this ratio below the largest value."""

VIEWS = ("slice", "projection")


@dataclass(frozen=True)
class Scale:
    """One scale for the fields and one, symmetric, for the residuals.

    Attributes:
        field: spans the truth.
        residual: spans all residuals, but no more than the truth's range.
        clipped: whether some residuals are larger than that.
    """

    field: Normalize
    residual: Normalize
    clipped: bool


def common_scale(truth: np.ndarray, predictions: Sequence[np.ndarray]) -> Scale:
    """Scales of true frames and of predictions of the same shape."""
    low, high = _range(truth)
    if low == high:
        low, high = _range(np.stack([truth, *predictions]))
    size = high - low
    if size <= 1e-12 * max(abs(low), abs(high)):
        # A constant field gets a range around it.
        margin = 0.05 * abs(low) or 1.0
        low, high = low - margin, high + margin
    errors = [np.abs(p - truth) for p in predictions]
    largest = max((_range(e)[1] for e in errors), default=0.0)
    limit = min(largest, high - low) or high - low
    return Scale(_norm(low, high), Normalize(-limit, limit), clipped=largest > limit)


def field_look(values: np.ndarray) -> dict[str, Any]:
    """Arguments of `imshow` for a field by itself: colours about zero if both signs occur."""
    low, high = _range(values)
    if low < 0 < high:
        bound = max(-low, high)
        return {"cmap": SIGNED_COLOURS, "norm": Normalize(-bound, bound)}
    return {"cmap": FIELD_COLOURS, "norm": _norm(low, high)}


def visible(values: np.ndarray, norm: Normalize) -> np.ndarray:
    """Values within a scale: what lies beyond has its end's colour, also below a log scale's 0."""
    return np.clip(values, norm.vmin, norm.vmax)


def flat(frames: Tensor, domain: Domain, view: str = "slice") -> np.ndarray:
    """Frames `(..., *space)` with at most two axes: of three, the middle plane or the mean.

    Args:
        frames: fields, in float64 afterwards.
        domain: what they lie on.
        view: `"slice"`: the plane in the middle of the last axis. `"projection"`: the mean along
            it. Fields of one or two axes stay as they are.
    """
    require_one_of(view, VIEWS, "view")
    values = frames.detach().cpu().double().numpy()
    if domain.ndim < 3:
        return values
    middle = domain.shape[-1] // 2
    return values[..., middle] if view == "slice" else values.mean(axis=-1)


def view_name(domain: Domain, view: str) -> str:
    """What `flat` shows of a frame, for a title; empty where it shows all."""
    if domain.ndim < 3:
        return ""
    if view == "projection":
        return "mean along z"
    return f"slice at z = {(domain.shape[-1] // 2 + 0.5) * domain.spacing[-1]:g}"


def _norm(low: float, high: float) -> Normalize:
    if low > 0 and high / low > LOG_RATIO:
        return LogNorm(max(low, high / LOG_REACH), high)
    return Normalize(low, high)


def _range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
