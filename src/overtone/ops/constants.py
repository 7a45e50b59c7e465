"""Tensors that depend on plain numbers alone: made once, in float64, and kept while there is room.

Resize matrices, position tables, masks and boundary markers are such constants. They are no part of
a model's state: nothing to save, to move or to train. Their errors would be errors of every
prediction, so they are made in float64, and `full_precision` keeps autocast away from the products
that they are used in.

What was not used for longest makes room when all together exceed `MAX_BYTES`. A compiled graph
can't look into the store, so there they are made on the spot; an exported program gets those that
are in it as they are (`as_they_are`), instead of the steps that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from threading import Lock
from typing import Any

import torch
from torch import Tensor

MAX_BYTES = 256 * 2**20
"""Bytes that are kept in all: what several models need in 2D, or the markers of a hundred shifts of
a grid of 64³ cells with open sides."""

_clock = count()
"""Ticks with every use."""


class Entry:
    """A constant that is kept.

    Attributes:
        tensor: the constant.
        num_bytes: memory that it holds on to.
        used: the tick of its last use.
    """

    __slots__ = ("num_bytes", "tensor", "used")

    def __init__(self, tensor: Tensor):
        self.tensor, self.used = tensor, next(_clock)
        # Of a view, all that it is a view of; tensors on meta have a size but no memory.
        self.num_bytes = 0 if tensor.is_meta else tensor.untyped_storage().nbytes()


_kept: dict[tuple[Any, ...], Entry] = {}
_taken: list[None] = []
"""As long as those who trace a model and take what is kept; graphs can look at a list's length."""
_lock = Lock()
"""Held by whoever adds or removes. Looking up needs none: a thread sees an entry or does not."""


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
    compiling = torch.compiler.is_compiling()
    if compiling and not _taken:
        return make(*arguments).to(device, dtype)
    key = (make, arguments, device, dtype)
    entry = _kept.get(key)
    if entry is not None:
        entry.used = next(_clock)
        return entry.tensor
    if compiling:  # it had no room in the store
        return make(*arguments).to(device, dtype)
    # Out of reach of autograd, inference mode and any default device that the caller has set.
    with torch.inference_mode(False), torch.no_grad(), torch.device("cpu"):
        tensor = make(*arguments).to(device, dtype)
    _keep(key, Entry(tensor))
    return tensor


@contextmanager
def as_they_are() -> Iterator[None]:
    """Within it, what traces a model takes the constants that an earlier call has left here."""
    _taken.append(None)
    try:
        yield
    finally:
        _taken.pop()


def _keep(key: tuple[Any, ...], entry: Entry) -> None:
    """Add a constant and remove others until all have room; one that never has is not kept."""
    if entry.num_bytes > MAX_BYTES:
        return
    with _lock:
        _kept[key] = entry
        excess = sum(other.num_bytes for other in _kept.values()) - MAX_BYTES
        while excess > 0:
            oldest = min(_kept, key=lambda other: _kept[other].used)
            excess -= _kept.pop(oldest).num_bytes


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """Switch off autocast on a tensor's device: kernels are small and their errors are not."""
    # On meta there is no autocast; shapes and FLOPs are counted there.
    if x.device.type == "meta" or not torch.is_autocast_enabled(x.device.type):
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
