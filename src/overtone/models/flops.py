"""Floating-point operations of a model call, counted by torch without computing anything.

The count is made on the meta device, where attention is counted rightly. It holds matrix products,
convolutions, attention and FFTs; pointwise work is not in it. An FFT of n complex numbers counts
as the customary 5 n log₂ n, one between n real numbers and their half spectrum as half of that.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from overtone.domain import Domain, Window

Shape = Sequence[int]


def _transform(cells: Shape, dims: Shape, per_point: float) -> int:
    """FLOPs of all transforms over some dimensions of a tensor."""
    points = math.prod(cells[dim] for dim in dims)
    return round(per_point * math.prod(cells) * math.log2(points)) if points > 1 else 0


def _complex(cells: Shape, dims: Shape, *_: Any, **__: Any) -> int:
    return _transform(cells, dims, 5)


def _to_half(cells: Shape, dims: Shape, *_: Any, **__: Any) -> int:
    return _transform(cells, dims, 2.5)


def _from_half(_: Shape, dims: Shape, *__: Any, out_shape: Shape, **___: Any) -> int:
    return _transform(out_shape, dims, 2.5)


FFT_FLOPS = {
    torch.ops.aten._fft_c2c: _complex,
    torch.ops.aten._fft_r2c: _to_half,
    torch.ops.aten._fft_c2r: _from_half,
}
"""What torch's counter leaves out, by operator."""


def call_flops(
    model: nn.Module,
    domain: Domain,
    patch: int | Sequence[int],
    *,
    frames: int,
    batch: int = 1,
    training: bool = False,
    **options: Any,
) -> int:
    """FLOPs of predicting one frame, or of one training step's forward and backward pass.

    Args:
        model: a `Model`, or a module with the same `predict_change`.
        domain: what the window lies on.
        patch: cells of a token, one int or one for each axis.
        frames: T of the window.
        batch: B of the window.
        training: count a training step, in which every frame predicts.
        options: of `predict_change`, such as `allow_untrained`.
    """
    twin: Any = copy.deepcopy(model).to("meta").requires_grad_(training)
    fields = torch.empty(batch, frames, len(domain.fields), *domain.shape, device="meta")
    counter = FlopCounterMode(display=False, custom_mapping=FFT_FLOPS)
    with torch.device("meta"), torch.set_grad_enabled(training), counter:
        twin.train()  # in evaluation mode it would look for NaN, which meta tensors can't tell
        changes, _ = twin.predict_change(
            Window(fields, domain), patch, last_only=not training, **options
        )
        if training:
            changes.square().mean().backward()
    return counter.get_total_flops()
