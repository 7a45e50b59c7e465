"""Spectral mixing: a small network that acts on the Fourier modes of a frame, O(N log N).

After AFNO: with `F` the Fourier transform over the token grid,

    y = F⁻¹ shrink(W₂ · relu(W₁ · F x))

where `W₁` and `W₂` are complex matrices, the same for every mode and block-diagonal in the
channels; relu and soft-shrinkage act on real and imaginary parts. A projection then mixes the
blocks. Nothing here depends on the number of tokens, so it works on any grid and at any patch:

- Modes are Fourier *coefficients* (the forward transform divides by N), so that a smooth field has
  the same ones at every patch, and so has the shrinkage the same meaning.
- There are no biases: a number added to every mode is a spike at one token.
- A transform assumes that axes are periodic. An axis that is not is first continued by its mirror
  image, which joins its ends without a jump, and cut again behind; that doubles its tokens.

It knows places absolutely, from the grid's first token, since relu does not commute with the phases
that a shift multiplies modes by. So, unlike attention, it does not commute with shifts of tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.grid import PatchGrid
from overtone.models.processors.attention import ScaledLinear
from overtone.ops.constants import full_precision

SHRINKAGE = 1e-3
"""What is taken off a mode's parts; tokens that enter have a root mean square near 1."""


class SpectralMixing(nn.Module):
    """A complex, block-diagonal, two-layer network on the modes of a frame.

    Args:
        dim: width of a token, a multiple of `mode_blocks`.
        mode_blocks: number of blocks of channels.
        scale: LayerScale of the output at initialisation.
    """

    def __init__(self, dim: int, *, mode_blocks: int, scale: float):
        super().__init__()
        block_dim = dim // mode_blocks
        shape = (2, mode_blocks, block_dim, block_dim)
        # Each product adds two parts up, and relu takes half of the power: the modes keep theirs.
        self.inward = nn.Parameter(torch.randn(shape) * block_dim**-0.5)
        self.outward = nn.Parameter(torch.randn(shape) * (2 * block_dim) ** -0.5)
        self.out = ScaledLinear(dim, dim, scale=scale)

    def forward(self, x: Tensor, rotation: Tensor, grid: PatchGrid) -> Tensor:
        """Mix the tokens of each frame.

        Args:
            x: `(B, T, *grid.shape, dim)`.
            rotation: not used; modes know where they are.
            grid: the patch grid, whose axes that do not wrap are mirrored.
        """
        axes = tuple(range(2, x.dim() - 1))
        with full_precision(x):
            # Transforms know no half precision.
            y = x.to(torch.promote_types(x.dtype, torch.float32))
            for axis, wraps in zip(axes, grid.domain.periodic, strict=True):
                y = y if wraps else torch.cat([y, y.flip(axis)], dim=axis)
            lengths = [y.shape[axis] for axis in axes]
            modes = self._transfer(torch.fft.rfftn(y, dim=axes, norm="forward"))
            y = torch.fft.irfftn(modes, s=lengths, dim=axes, norm="forward")
        for axis in axes:
            y = y.narrow(axis, 0, x.shape[axis])
        return self.out(y.to(x.dtype))

    def _transfer(self, modes: Tensor) -> Tensor:
        """Complex modes `(..., dim)` to the same."""
        num_blocks = self.inward.shape[1]
        parts = torch.cat([modes.real.unflatten(-1, (num_blocks, -1)),
                           modes.imag.unflatten(-1, (num_blocks, -1))], dim=-1)  # fmt: skip
        hidden = F.relu(_multiply(parts, self.inward))
        parts = F.softshrink(_multiply(hidden, self.outward), SHRINKAGE)
        real, imag = (part.flatten(-2) for part in parts.chunk(2, dim=-1))
        return torch.complex(real, imag)


def _multiply(parts: Tensor, weight: Tensor) -> Tensor:
    """Complex products as one real product.

    Args:
        parts: real, then imaginary parts, `(..., blocks, 2 · in)`.
        weight: real and imaginary parts, `(2, blocks, in, out)`.

    Returns:
        `(..., blocks, 2 · out)`.
    """
    real, imag = weight.to(parts.dtype)
    matrix = torch.cat([torch.cat([real, imag], -1), torch.cat([-imag, real], -1)], -2)
    flat = parts.flatten(0, -3).transpose(0, 1)
    return (flat @ matrix).transpose(0, 1).unflatten(0, parts.shape[:-2])
