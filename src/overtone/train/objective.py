"""One part of an update: predict, compare, backward.

Where a run unrolls, every step starts from the prediction of the one before, without a gradient
through it, at a fresh patch and shift. The gradients of the steps add up; so no more than one
step's activations are in memory.

What a prediction is compared with, and how, is `supervise`:

The model predicts the change that follows each frame. In units of the change in its context, the
loss is the normalised mean square error of it: for each sample, frame and field the mean over
space of the squared error, over the mean square of the target, then the mean of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from overtone.domain import Window, per_axis
from overtone.normalize import Statistics, size_of
from overtone.schedules import Patch
from overtone.train.config import TrainConfig
from overtone.train.draws import draw_patch, draw_shift

Predict = Callable[..., tuple[Tensor, Statistics]]
"""`predict_change` of a model, wrapped or not."""

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def choices(
    config: TrainConfig, patches: tuple[Patch, ...], ndim: int, update: int, done: float
) -> list[tuple[Patch, tuple[int, ...]]]:
    """Patch and shift of each unrolled step of an update.

    Args:
        config: how many steps, and what is drawn.
        patches: to draw from.
        ndim: number of axes.
        update: number of the update.
        done: share of the budget that was used before it.
    """
    drawn = []
    for step in range(config.unroll if done >= config.unroll_from else 1):
        patch = draw_patch(config.seed, update, step, patches, config.patch_weights)
        sizes = per_axis(patch, ndim, "patch")
        drawn.append((patch, draw_shift(config.seed, update, step, sizes, config.shift)))
    return drawn


def losses(
    predict: Predict,
    window: Window,
    target: Tensor,
    chosen: list[tuple[Patch, tuple[int, ...]]],
    config: TrainConfig,
    *,
    causal: bool,
) -> Iterator[Tensor]:
    """Yield the loss of each unrolled step; call backward on each before asking for the next.

    Args:
        predict: the model's `predict_change`.
        window: true frames `(B, T, C, *space)`.
        target: the frames after them, `(B, unroll, C, *space)`; as many are used as steps.
        chosen: patch and shift of each step.
        config: loss, noise and precision.
        causal: whether every frame of the window predicts; the last one alone otherwise.
    """
    truth = torch.cat([window.fields, target], dim=1)
    window = _with_noise(window, config.noise)
    for step, (patch, shift) in enumerate(chosen):
        with _autocast(config, window.fields.device.type):
            # Frames before the last were supervised at the step before.
            changes, stats = predict(window, patch, shift, last_only=step > 0 or not causal)
        following = truth[:, step + 1 : step + 1 + window.num_frames]
        yield supervise(config.loss, changes, stats, window, following)
        if step + 1 < len(chosen):
            change = changes[:, -1:].detach()
            frame = stats.last().add_change(window.fields[:, -1:], change)[:, 0]
            window = window.slide(frame)


def _with_noise(window: Window, amplitude: float) -> Window:
    if amplitude == 0:
        return window
    dim = (1, *range(3, window.fields.dim()))
    size = size_of(window.fields, dim=dim)
    scale = (window.fields / size).std(dim=dim, keepdim=True, correction=0) * size
    noise = amplitude * scale * torch.randn_like(window.fields)
    return Window(window.fields + noise, window.domain)


def _autocast(config: TrainConfig, device: str) -> AbstractContextManager[Any]:
    if config.precision == "fp32":
        return nullcontext()
    return torch.autocast(device, dtype=PRECISIONS[config.precision])


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
