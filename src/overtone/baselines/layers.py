"""Layers that several baselines are made of, in one to three dimensions.

Convolutions pad by the boundaries of the domain: circularly along periodic axes, with zeros beyond
walls and open sides, so that zeros mark where the domain ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from overtone.ops.constants import constant
from overtone.ops.padding import take

CONVOLUTIONS: dict[int, type[nn.Module]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED: dict[int, type[nn.Module]] = {
    1: nn.ConvTranspose1d,
    2: nn.ConvTranspose2d,
    3: nn.ConvTranspose3d,
}

CUBIC = (-0.0234375, 0.2265625, 0.8671875, -0.0703125)
"""Keys' cubic convolution (a = -1/2) a quarter of a cell below a centre: its four nearest cells."""


class PaddedConv(nn.Module):
    """A convolution that keeps the grid, padded by the domain's boundaries.

    Args:
        dim_in: channels read.
        dim_out: channels written.
        kernel: odd number of cells along every axis.
        periodic: for each axis, whether it wraps.
        groups: as in `torch.nn.Conv2d`.
        bias: whether there is one.
    """

    def __init__(
        self,
        dim_in: int,
        dim_out: int,
        kernel: int,
        periodic: tuple[bool, ...],
        *,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__()
        self.reach = kernel // 2
        self.periodic = periodic
        convolution = CONVOLUTIONS[len(periodic)]
        self.conv = convolution(dim_in, dim_out, kernel, groups=groups, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, dim_in, *space)` to `(B, dim_out, *space)`."""
        for dim, wraps in enumerate(self.periodic, start=2):
            x = take(x, dim, (-self.reach, x.shape[dim] + self.reach), periodic=wraps)
        return self.conv(x)


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of `(B, C, *space)`, cell by cell."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalised `input`, in the same shape."""
        return super().forward(input.movedim(1, -1)).movedim(-1, 1)


def on_multiples(
    network: Callable[[Tensor], Tensor], x: Tensor, multiple: int, periodic: tuple[bool, ...]
) -> Tensor:
    """Run a network that needs a grid of multiples on any grid: pad above, run, crop.

    Args:
        network: from `(B, C, *space)` to `(B, C', *space)`.
        x: `(B, C, *space)`.
        multiple: what the network's grid must be divisible by along every axis.
        periodic: for each axis, whether the padding wraps or repeats the outermost cell.
    """
    shape = x.shape[2:]
    for dim, (n, wraps) in enumerate(zip(shape, periodic, strict=True), start=2):
        span = (0, math.ceil(n / multiple) * multiple)
        x = take(x, dim, span, periodic=wraps, ghosts="edge")
    result = network(x)
    for dim, n in enumerate(shape, start=2):
        result = result.narrow(dim, 0, n)
    return result


def upsample(x: Tensor, periodic: tuple[bool, ...]) -> Tensor:
    """Twice as many cells along every axis, by cubic interpolation between cell centres.

    Args:
        x: `(B, C, *space)`.
        periodic: for each axis, whether it wraps; elsewhere the outermost cell is repeated.
    """
    for dim, wraps in enumerate(periodic, start=2):
        n = x.shape[dim]
        padded = take(x, dim, (-2, n + 2), periodic=wraps, ghosts="edge")
        # The lower half of cell i lies a quarter below its centre, the upper half mirrors it.
        lower = sum(w * padded.narrow(dim, j, n) for j, w in enumerate(CUBIC))
        upper = sum(w * padded.narrow(dim, 4 - j, n) for j, w in enumerate(CUBIC))
        x = torch.stack([torch.as_tensor(lower), torch.as_tensor(upper)], dim=dim + 1)
        x = x.flatten(dim, dim + 1)
    return x


def coordinates(shape: tuple[int, ...], axes: tuple[int, ...], like: Tensor) -> Tensor:
    """Cell centres as fractions of the extent, one channel for each of `axes`.

    Args:
        shape: number of cells along each axis.
        axes: which coordinates are wanted.
        like: `(B, C, *shape)`, gives batch, device and dtype.

    Returns:
        `(B, len(axes), *shape)`.
    """
    table = constant(_coordinates, (shape, axes), like.device, like.dtype)
    return table.expand(like.shape[0], -1, *shape)


def _coordinates(shape: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    centres = [(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in shape]
    full = torch.stack(torch.meshgrid(*centres, indexing="ij"))
    return full[list(axes)]
