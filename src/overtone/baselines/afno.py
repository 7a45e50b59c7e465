"""Adaptive Fourier neural operator at a fixed patch: Fourier modes in the place of attention.

Patches become tokens; a block mixes tokens by one small complex network that all Fourier modes
share, block-diagonal in the channels, and then mixes channels:

    x <- x + F⁻¹ S(W₂ gelu(W₁ F(norm(x)))),    x <- x + MLP(norm(x)),

with gelu on real and imaginary parts and S soft shrinkage, which sets small modes to zero. (Guibas
et al. 2021; the configuration is that of The Well's benchmark.) Learned position embeddings are
interpolated to other token grids. A shift of the fields turns each mode's phase, and what is done
to real and imaginary parts apart does not turn with it: other than convolutions, AFNO does not
commute with shifts on a periodic domain, not even by whole patches and without positions.

The Fourier transform joins opposite sides of the token grid on every axis, periodic or not; the
authors don't pad, and neither do we. Grids that the patch does not divide are padded and cropped.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.baselines.layers import CONVOLUTIONS, TRANSPOSED
from overtone.domain import Domain, PerAxis, per_axis
from overtone.errors import OvertoneError, PatchError
from overtone.grid import PatchGrid
from overtone.models.architecture import require_weights
from overtone.ops.constants import full_precision
from overtone.ops.padding import follow, take

SHRINKAGE = 0.01
"""Modes smaller than this are set to zero, larger ones moved towards it."""
WEIGHT_SCALE = 0.02
"""Standard deviation of spectral weights and position embeddings at the start."""
INTERPOLATION = {1: "linear", 2: "bilinear", 3: "trilinear"}


class AFNO(Network):
    """The adaptive Fourier neural operator, in one to three dimensions.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        patch: cells of a token along every axis.
        width: channels.
        blocks: number of blocks.
        diagonal_blocks: groups of channels that the spectral weights keep apart.
        expansion: channels inside the MLP, in units of `width`.
    """

    name = "afno_net"
    sizes: ClassVar[Sizes] = {
        "paper": {"patch": 16, "width": 384, "blocks": 14, "diagonal_blocks": 8, "expansion": 4},
        "mini": {"patch": 8, "width": 96, "blocks": 4, "diagonal_blocks": 4, "expansion": 4},
    }
    assumes_periodic = True
    patched = True

    def __init__(
        self,
        *,
        domain: Domain,
        context: int,
        patch: int,
        width: int,
        blocks: int,
        diagonal_blocks: int,
        expansion: int,
    ):
        options = {"patch": patch, "width": width, "blocks": blocks}
        options |= {"diagonal_blocks": diagonal_blocks, "expansion": expansion}
        super().__init__(domain, context, options, patch)
        dim_in, dim_out = self.channels
        require_weights(2 * blocks * expansion * width**2 + patch**domain.ndim * dim_in * width)
        tokens = PatchGrid.lay(domain, patch).shape
        self.encoder = CONVOLUTIONS[domain.ndim](dim_in, width, patch, stride=patch)
        self.position = nn.Parameter(WEIGHT_SCALE * torch.randn(1, width, *tokens))
        self.blocks = nn.ModuleList(Block(width, diagonal_blocks, expansion) for _ in range(blocks))
        self.decoder = TRANSPOSED[domain.ndim](width, dim_out, patch, stride=patch)

    def lay(
        self, domain: Domain, patch: PerAxis, shift: PerAxis, allow_untrained: bool
    ) -> PatchGrid:
        """The grid of its one patch; any other is refused."""
        own = self.options["patch"]
        if per_axis(patch, domain.ndim, "patch") != per_axis(own, domain.ndim, "patch"):
            raise PatchError(
                f"patch {patch} was not trained for; '{self.name}' has the fixed patch {own}. "
                "Choose that, or build it with another"
            )
        return PatchGrid.lay(domain, own, shift)

    def call_network(self, fields: Tensor, grid: PatchGrid) -> Tensor:
        """Run the network on the cells that the grid covers, give back the domain's."""
        fields = follow(fields, grid)
        for dim, (start, count, wraps) in enumerate(_axes(grid), start=2):
            span = (start, start + count * grid.patch[dim - 2])
            fields = take(fields, dim, span, periodic=wraps, ghosts="edge")
        result = self.network(fields)
        for dim, (start, _, wraps) in enumerate(_axes(grid), start=2):
            n = grid.domain.shape[dim - 2]
            # A grid that starts at cell 3 of a ring has cell 0 three places before its end.
            result = result.narrow(dim, 0 if wraps else -start, n)
            if wraps:
                result = take(result, dim, (-start, n - start), periodic=True)
        return follow(result, grid, back=True)

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`; the grid is a multiple of the patch."""
        x = self.encoder(fields)
        x = (x + self._position(tuple(x.shape[2:]))).movedim(1, -1)
        for block in self.blocks:
            x = self.run(block, x)
        return self.decoder(x.movedim(-1, 1))

    def _position(self, tokens: tuple[int, ...]) -> Tensor:
        if tuple(self.position.shape[2:]) == tokens:
            return self.position
        return F.interpolate(self.position, size=tokens, mode=INTERPOLATION[len(tokens)])


class Block(nn.Module):
    """Spectral mixing of tokens, then an MLP, each with its residual.

    Args:
        dim: channels.
        diagonal_blocks: of the spectral weights.
        expansion: of the MLP.
    """

    def __init__(self, dim: int, diagonal_blocks: int, expansion: int):
        super().__init__()
        self.norm_space = nn.LayerNorm(dim, eps=1e-6)
        self.mix = SpectralMixing(dim, diagonal_blocks)
        self.norm_channels = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(dim, expansion * dim), nn.GELU(), nn.Linear(expansion * dim, dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, *tokens, dim)` to the same."""
        x = x + self.mix(self.norm_space(x))
        return x + self.mlp(self.norm_channels(x))


class SpectralMixing(nn.Module):
    """One complex two-layer network for all Fourier modes, block-diagonal in the channels.

    Args:
        dim: channels.
        diagonal_blocks: groups of channels that are kept apart.
    """

    def __init__(self, dim: int, diagonal_blocks: int):
        super().__init__()
        if dim % diagonal_blocks:
            raise OvertoneError(
                f"width {dim} does not split into {diagonal_blocks} diagonal blocks; choose a "
                f"multiple of {diagonal_blocks}"
            )
        size = dim // diagonal_blocks
        shape = (2, diagonal_blocks, size, size, 2)
        self.weight = nn.Parameter(WEIGHT_SCALE / 2**0.5 * torch.randn(shape))

    def forward(self, x: Tensor) -> Tensor:
        """From `(B, *tokens, dim)` to the same."""
        axes = tuple(range(1, x.dim() - 1))
        with full_precision(x):
            wide = x if x.dtype == torch.float64 else x.float()
            first, second = torch.view_as_complex(self.weight.to(wide.dtype))
            modes = torch.fft.rfftn(wide, dim=axes, norm="ortho")
            modes = modes.unflatten(-1, (first.shape[0], -1))
            modes = torch.einsum("...bi,bio->...bo", modes, first)
            modes = torch.complex(F.gelu(modes.real), F.gelu(modes.imag))
            modes = torch.einsum("...bi,bio->...bo", modes, second).flatten(-2)
            modes = torch.view_as_complex(F.softshrink(torch.view_as_real(modes), SHRINKAGE))
            mixed = torch.fft.irfftn(modes, s=x.shape[1:-1], dim=axes, norm="ortho")
        return mixed.to(x.dtype)


def _axes(grid: PatchGrid) -> list[tuple[int, int, bool]]:
    return list(zip(grid.start, grid.shape, grid.domain.periodic, strict=True))
