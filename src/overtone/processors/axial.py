"""Axial attention: along each grid axis in turn, O(N√N) on a square grid.

The axes share queries, keys and values, and their results are averaged, so that 1D, 2D and 3D use
the same weights and none is ever idle. An axis with one token has nothing to attend to and is left
out of the average: on a grid one token wide, axial attention is full attention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from overtone.grid import PatchGrid
from overtone.processors.attention import Heads, attend


class AxialAttention(Heads):
    """Attention along each axis of a frame, averaged."""

    def forward(self, x: Tensor, rotation: Tensor, grid: PatchGrid) -> Tensor:
        """Mix the tokens of each frame.

        Args:
            x: `(B, T, *grid, dim)`.
            rotation: `(*grid, head_dim / 2, 2)`.
            grid: the patch grid; all that matters of it is in the rotation.
        """
        q, (k, v) = self.queries(x, rotation), self.keys_values(x, rotation)
        grid_axes = range(2, x.dim() - 1)
        axes = [axis for axis in grid_axes if x.shape[axis] > 1] or [2]
        parts = [attend(q, k, v, axis).reshape(x.shape) for axis in axes]
        return self.out(torch.stack(parts).mean(dim=0) if len(parts) > 1 else parts[0])
