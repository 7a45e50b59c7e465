"""Refinement: what a patch decodes, corrected cell by cell.

A token holds far fewer numbers than its patch has cells, so what is finer passes it by, also what
the last frames show plainly, such as a front that moves on. Three small convolutions look at the
cells around each, in the decoded change, the last frame and the change before it, and add what is
missing:

    change ← change + convolutions(change, frame, change before)

They do not know of patches, so one set of weights serves all of them, and they commute with shifts.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.domain import Domain
from overtone.ops.padding import take
from overtone.tokenizers.convolution import OUTPUT_GAIN

LAYERS = 3
REACH = LAYERS
"""Cells that a correction looks away from its own, along each axis: one for each 3-cell kernel."""


class Refinement(nn.Module):
    """Corrects changes by the cells around.

    Args:
        domain: gives fields, number of axes and boundaries.
        width: channels between the convolutions.
    """

    def __init__(self, domain: Domain, width: int):
        super().__init__()
        kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[domain.ndim - 1]
        fields = len(domain.fields)
        widths = [3 * fields, *(width,) * (LAYERS - 1), fields]
        made = [kind(n, m, kernel_size=3) for n, m in pairwise(widths)]
        self.convolutions = nn.ModuleList(made)
        # At first it hardly corrects; but every weight has a gradient.
        nn.init.normal_(made[-1].weight, std=OUTPUT_GAIN * (3**domain.ndim * width) ** -0.5)
        nn.init.zeros_(made[-1].bias)  # pyright: ignore[reportArgumentType]

    def forward(self, change: Tensor, frame: Tensor, before: Tensor, domain: Domain) -> Tensor:
        """Corrected changes.

        Args:
            change: as decoded, `(B, T, C, *space)`.
            frame: the normalised frames that they follow, of the same shape.
            before: the changes that led to those, in the unit of `change`.
            domain: says which axes wrap; beyond the others the outermost cells are repeated.
        """
        x = torch.cat([change, frame, before], dim=2).flatten(0, 1)
        for axis, (n, wraps) in enumerate(zip(domain.shape, domain.periodic, strict=True)):
            x = take(x, axis + 2, (-REACH, n + REACH), periodic=wraps, ghosts="edge")
        for i, convolve in enumerate(self.convolutions):
            x = convolve(x if i == 0 else F.gelu(x))
        return change + x.unflatten(0, change.shape[:2])
