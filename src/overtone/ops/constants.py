"""Tensors that depend on plain numbers alone: made once, in float64, and kept.

Resize matrices, position tables and boundary markers are such constants. They are no part of a
model's state: nothing to save, to move or to train. A compiled graph can't look into the store, so
there they are made on the spot.

Full precision where it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

_kept: dict[tuple[Any, ...], Tensor] = {}


def constant(
    make: Callable[..., Tensor],
    arguments: tuple[Any, ...],
    device: torch.device,
    dtype: torch.dtype,
) -> Tensor:
    """The tensor `make(*arguments)` on a device, in a precision.

    Args:
        make: a function at module level that returns a float64 tensor on the CPU.
        arguments: plain, hashable values.
        device: where it is wanted.
        dtype: how it is wanted.
    """
    if torch.compiler.is_compiling():
        return make(*arguments).to(device, dtype)
    key = (make, arguments, device, dtype)
    if key not in _kept:
        # Out of reach of autograd, inference mode and any default device that the caller has set.
        with torch.inference_mode(False), torch.no_grad(), torch.device("cpu"):
            _kept[key] = make(*arguments).to(device, dtype)
    return _kept[key]


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """Switch off autocast on a tensor's device: kernels are small and their errors are not."""
    if x.device.type == "meta":  # knows no autocast; shapes and FLOPs are counted there
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
