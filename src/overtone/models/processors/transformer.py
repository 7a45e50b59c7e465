"""The processor: a stack of blocks between encoder and decoder.

A block is time attention, then spatial mixing with a SwiGLU beside it,

    x ← x + Time(norm(x)),   x ← x + Space(n) + MLP(n),  n = norm(x),

or behind it, as the paper draws its blocks:

    x ← x + Time(norm(x)),   x ← x + Space(norm(x)),   x ← x + MLP(norm(x)),

each branch scaled (LayerScale) and, in training, dropped at random for whole samples. Time
attention is causal by default: a frame never sees a later one, so each frame's output is a
prediction of its own.

With `checkpointing`, blocks are computed again in the backward pass instead of keeping what they
computed. On a CPU the memory that this frees is also handed back to the system, see
`release_freed`.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint  # pyright: ignore[reportUnknownVariableType]

from overtone.grid import PatchGrid
from overtone.models.processors.afno import SpectralMixing
from overtone.models.processors.attention import (
    AxialAttention,
    DropPath,
    FullAttention,
    Heads,
    SwiGLU,
    attend,
)
from overtone.models.processors.rope import space_rotation, time_rotation
from overtone.models.processors.swin import WindowAttention

PROCESSORS = ("vit", "axial", "swin", "afno")
"""Kinds of spatial mixing: full, axial and windowed attention, and spectral mixing."""


class TimeAttention(Heads):
    """Attention along time, each place by itself.

    Args:
        dim, num_heads, scale: as in `Heads`.
        causal: whether a frame sees only itself and earlier ones.
    """

    def __init__(self, dim: int, num_heads: int, *, scale: float, causal: bool):
        super().__init__(dim, num_heads, scale=scale)
        self.causal = causal

    def forward(self, x: Tensor, rotation: Tensor, *, last_only: bool) -> Tensor:
        """Mix the frames of each place.

        Args:
            x: `(B, T, *grid, dim)`.
            rotation: `(T, head_dim / 2, 2)`.
            last_only: whether only the last frame's result is wanted, `(B, 1, *grid, dim)`.
        """
        grid_axes = (1,) * (x.dim() - 3)
        rotation = rotation.reshape(rotation.shape[0], *grid_axes, *rotation.shape[1:])
        k, v = self.keys_values(x, rotation)
        if last_only:
            x, rotation = x[:, -1:], rotation[-1:]
        y = attend(self.queries(x, rotation), k, v, axis=1, causal=self.causal)
        return self.out(y.reshape(x.shape))


class Block(nn.Module):
    """Time attention, then spatial mixing and an MLP.

    Args:
        dim, num_heads, mlp_dim: widths; `mlp_dim` is the hidden width of the SwiGLU.
        mlp: where it stands, `"beside"` the spatial mixing or `"behind"` it.
        space: the spatial mixing; called with tokens, their rotation and the patch grid.
        causal: whether time attention is.
        with_time: whether there is time attention at all; a model of one frame has none.
        layer_scale, drop_path: of the residual branches.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        mlp_dim: int,
        *,
        mlp: str,
        space: nn.Module,
        causal: bool,
        with_time: bool,
        layer_scale: float,
        drop_path: float,
    ):
        super().__init__()
        self.time = None
        if with_time:
            self.time_norm = nn.LayerNorm(dim)
            self.time = TimeAttention(dim, num_heads, scale=layer_scale, causal=causal)
        self.norm = nn.LayerNorm(dim)
        self.space = space
        self.mlp_norm = nn.LayerNorm(dim) if mlp == "behind" else None
        self.mlp = SwiGLU(dim, mlp_dim, scale=layer_scale)
        self.drop_path = DropPath(drop_path)

    def forward(
        self,
        x: Tensor,
        grid: PatchGrid,
        space_rotation: Tensor,
        time_rotation: Tensor,
        last_only: bool,
    ) -> Tensor:
        """`(B, T, *grid, dim)` to the same, or to T = 1 if only the last frame is wanted."""
        residual = x[:, -1:] if last_only else x
        if self.time is not None:
            y = self.time(self.time_norm(x), time_rotation, last_only=last_only)
            residual = residual + self.drop_path(y)
        y = self.norm(residual)
        mixed = self.space(y, space_rotation, grid)
        if self.mlp_norm is None:
            return residual + self.drop_path(mixed + self.mlp(y))
        residual = residual + self.drop_path(mixed)
        return residual + self.drop_path(self.mlp(self.mlp_norm(residual)))


class Transformer(nn.Module):
    """The stack of blocks, with a norm at its end.

    Args:
        kind: spatial mixing, one of `PROCESSORS`.
        dim, num_heads, num_blocks, mlp_dim: sizes.
        context: number of frames it is built for; with one there is no time attention.
        causal: whether time attention is.
        max_turns: highest spatial frequency of the rotary encoding, in turns per domain.
        layer_scale: initial scale of the residual branches; 0 for branches without one.
        mlp: where a block has its MLP, `"beside"` the spatial mixing or `"behind"` it.
        drop_path: rate of the last block; it grows linearly from 0 at the first.
        window: most tokens of a window along an axis, for `"swin"`.
        mode_blocks: blocks of channels of the spectral network, for `"afno"`.
    """

    def __init__(
        self,
        kind: str,
        *,
        dim: int,
        num_heads: int,
        num_blocks: int,
        mlp_dim: int,
        context: int,
        causal: bool = True,
        max_turns: int = 16,
        layer_scale: float = 0.1,
        mlp: str = "beside",
        drop_path: float = 0.0,
        window: int = 8,
        mode_blocks: int = 8,
    ):
        super().__init__()
        self.head_dim = dim // num_heads
        self.max_turns = max_turns
        self.checkpointing = False
        self.blocks = nn.ModuleList(
            Block(
                dim,
                num_heads,
                mlp_dim,
                mlp=mlp,
                space=_space(
                    kind,
                    dim,
                    num_heads,
                    scale=layer_scale,
                    block=i,
                    window=window,
                    mode_blocks=mode_blocks,
                ),
                causal=causal,
                with_time=context > 1,
                layer_scale=layer_scale,
                drop_path=drop_path * i / max(num_blocks - 1, 1),
            )
            for i in range(num_blocks)
        )
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: Tensor, grid: PatchGrid, *, last_only: bool = False) -> Tensor:
        """Process the tokens of a window.

        Args:
            tokens: `(B, T, *grid.shape, dim)`.
            grid: the patch grid they lie on.
            last_only: return the last frame alone; the last block then computes nothing else.

        Returns:
            Like `tokens`, with T = 1 if `last_only`.
        """
        space = space_rotation(grid, self.head_dim, self.max_turns, tokens)
        time = time_rotation(tokens.shape[1], self.head_dim, tokens)
        for i, block in enumerate(self.blocks):
            last = last_only and i == len(self.blocks) - 1
            arguments = (tokens, grid, space, time, last)
            if self.checkpointing and torch.is_grad_enabled():
                tokens = cast("Tensor", checkpoint(block, *arguments, use_reentrant=False))
                if tokens.device.type == "cpu" and not torch.compiler.is_compiling():
                    # Before the block is computed again: what the one behind it left is free now.
                    tokens.register_hook(release_freed)  # pyright: ignore[reportUnknownMemberType]
            else:
                tokens = block(*arguments)
        return self.norm(tokens)


def release_freed(*_: Any) -> None:
    """Hand unused pages of the heap back to the system.

    glibc's malloc keeps freed blocks of up to 32 MB and often can't fit the next, other tensors
    into the gaps, so that a process that frees much still grows. Elsewhere (macOS, musl, Windows)
    nothing is done. It is a hook, and ignores the gradient that hooks are given.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def _space(
    kind: str,
    dim: int,
    num_heads: int,
    *,
    scale: float,
    block: int,
    window: int,
    mode_blocks: int,
) -> nn.Module:
    """The spatial mixing of a block; windows are shifted in every other one."""
    if kind == "afno":
        return SpectralMixing(dim, mode_blocks=mode_blocks, scale=scale)
    if kind == "swin":
        shifted = block % 2 == 1
        return WindowAttention(dim, num_heads, scale=scale, window=window, shifted=shifted)
    return {"vit": FullAttention, "axial": AxialAttention}[kind](dim, num_heads, scale=scale)


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
