"""U-Net: convolutions on ever coarser grids and back, with a bridge on every level.

    down: two convolutions, halve the grid by maximum, twice the channels;
    up: double the grid by a transposed convolution, join the bridge, two convolutions.

The idea is Ronneberger, Fischer and Brox (2015); the configuration that of The Well's benchmark:
3 x 3 kernels, batch normalisation, tanh. A network of `levels` halvings commutes with shifts by
2^levels cells on periodic domains.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.baselines.layers import CONVOLUTIONS, TRANSPOSED, PaddedConv, on_multiples
from overtone.domain import Domain

NORMS: dict[int, type[nn.Module]] = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
POOLS: dict[int, type[nn.Module]] = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}


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
