"""Factorised Fourier neural operator: one Fourier transform for each axis instead of one for all.

    x <- x + FF( Σ_axis  F_axis⁻¹ ( W_axis · lowest modes of F_axis(x) ) ),

with a complex matrix for every kept mode of every axis, and FF two pointwise layers with weight
normalisation. The output is read from the last layer's FF. (Tran, Mathews, Xie and Ong 2023.)

Fourier modes suit periodic axes. Other axes are padded with a few zero cells above, as the
authors do, and their coordinates are given to the network; on periodic axes it has no coordinates,
and so commutes with shifts by any number of cells.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.baselines.layers import coordinates
from overtone.domain import Domain
from overtone.models.architecture import require_weights
from overtone.ops.constants import full_precision
from overtone.ops.padding import take

PADDING = 8
"""Zero cells above a non-periodic axis."""
HEAD_DIM = 128


class FFNO(Network):
    """The factorised Fourier neural operator, in one to three dimensions.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        modes: Fourier modes kept along each axis, from 0 up; on a coarse grid those it has.
        layers: number of layers.
        width: channels.
        expansion: channels between FF's two layers, in units of `width`.
    """

    name = "ffno"
    sizes: ClassVar[Sizes] = {
        "paper": {"modes": 32, "layers": 4, "width": 96, "expansion": 4},
        "mini": {"modes": 12, "layers": 4, "width": 48, "expansion": 4},
    }
    assumes_periodic = True

    def __init__(
        self, *, domain: Domain, context: int, modes: int, layers: int, width: int, expansion: int
    ):
        options = {"modes": modes, "layers": layers, "width": width, "expansion": expansion}
        super().__init__(domain, context, options)
        require_weights(2 * layers * width**2 * (domain.ndim * modes + expansion))
        dim_in, dim_out = self.channels
        self.bounded = tuple(axis for axis, wraps in enumerate(domain.periodic) if not wraps)
        self.lift = WeightNormLinear(dim_in + len(self.bounded), width)
        self.layers = nn.ModuleList(
            Layer(width, domain.ndim, modes, expansion) for _ in range(layers)
        )
        self.head = nn.Sequential(
            WeightNormLinear(width, HEAD_DIM), nn.ReLU(), WeightNormLinear(HEAD_DIM, dim_out)
        )

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`."""
        shape = fields.shape[2:]
        where = coordinates(tuple(shape), self.bounded, fields)
        x = self.lift(torch.cat([fields, where], dim=1).movedim(1, -1))
        for axis in self.bounded:
            x = take(x, 1 + axis, (0, shape[axis] + PADDING), periodic=False)
        step = x
        for layer in self.layers:
            step = self.run(layer, x)
            x = x + step
        for axis in self.bounded:
            step = step.narrow(1 + axis, 0, shape[axis])
        return self.head(step).movedim(-1, 1)


class Layer(nn.Module):
    """Mixing along each axis, then FF.

    Args:
        dim: channels.
        ndim: number of axes.
        modes: Fourier modes kept along each axis.
        expansion: of FF.
    """

    def __init__(self, dim: int, ndim: int, modes: int, expansion: int):
        super().__init__()
        self.modes = modes
        # Real and imaginary part last: real parameters can be cast, saved and decayed like others.
        scale = (2 * dim * modes) ** -0.5
        self.weights = nn.ParameterList(
            nn.Parameter(scale * torch.randn(dim, dim, modes, 2)) for _ in range(ndim)
        )
        self.feed_forward = nn.Sequential(
            WeightNormLinear(dim, expansion * dim),
            nn.ReLU(),
            WeightNormLinear(expansion * dim, dim),
        )

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, *space, dim)` to the same."""
        with full_precision(x):
            wide = x if x.dtype == torch.float64 else x.float()
            mixed = torch.zeros_like(wide)
            for dim, weight in enumerate(self.weights, start=1):
                mixed = mixed + mix_axis(wide, dim, weight)
        return self.feed_forward(mixed.to(x.dtype))


def mix_axis(x: Tensor, dim: int, weight: Tensor) -> Tensor:
    """Multiply the lowest Fourier modes along one axis by a matrix each; the others become zero.

    Args:
        x: `(B, *space, dim_in)`.
        dim: which dimension of x.
        weight: `(dim_in, dim_out, modes, 2)`, real and imaginary parts.

    Returns:
        `(B, *space, dim_out)`.
    """
    n = x.shape[dim]
    modes = torch.fft.rfft(x, dim=dim, norm="ortho")
    kept = min(weight.shape[2], modes.shape[dim])
    matrices = torch.view_as_complex(weight[:, :, :kept].contiguous())
    low = modes.narrow(dim, 0, kept).movedim(dim, -2)
    low = torch.einsum("...ki,iok->...ko", low, matrices).movedim(-2, dim)
    return torch.fft.irfft(low, n=n, dim=dim, norm="ortho")


class WeightNormLinear(nn.Linear):
    """A linear layer whose rows have a learned length and direction.

    Args:
        dim_in: channels read.
        dim_out: channels written.
    """

    def __init__(self, dim_in: int, dim_out: int):
        super().__init__(dim_in, dim_out)
        self.length = nn.Parameter(self.weight.detach().norm(dim=1, keepdim=True))

    def forward(self, input: Tensor) -> Tensor:
        """From `(…, dim_in)` to `(…, dim_out)`."""
        direction = self.weight / self.weight.norm(dim=1, keepdim=True)
        return F.linear(input, self.length * direction, self.bias)
