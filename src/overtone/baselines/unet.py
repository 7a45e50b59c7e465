"""U-Nets: convolutions on ever coarser grids and back, with a bridge on every level.

The plain one, after Ronneberger, Fischer and Brox (2015), in the configuration of The Well's
benchmark with 3 x 3 kernels, batch normalisation and tanh:

    down: two convolutions, halve the grid by maximum, twice the channels;
    up: double the grid by a transposed convolution, join the bridge, two convolutions.

CNext-U-Net has the blocks of ConvNeXt (Liu et al., 2022) instead, which mix space and channels
apart, with a scaled residual:

    x + γ · W₂ gelu(W₁ norm(depthwise 7 x 7 (x))),   four times the channels in between.

Its configuration, and the way the stages are joined, are again those of The Well's benchmark:
blocks come before the change of grid, so the bridges join on all grids but the finest, and the
coarsest grid has the neck's blocks and the first up stage's.

A network of `levels` halvings commutes with shifts by 2^levels cells on periodic domains.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.baselines.layers import (
    CONVOLUTIONS,
    TRANSPOSED,
    ChannelNorm,
    PaddedConv,
    on_multiples,
)
from overtone.domain import Domain
from overtone.models.architecture import require_weights

NORMS: dict[int, type[nn.Module]] = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
POOLS: dict[int, type[nn.Module]] = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
KERNEL = 7
"""Cells along each axis that a ConvNeXt block's depthwise convolution reads."""
EXPANSION = 4
"""Channels within a ConvNeXt block's MLP, over those outside."""


class UNet(Network):
    """The U-Net, in one to three dimensions, on any grid and any boundaries.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        width: channels on the finest grid.
        levels: how often the grid is halved.
    """

    name = "unet"
    sizes: ClassVar[Sizes] = {
        "paper": {"width": 48, "levels": 4},
        "mini": {"width": 16, "levels": 3},
    }

    def __init__(self, *, domain: Domain, context: int, width: int, levels: int):
        super().__init__(domain, context, {"width": width, "levels": levels})
        periodic, ndim = domain.periodic, domain.ndim
        dim_in, dim_out = self.channels
        dims = [width * 2**level for level in range(levels + 1)]
        require_weights(3**ndim * dims[-1] ** 2)
        self.multiple = 2**levels
        self.pool = POOLS[ndim](2)
        self.down = nn.ModuleList(
            _two_convolutions(a, b, periodic) for a, b in zip([dim_in, *dims], dims, strict=False)
        )
        self.grow = nn.ModuleList(
            TRANSPOSED[ndim](2 * dim, dim, kernel_size=2, stride=2) for dim in reversed(dims[:-1])
        )
        self.up = nn.ModuleList(
            _two_convolutions(2 * dim, dim, periodic) for dim in reversed(dims[:-1])
        )
        self.head = CONVOLUTIONS[ndim](width, dim_out, kernel_size=1)

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`."""
        return on_multiples(self._levels, fields, self.multiple, self.domain.periodic)

    def _levels(self, x: Tensor) -> Tensor:
        bridges = []
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            bridges.append(x)
        bridges.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([grow(x), bridges.pop()], dim=1))
        return self.head(x)


class CNextUNet(Network):
    """The CNext-U-Net, in one to three dimensions, on any grid and any boundaries.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        width: channels on the finest grid.
        levels: how often the grid is halved.
        blocks: blocks of a stage.
        neck: blocks on the coarsest grid between down and up.
        layer_scale: γ at the start.
    """

    name = "cnext_unet"
    sizes: ClassVar[Sizes] = {
        "paper": {"width": 42, "levels": 4, "blocks": 2, "neck": 1, "layer_scale": 1e-6},
        "mini": {"width": 16, "levels": 3, "blocks": 2, "neck": 1, "layer_scale": 0.1},
    }

    def __init__(
        self,
        *,
        domain: Domain,
        context: int,
        width: int,
        levels: int,
        blocks: int,
        neck: int,
        layer_scale: float,
    ):
        options = {"width": width, "levels": levels, "blocks": blocks, "neck": neck}
        super().__init__(domain, context, options | {"layer_scale": layer_scale})
        periodic, ndim = domain.periodic, domain.ndim
        dim_in, dim_out = self.channels
        dims = [width * 2**level for level in range(levels + 1)]
        require_weights(2 * EXPANSION * neck * dims[-1] ** 2)
        self.multiple = 2**levels
        convolution, transposed = CONVOLUTIONS[ndim], TRANSPOSED[ndim]

        def stage(dim: int, count: int) -> nn.Sequential:
            return nn.Sequential(*(Block(dim, periodic, layer_scale) for _ in range(count)))

        def resample(kind: type[nn.Module], a: int, b: int) -> nn.Sequential:
            return nn.Sequential(ChannelNorm(a), kind(a, b, kernel_size=2, stride=2))

        self.first = PaddedConv(dim_in, width, 3, periodic)
        self.down = nn.ModuleList(stage(dim, blocks) for dim in dims[:-1])
        self.shrink = nn.ModuleList(resample(convolution, dim, 2 * dim) for dim in dims[:-1])
        self.neck = stage(dims[-1], neck)
        self.join = nn.ModuleList(convolution(2 * dim, dim, 1) for dim in reversed(dims[1:-1]))
        self.up = nn.ModuleList(stage(dim, blocks) for dim in reversed(dims[1:]))
        self.grow = nn.ModuleList(resample(transposed, dim, dim // 2) for dim in reversed(dims[1:]))
        self.head = PaddedConv(width, dim_out, 3, periodic)

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`."""
        return on_multiples(self._levels, fields, self.multiple, self.domain.periodic)

    def _levels(self, x: Tensor) -> Tensor:
        x = self.first(x)
        bridges = []
        for stage, shrink in zip(self.down, self.shrink, strict=True):
            bridges.append(x)
            x = shrink(self.run(stage, x))
        x = self.run(self.neck, x)
        for level, (stage, grow) in enumerate(zip(self.up, self.grow, strict=True)):
            if level:
                x = self.join[level - 1](torch.cat([x, bridges.pop()], dim=1))
            x = grow(self.run(stage, x))
        return self.head(x)


class Block(nn.Module):
    """A ConvNeXt block.

    Args:
        dim: channels.
        periodic: for each axis, whether it wraps.
        layer_scale: γ at the start.
    """

    def __init__(self, dim: int, periodic: tuple[bool, ...], layer_scale: float):
        super().__init__()
        self.depthwise = PaddedConv(dim, dim, KERNEL, periodic, groups=dim)
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, EXPANSION * dim), nn.GELU(), nn.Linear(EXPANSION * dim, dim)
        )
        self.gamma = nn.Parameter(torch.full((dim,), layer_scale))

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, dim, *space)` to the same."""
        y = self.mlp(self.norm(self.depthwise(x).movedim(1, -1)))
        return x + (self.gamma * y).movedim(-1, 1)


def _two_convolutions(dim_in: int, dim_out: int, periodic: tuple[bool, ...]) -> nn.Sequential:
    norm = NORMS[len(periodic)]
    # A bias would be taken away by the normalisation that follows.
    return nn.Sequential(
        PaddedConv(dim_in, dim_out, 3, periodic, bias=False),
        norm(dim_out),
        nn.Tanh(),
        PaddedConv(dim_out, dim_out, 3, periodic, bias=False),
        norm(dim_out),
        nn.Tanh(),
    )
