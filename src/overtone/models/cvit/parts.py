"""The two halves of CViT: frames to tokens, and tokens with places to values.

Encoder: every frame is patched by one convolution, whose kernel is PI-resized to the patch (CKM);
learned embeddings of frame and place are added; at each place one learned summary vector attends to
the frames, which removes time; a transformer mixes the places.

Decoder: a place has a latent vector, read from a learned grid of them (`ops/sampling.py`); it
attends to all tokens and is turned into the fields' values there. A token has the latent of its
own place added, and queries and keys start alike, so that a place looks at the tokens around it
before anything is learned. Places do not see each other, so they may be computed in parts, in any
order and at any density.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from overtone.domain import Domain
from overtone.grid import PatchGrid
from overtone.models.processors.attention import Heads, ScaledLinear, attend
from overtone.models.processors.rope import time_rotation
from overtone.models.tokenizers.convolution import OUTPUT_GAIN, Stage
from overtone.ops.padding import take
from overtone.ops.resize import pi_resize
from overtone.ops.sampling import sample_grid

QUERY_CHUNK = 4096
"""Places that are decoded at once where nothing is kept for a backward pass."""
SHARPNESS = 8.0
"""Scale of a decoder's queries at the start: most of a place's attention is on tokens nearby."""


class AttentionBlock(nn.Module):
    """Attention along axis 1, to itself or to another sequence, then an MLP.

        x ← x + Attention(norm(x), norm(other)),   x ← x + MLP(norm(x))

    Args:
        dim, num_heads, mlp_dim: widths.
        cross: whether it attends to another sequence.
    """

    def __init__(self, dim: int, num_heads: int, mlp_dim: int, *, cross: bool):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.other_norm = nn.LayerNorm(dim) if cross else None
        self.attention = Heads(dim, num_heads, scale=1.0)
        self.mlp_norm = nn.LayerNorm(dim)
        self.hidden = nn.Linear(dim, mlp_dim)
        self.out = ScaledLinear(mlp_dim, dim, scale=1.0)

    def look_around(self) -> None:
        """Start with equal queries and keys: attention goes to what is alike."""
        with torch.no_grad():
            self.attention.k.weight.copy_(self.attention.q.weight)
            self.attention.q_norm.weight.fill_(SHARPNESS)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """Mix along axis 1.

        Args:
            x: `(B, L, ..., dim)`; with `other`, B may be 1.
            other: `(B, M, ..., dim)` if the block is a crossing one.
        """
        y = self.norm(x)
        source = y
        if self.other_norm is not None and other is not None:
            source = self.other_norm(other)
        k, v = self.attention.keys_values(source, None)
        q = self.attention.queries(y, None)
        q = q.expand(k.shape[0], *q.shape[1:])
        mixed = attend(q, k, v, axis=1).reshape(k.shape[0], *x.shape[1:])
        x = x + self.attention.out(mixed)
        return x + self.out(F.gelu(self.hidden(self.mlp_norm(x))))


class FrameEncoder(nn.Module):
    """Frames to tokens without time.

    Args:
        domain: gives fields and grid.
        base_patch: kernel of the patch convolution, one for each axis.
        embedding_patch: the learned embedding of places has one vector for each such patch.
        context: most frames.
        dim, num_heads, mlp_dim: widths.
        num_summaries: blocks that sum the frames up.
        num_blocks: blocks that mix the places.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        base_patch: tuple[int, ...],
        embedding_patch: tuple[int, ...],
        context: int,
        dim: int,
        num_heads: int,
        mlp_dim: int,
        num_summaries: int,
        num_blocks: int,
    ):
        super().__init__()
        self.checkpointing = False
        self.patching = Stage(len(domain.fields), dim, base_patch, transposed=False, gain=1.0)
        self.place_embedding = nn.Parameter(waves(PatchGrid.lay(domain, embedding_patch), dim))
        # One frame needs no summary: attention to a single thing learns nothing.
        self.summaries = nn.ModuleList()
        if context > 1:
            frames = time_rotation(context, dim, self.place_embedding).flatten(-2)
            self.frame_embedding = nn.Parameter(frames.clone())
            self.summary = nn.Parameter(torch.randn(dim))
            self.summaries.extend(
                AttentionBlock(dim, num_heads, mlp_dim, cross=True) for _ in range(num_summaries)
            )
        self.norm = nn.LayerNorm(dim)
        self.blocks = nn.ModuleList(
            AttentionBlock(dim, num_heads, mlp_dim, cross=False) for _ in range(num_blocks)
        )

    def forward(self, fields: Tensor, grid: PatchGrid) -> Tensor:
        """Tokens of a window.

        Args:
            fields: normalised fields `(B, T, C, *space)`.
            grid: the patch grid.

        Returns:
            `(B, N, dim)`, the grid's tokens in row-major order.
        """
        tokens = self.embed(fields, grid)
        if self.summaries:
            tokens = self._sum_up(tokens + self._frames(tokens))
        tokens = self.norm(tokens[:, 0]).flatten(1, -2)
        for block in self.blocks:
            if self.checkpointing and torch.is_grad_enabled():
                tokens = checkpoint(block, tokens, use_reentrant=False)
            else:
                tokens = block(tokens)
        return tokens

    def embed(self, fields: Tensor, grid: PatchGrid) -> Tensor:
        """Patches of every frame with the embedding of their places, `(B, T, *grid, dim)`."""
        x = fields.flatten(0, 1)
        for axis, (start, count, p) in enumerate(
            zip(grid.start, grid.shape, grid.patch, strict=True)
        ):
            span, wraps = (start, start + count * p), grid.domain.periodic[axis]
            x = take(x, axis + 2, span, periodic=wraps, ghosts="edge")
        tokens = self.patching(x, grid.patch, pi_resize).movedim(1, -1)
        centres = [grid.centres(axis) for axis in range(len(grid.shape))]
        places = sample_grid(
            self.place_embedding, centres, periodic=grid.domain.periodic, spline="linear"
        )
        return tokens.unflatten(0, fields.shape[:2]) + places

    def _frames(self, tokens: Tensor) -> Tensor:
        """Embedding of the latest frames, `(T, *(1, ...), dim)`."""
        latest = self.frame_embedding[-tokens.shape[1] :]
        return latest.reshape(len(latest), *(1,) * (tokens.dim() - 3), -1)

    def _sum_up(self, tokens: Tensor) -> Tensor:
        """`(B, T, *grid, dim)` to T = 1."""
        summary = self.summary.expand(tokens.shape[0], 1, *tokens.shape[2:])
        for block in self.summaries:
            summary = block(summary, tokens)
        return summary


class QueryDecoder(nn.Module):
    """Values at places, from tokens.

    Args:
        domain: gives the fields; the latents lie on its whole extent.
        latent_grid: number of latents along each axis.
        latent_dim: width of a latent.
        token_dim: width of the encoder's tokens.
        dim, num_heads, mlp_dim, num_blocks: sizes of the blocks in which places attend to tokens.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        latent_grid: tuple[int, ...],
        latent_dim: int,
        token_dim: int,
        dim: int,
        num_heads: int,
        mlp_dim: int,
        num_blocks: int,
    ):
        super().__init__()
        self.checkpointing = False
        lattice = Domain(latent_grid, domain.extent, domain.boundaries, domain.fields, domain.dt)
        self.latents = nn.Parameter(waves(PatchGrid.lay(lattice, 1), latent_dim))
        self.lift = nn.Linear(latent_dim, dim)
        self.lift_norm = nn.LayerNorm(dim)
        self.token_norm = nn.LayerNorm(token_dim)
        self.tokens = nn.Linear(token_dim, dim)
        blocks = [AttentionBlock(dim, num_heads, mlp_dim, cross=True) for _ in range(num_blocks)]
        for block in blocks:
            block.look_around()
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim)
        self.hidden = nn.Linear(dim, dim)
        self.hidden_norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, len(domain.fields))
        nn.init.normal_(self.out.weight, std=OUTPUT_GAIN * dim**-0.5)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Tensor, own: Tensor, latents: Tensor) -> Tensor:
        """Values at places.

        Args:
            tokens: `(B, N, token_dim)`.
            own: latents of the tokens' own places, `(N, latent_dim)`.
            latents: latents of the places, `(Q, latent_dim)`.

        Returns:
            `(B, Q, C)`.
        """
        source = self.tokens(self.token_norm(tokens)) + self.lift_norm(self.lift(own))
        if not torch.is_grad_enabled():
            return torch.cat([self._read(source, q) for q in latents.split(QUERY_CHUNK)], dim=1)
        if self.checkpointing:
            parts = [
                checkpoint(self._read, source, q, use_reentrant=False)
                for q in latents.split(QUERY_CHUNK)
            ]
            return torch.cat(parts, dim=1)
        return self._read(source, latents)

    def _read(self, source: Tensor, latents: Tensor) -> Tensor:
        x = self.lift_norm(self.lift(latents))[None]
        for block in self.blocks:
            x = block(x, source)
        x = self.norm(x)
        return self.out(self.hidden_norm(x + F.gelu(self.hidden(x))))


def waves(grid: PatchGrid, dim: int) -> Tensor:
    """Cosines and sines over a domain, at a grid's centres, `(*grid.shape, dim)`: first embeddings.

    The axes share the channels. Along each, from one turn to a quarter of a turn for each token;
    half as many where the axis does not wrap, so that its ends are told apart. The slower a wave
    the larger it is, so that vectors are the more alike the nearer their places.
    """
    num_axes = len(grid.shape)
    num_pairs = dim // 2 // num_axes
    table = torch.zeros(*grid.shape, dim)
    for axis, count in enumerate(grid.shape):
        exponents = torch.arange(num_pairs) / max(num_pairs - 1, 1)
        turns = (max(count / 4, 1) ** exponents).round() / (1 if grid.domain.periodic[axis] else 2)
        angles = 2 * math.pi * torch.tensor(grid.centres(axis))[:, None] * turns
        along = [*(-1 if a == axis else 1 for a in range(num_axes)), 2 * num_pairs]
        channels = slice(axis * 2 * num_pairs, (axis + 1) * 2 * num_pairs)
        amplitudes = 1 / (turns * turns.pow(-2).mean().sqrt())
        pairs = torch.cat([amplitudes * angles.cos(), amplitudes * angles.sin()], dim=-1)
        table[..., channels] = pairs.reshape(along)
    return table
