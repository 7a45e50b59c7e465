"""Full spatial attention: every token of a frame sees every other, O(N²)."""

from __future__ import annotations

from torch import Tensor

from overtone.grid import PatchGrid
from overtone.processors.attention import Heads, attend


class FullAttention(Heads):
    """Attention over all tokens of a frame."""

    def forward(self, x: Tensor, rotation: Tensor, grid: PatchGrid) -> Tensor:
        """Mix the tokens of each frame.

        Args:
            x: `(B, T, *grid, dim)`.
            rotation: `(*grid, head_dim / 2, 2)`.
            grid: the patch grid; all that matters of it is in the rotation.
        """
        q, (k, v) = self.queries(x, rotation), self.keys_values(x, rotation)
        y = attend(*(part.flatten(2, -3) for part in (q, k, v)), axis=2)
        return self.out(y.reshape(x.shape))
