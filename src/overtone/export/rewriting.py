"""What is written in other words for ONNX, so that its runtimes compute the same numbers.

- They add numbers up one by one. The mean of 30,000 cells is then wrong in the fifth digit, where
  torch, which adds up in pairs of pairs, has seven. So sums run over short axes, one after another,
  and a long axis is split into two.
- ONNX can't look at a number's bits, so `frexp` takes the exponent from a logarithm. Just below a
  power of two that may be one too many; what is measured in such units (`normalize.size_of`) comes
  out the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten: Any = torch.ops.aten

SHORT = 64
"""Most numbers that are added up one by one."""


def _mean(x: Tensor, dim: Sequence[int] | None, keepdim: bool = False, **kind: Any) -> Tensor:
    return _in_steps(aten.mean.dim, x, dim, keepdim, kind)


def _sum(x: Tensor, dim: Sequence[int] | None, keepdim: bool = False, **kind: Any) -> Tensor:
    return _in_steps(aten.sum.dim_IntList, x, dim, keepdim, kind)


def _in_steps(
    reduce: Callable[..., Tensor],
    x: Tensor,
    dim: Sequence[int] | None,
    keepdim: bool,
    kind: dict[str, Any],
) -> Tensor:
    """A mean or sum over some axes, over one short axis after another.

    Args:
        reduce: the operation; what it is called with here is short and stays as it is.
        x: any tensor.
        dim, keepdim, kind: its arguments.
    """
    axes = sorted(d % x.dim() for d in (range(x.dim()) if not dim else dim))
    factors = [_factor(x.shape[axis]) for axis in axes]
    if len(axes) == 1 and factors == [1]:
        return NotImplemented
    for axis, factor in zip(axes[::-1], factors[::-1], strict=True):
        if factor > 1:
            parts = x.reshape(*x.shape[:axis], -1, factor, *x.shape[axis + 1 :])
            x = reduce(parts, [axis + 1], False, **kind)
        x = reduce(x, [axis], keepdim, **kind)
    return x


def _factor(length: Any) -> int:
    """The largest short divisor of a long axis; 1 for one that is short, prime or free."""
    if not isinstance(length, int) or length <= SHORT:
        return 1
    return max(size for size in range(1, SHORT + 1) if length % size == 0)


def _norm(
    x: Tensor,
    ord: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    if ord != 2 or dtype is not None or dim is None:
        return NotImplemented
    return (x * x).sum(dim=[*dim], keepdim=keepdim).sqrt()


def _frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    exponent = (x.log() / math.log(2)).floor()
    # Not by the next power at once, which the largest numbers don't have.
    return x / torch.pow(2.0, exponent) / 2, (exponent + 1).to(torch.int32)


REWRITTEN: dict[Any, Callable[..., Any]] = {
    aten.mean.dim: _mean,
    aten.sum.dim_IntList: _sum,
    aten.linalg_vector_norm.default: _norm,
    aten.frexp.Tensor: _frexp,
    torch.ops.prims.frexp.default: _frexp,
}
"""Operation -> the same by others; what returns `NotImplemented` stays."""
