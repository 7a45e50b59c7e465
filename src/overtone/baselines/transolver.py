"""Transolver: attention between a few learned slices of the domain instead of between cells.

Every cell belongs to G slices with weights w (a softmax); each slice's token is the weighted mean
of its cells' features; tokens attend to each other; each cell reads them back with the same
weights:

    z_g = Σ_i w_ig f_i / Σ_i w_ig,     z <- attention(z),     f_i <- Σ_g w_ig z_g.

(Wu et al. 2024, the variant for regular grids, whose weights and features come from 3 x 3
convolutions.) Cells know where they are by their distances to a coarse lattice of reference points,
as the authors give them; so the model does not commute with shifts. Distances along periodic axes
are measured round the ring.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.baselines.layers import PaddedConv
from overtone.domain import Domain
from overtone.errors import OvertoneError
from overtone.models.architecture import require_weights
from overtone.ops.constants import constant

COLDEST, HOTTEST = 0.1, 5.0
"""Limits of the softmax's learned temperature."""


class Transolver(Network):
    """The Transolver, in one to three dimensions, on any grid and any boundaries.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        width: channels.
        layers: number of blocks.
        heads: of the attention; each slices the domain in its own way.
        slices: G.
        expansion: channels inside the MLP, in units of `width`.
        reference: reference points along each axis.
    """

    name = "transolver"
    sizes: ClassVar[Sizes] = {
        "paper": {
            "width": 256, "layers": 8, "heads": 8, "slices": 128, "expansion": 1, "reference": 8
        },
        "mini": {
            "width": 64, "layers": 4, "heads": 4, "slices": 32, "expansion": 1, "reference": 4
        },
    }  # fmt: skip

    def __init__(
        self,
        *,
        domain: Domain,
        context: int,
        width: int,
        layers: int,
        heads: int,
        slices: int,
        expansion: int,
        reference: int,
    ):
        options = {"width": width, "layers": layers, "heads": heads, "slices": slices}
        options |= {"expansion": expansion, "reference": reference}
        super().__init__(domain, context, options)
        if width % heads:
            raise OvertoneError(
                f"width {width} does not split into {heads} heads; choose a multiple of {heads}"
            )
        dim_in, dim_out = self.channels
        require_weights(2 * layers * expansion * width**2 + 2 * width * reference**domain.ndim)
        self.lift = nn.Sequential(
            nn.Linear(dim_in + reference**domain.ndim, 2 * width),
            nn.GELU(),
            nn.Linear(2 * width, width),
        )
        self.blocks = nn.ModuleList(
            Block(width, heads, slices, expansion, domain.periodic) for _ in range(layers)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, dim_out))
        self.apply(_initialise)

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`."""
        arguments = (tuple(fields.shape[2:]), self.domain.periodic, self.options["reference"])
        where = constant(_distances, arguments, fields.device, fields.dtype)
        where = where.expand(fields.shape[0], *where.shape)
        x = self.lift(torch.cat([fields.movedim(1, -1), where], dim=-1))
        for block in self.blocks:
            x = self.run(block, x)
        return self.head(x).movedim(-1, 1)


class Block(nn.Module):
    """Attention between slices, then an MLP, each with its residual.

    Args:
        dim: channels.
        heads: of the attention.
        slices: G.
        expansion: of the MLP.
        periodic: for each axis, whether it wraps.
    """

    def __init__(
        self, dim: int, heads: int, slices: int, expansion: int, periodic: tuple[bool, ...]
    ):
        super().__init__()
        self.norm_space = nn.LayerNorm(dim)
        self.attention = SliceAttention(dim, heads, slices, periodic)
        self.norm_channels = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, expansion * dim), nn.GELU(), nn.Linear(expansion * dim, dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, *space, dim)` to the same."""
        x = x + self.attention(self.norm_space(x))
        return x + self.mlp(self.norm_channels(x))


class SliceAttention(nn.Module):
    """Attention between learned slices of the domain.

    Args:
        dim: channels.
        heads: each has its own slices and its share of the channels.
        slices: G.
        periodic: for each axis, whether it wraps.
    """

    def __init__(self, dim: int, heads: int, slices: int, periodic: tuple[bool, ...]):
        super().__init__()
        head_dim = dim // heads
        self.heads = heads
        self.features = PaddedConv(dim, dim, 3, periodic)
        self.places = PaddedConv(dim, dim, 3, periodic)
        self.slice = nn.Linear(head_dim, slices)
        self.temperature = nn.Parameter(torch.full((heads, 1, 1), 0.5))
        self.query = nn.Linear(head_dim, head_dim, bias=False)
        self.key = nn.Linear(head_dim, head_dim, bias=False)
        self.value = nn.Linear(head_dim, head_dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, *space, dim)` to the same."""
        cells = x.movedim(-1, 1)
        features, places = self._by_head(self.features(cells)), self._by_head(self.places(cells))
        temperature = self.temperature.clamp(COLDEST, HOTTEST)
        weights = (self.slice(places) / temperature).softmax(dim=-1)  # (B, heads, cells, G)
        size = weights.sum(dim=-2).unsqueeze(-1)
        tokens = weights.mT @ features / (size + 1e-5)  # (B, heads, G, head_dim)
        tokens = F.scaled_dot_product_attention(
            self.query(tokens), self.key(tokens), self.value(tokens)
        )
        result = (weights @ tokens).transpose(1, 2).flatten(2)
        return self.out(result).reshape(x.shape)

    def _by_head(self, x: Tensor) -> Tensor:
        """From `(B, dim, *space)` to `(B, heads, cells, head_dim)`."""
        return x.flatten(2).unflatten(1, (self.heads, -1)).mT


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    if isinstance(module, SliceAttention):
        nn.init.orthogonal_(module.slice.weight)  # children come first, so this stays


def _distances(shape: tuple[int, ...], periodic: tuple[bool, ...], reference: int) -> Tensor:
    """Distances of cells to the reference points, in extents, `(*shape, reference^ndim)`."""
    squares = torch.zeros((1,) * (2 * len(shape)), dtype=torch.float64)
    for axis, (n, wraps) in enumerate(zip(shape, periodic, strict=True)):
        centres = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        points = (torch.arange(reference, dtype=torch.float64) + 0.5) / reference
        apart = (centres[:, None] - points).abs()
        apart = torch.minimum(apart, 1 - apart) if wraps else apart
        layout = [1] * (2 * len(shape))
        layout[axis], layout[len(shape) + axis] = n, reference
        squares = squares + apart.square().reshape(layout)
    return squares.sqrt().flatten(len(shape))
