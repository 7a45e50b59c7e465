"""What a prediction is compared with, and how.

The model predicts the change that follows each frame. In units of the change in its context, the
loss is the normalised mean square error of it: for each sample, frame and field the mean over
space of the squared error, over the mean square of the target, then the mean of all.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from overtone.domain import Window
from overtone.normalize import Statistics

FLOOR = 1e-2
"""Smallest mean square of a target, in squared units of the context's change: a field that comes
to rest must not outweigh all others."""


def nmse(prediction: Tensor, target: Tensor) -> Tensor:
    """Normalised mean square error of `(B, n, C, *space)`."""
    space = tuple(range(3, target.dim()))
    error = (prediction - target).square().mean(dim=space)
    return (error / (target.square().mean(dim=space) + FLOOR)).mean()


def mse(prediction: Tensor, target: Tensor) -> Tensor:
    """Mean square error."""
    return (prediction - target).square().mean()


def mae(prediction: Tensor, target: Tensor) -> Tensor:
    """Mean absolute error."""
    return (prediction - target).abs().mean()


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"nmse": nmse, "mse": mse, "mae": mae}


def supervise(
    kind: str, changes: Tensor, stats: Statistics, window: Window, following: Tensor
) -> Tensor:
    """The loss of the changes that a model predicts for the last frames of a window.

    Args:
        kind: a key of `LOSSES`.
        changes: predictions after the window's last n frames, `(B, n, C, *space)`.
        stats: those frames' units, as `predict_change` returns them.
        window: `(B, T, C, *space)`, as the model saw it.
        following: the true frame after each of the window's frames, `(B, T, C, *space)`.
    """
    num = changes.shape[1]
    target = stats.change_between(window.fields[:, -num:], following[:, -num:])
    # The window's first frame has no change behind it to compare the one to come with.
    first = 1 if num == window.num_frames > 1 else 0
    scale = (stats.unit / stats.change).reshape(*changes.shape[:3], *(1,) * (changes.dim() - 3))
    changes, target = (changes.float() * scale)[:, first:], (target.float() * scale)[:, first:]
    return LOSSES[kind](changes, target)
