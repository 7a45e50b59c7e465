"""Floating-point operations of a model call, counted by torch without computing anything.

The count is made on the meta device, where attention is counted rightly. It holds matrix products,
convolutions and attention; FFTs and pointwise work are not in it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from overtone.domain import Domain, Window


def call_flops(
    model: nn.Module,
    domain: Domain,
    patch: int | Sequence[int],
    *,
    frames: int,
    batch: int = 1,
    training: bool = False,
) -> int:
    """FLOPs of predicting one frame, or of one training step's forward and backward pass.

    Args:
        model: an `Emulator`, or a module with the same `forward` and `predict_change`.
        domain: what the window lies on.
        patch: cells of a token, one int or one for each axis.
        frames: T of the window.
        batch: B of the window.
        training: count a training step, in which every frame predicts.
    """
    twin: Any = copy.deepcopy(model).to("meta")
    fields = torch.empty(batch, frames, len(domain.fields), *domain.shape, device="meta")
    counter = FlopCounterMode(display=False)
    with torch.device("meta"), torch.set_grad_enabled(training), counter:
        twin.train()  # in evaluation mode it would look for NaN, which meta tensors can't tell
        changes, _ = twin.predict_change(Window(fields, domain), patch, last_only=not training)
        if training:
            changes.square().mean().backward()
    return counter.get_total_flops()
