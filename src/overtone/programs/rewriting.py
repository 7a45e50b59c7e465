"""What is written in other words for ONNX, so that its runtimes compute the same numbers.

- They add numbers up one by one. The mean of 30,000 cells is then wrong in the fifth digit, where
  torch, which adds up in pairs of pairs, has seven. So sums run over short axes, one after another,
  and a long axis is split into two.
- ONNX can't look at a number's bits, so `frexp` takes the exponent from a logarithm. Just below a
  power of two that may be one too many; what is measured in such units (`normalize.size_of`) comes
  out the same.
- It has no `hypot`; that is written by the larger of the two and the smaller one's share of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

SHORT = 64
"""Most numbers that are added up one by one."""


def translations() -> dict[Any, Callable[..., Any]]:
    """Operation of torch -> what writes it for ONNX."""
    from onnxscript import opset20

    op: Any = opset20  # its types know no values that are left out

    def mean(x: Any, dim: Sequence[int] = (), keepdim: bool = False, dtype: Any = None) -> Any:
        return _in_steps(op, op.ReduceMean, x, dim, keepdim)

    def total(x: Any, dim: Sequence[int] = (), keepdim: bool = False, dtype: Any = None) -> Any:
        return _in_steps(op, op.ReduceSum, x, dim, keepdim)

    def norm(
        x: Any,
        ord: float = 2.0,
        dim: Sequence[int] = (),
        keepdim: bool = False,
        dtype: Any = None,
    ) -> Any:
        if ord != 2.0:
            raise NotImplementedError(f"a norm of order {ord}")
        squares = op.Mul(x, x)
        squares.shape = x.shape
        return op.Sqrt(_in_steps(op, op.ReduceSum, squares, dim, keepdim))

    def frexp(x: Any) -> Any:
        two = op.Constant(value_float=2.0)
        exponent = op.Floor(op.Div(op.Log(x), op.Constant(value_float=math.log(2))))
        # Not by the next power at once, which the largest numbers don't have.
        share = op.Div(op.Div(x, op.Pow(two, exponent)), two)
        return share, op.Cast(op.Add(exponent, op.Constant(value_float=1.0)), to=6)

    def hypot(x: Any, y: Any) -> Any:
        one, a, b = op.Constant(value_float=1.0), op.Abs(x), op.Abs(y)
        larger = op.Max(a, b)
        # Squares are taken of the smaller one's share, so that none overflows; of two zeros, of 0.
        known = op.Greater(larger, op.Constant(value_float=0.0))
        share = op.Div(op.Min(a, b), op.Where(known, larger, one))
        return op.Mul(larger, op.Sqrt(op.Add(one, op.Mul(share, share))))

    aten, prims = torch.ops.aten, torch.ops.prims
    return {
        aten.mean.dim: mean,
        aten.sum.dim_IntList: total,
        aten.linalg_vector_norm.default: norm,
        aten.frexp.Tensor: frexp,
        prims.frexp.default: frexp,
        aten.hypot.default: hypot,
        prims.hypot.default: hypot,
    }


def _in_steps(
    op: Any, reduce: Callable[..., Any], x: Any, dim: Sequence[int] | None, keepdim: bool
) -> Any:
    """A mean or sum over some axes, over one short axis after another, the last one first.

    Args:
        op: ONNX's operators.
        reduce: the one to reduce with.
        x: a value of the graph that knows its shape.
        dim, keepdim: as in torch.
    """

    def numbers(values: Sequence[int]) -> Any:
        return op.Constant(value_ints=[*values])

    sizes = list(x.shape)
    axes = sorted((d % len(sizes) for d in (dim or range(len(sizes)))), reverse=True)
    for axis in axes:
        parts = split(sizes[axis])
        behind = sizes[axis + 1 :]
        if len(parts) > 1 and all(isinstance(size, int) for size in behind):
            # 0 is the size that it has, which may be free.
            x = op.Reshape(x, numbers([*[0] * axis, *parts, *behind]))
            for part in range(len(parts) - 1, 0, -1):
                x = reduce(x, numbers([axis + part]), keepdims=0)
        x = reduce(x, numbers([axis]), keepdims=int(keepdim))
        sizes[axis : axis + 1] = [1] if keepdim else []
    return x


def split(length: Any) -> list[int]:
    """Short factors of an axis; the first is what is left, and long if there is no way."""
    if not isinstance(length, int) or length <= SHORT:
        return [length]
    factor = max(size for size in range(1, SHORT + 1) if length % size == 0)
    return [*split(length // factor), factor] if factor > 1 else [length]
