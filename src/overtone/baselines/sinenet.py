"""SineNet: several small U-Nets, one after the other, that move the features on step by step.

In a U-Net the bridges carry features of the present to the decoder of the future, which have moved
meanwhile. SineNet lets each of K U-shaped *waves* advance the features by a part of the step, so
that what each bridge joins is nearly in place (Zhang et al. 2024):

    x_0 = P(fields),    x_k = x_{k-1} + V_k(x_{k-1}),    change = Q(x_K).

A wave V averages down to ever coarser grids with a block of convolutions on each and interpolates
back up, joining the bridges. *Dual* means that coarse grids see both what the finer ones computed
and the features as they came: every block has a residual path, so a linear path leads from the
wave's input to each of its grids.

Written from the published description alone; the authors' repository (GPL) was not used. Where the
description leaves room (normalisation, interpolation, rounding), these are our choices, and
`growth` is set so that the model has the number of parameters that is published, which is also how
the authors choose it.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.baselines.layers import CONVOLUTIONS, PaddedConv, on_multiples, upsample
from overtone.domain import Domain
from overtone.errors import OvertoneError
from overtone.models.architecture import require_weights

MAX_GROWTH = 16
"""From one grid to the next; to the power of all levels it is still a number."""
AVERAGES = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


class SineNet(Network):
    """SineNet-dual, in one to three dimensions, on any grid and any boundaries.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        waves: K.
        width: channels on the finest grid.
        levels: how often a wave halves the grid.
        growth: channels of a grid over those of the next finer one.
    """

    name = "sinenet"
    sizes: ClassVar[Sizes] = {
        "paper": {"waves": 8, "width": 64, "levels": 4, "growth": 1.44},
        "mini": {"waves": 4, "width": 16, "levels": 3, "growth": 1.44},
    }

    def __init__(
        self, *, domain: Domain, context: int, waves: int, width: int, levels: int, growth: float
    ):
        options = {"waves": waves, "width": width, "levels": levels, "growth": growth}
        super().__init__(domain, context, options)
        dim_in, dim_out = self.channels
        if not 0 < growth < MAX_GROWTH:
            raise OvertoneError(f"growth is {growth}; expected more than 0, less than {MAX_GROWTH}")
        dims = [round(width * growth**level) for level in range(levels + 1)]
        require_weights(waves * 3**domain.ndim * max(dims) ** 2)
        self.multiple = 2**levels
        self.first = PaddedConv(dim_in, width, 3, domain.periodic)
        self.waves = nn.ModuleList(Wave(dims, domain.periodic) for _ in range(waves))
        self.head = PaddedConv(width, dim_out, 3, domain.periodic)

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`."""
        return on_multiples(self._waves, fields, self.multiple, self.domain.periodic)

    def _waves(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for wave in self.waves:
            x = x + self.run(wave, x)
        return self.head(x)


class Wave(nn.Module):
    """One U-shaped network.

    Args:
        dims: channels of each grid, finest first.
        periodic: for each axis, whether it wraps.
    """

    def __init__(self, dims: list[int], periodic: tuple[bool, ...]):
        super().__init__()
        self.periodic = periodic
        pairs = list(itertools.pairwise(dims))
        self.down = nn.ModuleList(Block(fine, coarse, periodic) for fine, coarse in pairs)
        self.up = nn.ModuleList(
            Block(coarse + fine, fine, periodic) for fine, coarse in reversed(pairs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, dims[0], *space)` to the same."""
        bridges = []
        for block in self.down:
            bridges.append(x)
            x = block(AVERAGES[len(self.periodic)](x, 2))
        for block in self.up:
            x = block(torch.cat([upsample(x, self.periodic), bridges.pop()], dim=1))
        return x


class Block(nn.Module):
    """Two convolutions with a residual path.

    Args:
        dim_in: channels read.
        dim_out: channels written.
        periodic: for each axis, whether it wraps.
    """

    def __init__(self, dim_in: int, dim_out: int, periodic: tuple[bool, ...]):
        super().__init__()
        self.convolutions = nn.Sequential(
            PaddedConv(dim_in, dim_out, 3, periodic),
            nn.GroupNorm(1, dim_out),
            nn.GELU(),
            PaddedConv(dim_out, dim_out, 3, periodic),
            nn.GroupNorm(1, dim_out),
            nn.GELU(),
        )
        self.residual = CONVOLUTIONS[len(periodic)](dim_in, dim_out, kernel_size=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, dim_in, *space)` to `(B, dim_out, *space)`."""
        return self.residual(x) + self.convolutions(x)
