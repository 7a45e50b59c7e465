"""Attention along any axis, and the small layers around it.

All attention in this library is one operation: tokens lie on axes `(B, T, *grid)`, and attention
runs along one of them, the others being batch. Time attention runs along T, axial attention along
each grid axis, O(N√N) on a square grid, full attention along the grid flattened to one axis, O(N²).
Queries and keys are normalised for each head (QK-norm) and rotated by their positions.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.grid import PatchGrid
from overtone.models.processors.rope import rotate
from overtone.ops.constants import full_precision


class ScaledLinear(nn.Module):
    """A linear map with LayerScale folded into its weight: `diag(scale) W x`.

    The product is that of a projection followed by a LayerScale, without a pass over the
    activations and without keeping them for the backward pass. With `scale` 0 there is none.
    """

    def __init__(self, in_dim: int, out_dim: int, *, scale: float):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_dim, in_dim) * in_dim**-0.5)
        self.scale = nn.Parameter(torch.full((out_dim,), scale)) if scale else None

    def forward(self, x: Tensor) -> Tensor:
        """`(..., in_dim)` to `(..., out_dim)`."""
        scale = self.scale
        return F.linear(x, self.weight if scale is None else scale[:, None] * self.weight)


class Heads(nn.Module):
    """Queries, keys and values of all heads, and the projection back.

    Args:
        dim: width of a token.
        num_heads: `dim` must be a multiple of it.
        scale: LayerScale of the output at initialisation.
    """

    def __init__(self, dim: int, num_heads: int, *, scale: float):
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(dim, dim, bias=False)
        # Apart from the keys: the norm copies those, and would keep a joint pair alive with them.
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        for layer in (self.q, self.k, self.v):
            nn.init.normal_(layer.weight, std=dim**-0.5)
        self.q_norm = nn.LayerNorm(dim // num_heads, bias=False)
        self.k_norm = nn.LayerNorm(dim // num_heads, bias=False)
        self.out = ScaledLinear(dim, dim, scale=scale)

    def queries(self, x: Tensor, rotation: Tensor | None) -> Tensor:
        """Rotated queries `(..., num_heads, head_dim)`.

        Args:
            x: tokens `(..., dim)`.
            rotation: `(..., head_dim / 2, 2)`, broadcast against `x` without its last axis; None
                where positions are in the tokens themselves.
        """
        q = self._normalised(self.q(x), self.q_norm)
        return q if rotation is None else rotate(q, rotation.unsqueeze(-3))

    def keys_values(self, x: Tensor, rotation: Tensor | None) -> tuple[Tensor, Tensor]:
        """Rotated keys, and values, each `(..., num_heads, head_dim)`; arguments as `queries`."""
        k = self._normalised(self.k(x), self.k_norm)
        v = self.v(x).unflatten(-1, (self.num_heads, -1))
        return k if rotation is None else rotate(k, rotation.unsqueeze(-3)), v

    def _normalised(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        """`(..., dim)` to `(..., num_heads, head_dim)`, in the precision of the norm's weights.

        On CUDA autocast does that by itself; on a CPU it would norm and rotate in half precision.
        """
        return norm(x.unflatten(-1, (self.num_heads, -1)).to(norm.weight.dtype))


def attend(q: Tensor, k: Tensor, v: Tensor, axis: int, *, causal: bool = False) -> Tensor:
    """Softmax attention along one axis, all others being batch.

    Args:
        q, k, v: `(..., num_heads, head_dim)`; keys and values may be longer than the queries along
            the axis, which are then the latest.
        axis: counted from the front.
        causal: whether a position sees only itself and those before it.

    Returns:
        Like `q`.
    """
    num_queries, num_keys = q.shape[axis], k.shape[axis]
    mask = None
    if causal and 1 < num_queries < num_keys:
        ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=q.device)
        mask = ones.tril(num_keys - num_queries)
    # Axes before the attended one are batch, those behind it join the heads: no copy is needed.
    q, k, v = (x.reshape(-1, x.shape[axis], _behind(x, axis), x.shape[-1]).transpose(1, 2)
               for x in (q, k, v))  # fmt: skip
    y = softmax_attention(q, k, v, mask, causal=causal and num_queries == num_keys)
    return y.transpose(1, 2)


def softmax_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False
) -> Tensor:
    """Attention of `(B, heads, tokens, head_dim)`, in the precision of the values, or a better one.

    On a CPU that of half precision is the slower one, backwards three times, so it is full there.

    Args:
        q, k, v: queries may be fewer than keys and values.
        mask: which keys are seen, broadcast against `(B, heads, queries, keys)`.
        causal: whether a query sees only the keys up to its own.
    """
    dtype = v.dtype
    wide = torch.float32 if v.device.type == "cpu" and dtype.itemsize < 4 else dtype
    with nullcontext() if wide == dtype else full_precision(v):
        q, k, v = (x.to(wide) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal).to(dtype)


class SpatialAttention(Heads):
    """Attention among the tokens of a frame; the kinds differ in who sees whom."""

    def forward(self, x: Tensor, rotation: Tensor, grid: PatchGrid) -> Tensor:
        """Mix the tokens of each frame.

        Args:
            x: `(B, T, *grid, dim)`.
            rotation: `(*grid, head_dim / 2, 2)`.
            grid: the patch grid; all that matters of it is in the rotation.
        """
        q, (k, v) = self.queries(x, rotation), self.keys_values(x, rotation)
        return self.out(self.mix(q, k, v).reshape(x.shape))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Values of those that each token sees; all are `(B, T, *grid, num_heads, head_dim)`."""
        raise NotImplementedError


class FullAttention(SpatialAttention):
    """Every token of a frame sees every other."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See `SpatialAttention.mix`."""
        return attend(*(part.flatten(2, -3) for part in (q, k, v)), axis=2)


class AxialAttention(SpatialAttention):
    """Attention along each axis of a frame, averaged over the axes.

    The axes share queries, keys and values, so that 1D, 2D and 3D use the same weights and none is
    ever idle. An axis with one token has nothing to attend to and is left out of the average: on a
    grid one token wide, axial attention is full attention.
    """

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See `SpatialAttention.mix`."""
        axes = [axis for axis in range(2, q.dim() - 2) if q.shape[axis] > 1] or [2]
        parts = [attend(q, k, v, axis).reshape(q.shape) for axis in axes]
        return torch.stack(parts).mean(dim=0) if len(parts) > 1 else parts[0]


def _behind(x: Tensor, axis: int) -> int:
    return x.shape[axis + 1 : -1].numel()


class Gate(torch.autograd.Function):
    """`silu(gate) * value`, which keeps its input alone and computes the silu again backwards."""

    @staticmethod
    def forward(ctx: Any, pair: Tensor) -> Tensor:
        """`(..., 2 * hidden_dim)` to `(..., hidden_dim)`."""
        ctx.save_for_backward(pair)
        gate, value = pair.chunk(2, dim=-1)
        return F.silu(gate).mul_(value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Gradient of the pair."""
        (pair,), (grad,) = ctx.saved_tensors, grads
        gate, value = pair.chunk(2, dim=-1)
        return torch.cat(
            [torch.ops.aten.silu_backward(grad * value, gate), F.silu(gate).mul_(grad)], dim=-1
        )


def gated(pair: Tensor) -> Tensor:
    """`silu(gate) * value` of a pair `(..., 2 * hidden_dim)` in little memory."""
    if torch.compiler.is_compiling():  # the compiler chooses by itself what to compute again
        gate, value = pair.chunk(2, dim=-1)
        return F.silu(gate) * value
    result: Any = Gate.apply(pair)
    return result


class SwiGLU(nn.Module):
    """The gated MLP: `out(silu(gate) * value)`."""

    def __init__(self, dim: int, hidden_dim: int, *, scale: float):
        super().__init__()
        self.inward = nn.Linear(dim, 2 * hidden_dim, bias=False)
        nn.init.normal_(self.inward.weight, std=dim**-0.5)
        self.out = ScaledLinear(hidden_dim, dim, scale=scale)

    def forward(self, x: Tensor) -> Tensor:
        """`(..., dim)` to `(..., dim)`."""
        return self.out(gated(self.inward(x)))


class DropPath(nn.Module):
    """In training, drop a residual branch for whole samples, scaling up the others.

    Args:
        rate: probability that a sample's branch is dropped.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """`(B, ...)` to the same; frames and tokens of a sample share their fate."""
        if not self.training or self.rate == 0.0:
            return x
        keep = 1.0 - self.rate
        mask = x.new_empty(x.shape[0], *(1,) * (x.dim() - 1)).bernoulli_(keep)
        return x * (mask / keep)
