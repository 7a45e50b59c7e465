"""Small fixed-patch models, as other people write them."""

import math

import pytest
import torch
from torch import nn

CONVS = {1: (nn.Conv1d, nn.ConvTranspose1d), 2: (nn.Conv2d, nn.ConvTranspose2d),
         3: (nn.Conv3d, nn.ConvTranspose3d)}  # fmt: skip


class Plain(nn.Module):
    """Convolution, position embedding, one Transformer layer, and a decoder of either kind."""

    def __init__(self, cells, patch, *, linear, channels=2, width=16, axes="p1 p2 c"):
        super().__init__()
        ndim = len(cells)
        conv, transposed = CONVS[ndim]
        self.patch_size, self.channels, self.axes = patch, channels, axes.split()
        self.embed = conv(channels, width, patch, patch)
        num_tokens = math.prod(n // patch for n in cells)
        self.pos = nn.Parameter(torch.randn(1, num_tokens, width))
        self.block = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.linear = linear
        if linear:
            self.head = nn.Linear(width, patch**ndim * channels)
        else:
            self.head = transposed(width, channels, patch, patch)

    def forward(self, x):
        z = self.embed(x)
        grid = z.shape[2:]
        z = self.block(z.flatten(2).mT + self.pos)
        if not self.linear:
            return self.head(z.mT.unflatten(2, grid))
        return self.unfold(self.head(z), grid)

    def unfold(self, rows, grid):
        ndim, p = len(grid), self.patch_size
        sizes = [self.channels if axis == "c" else p for axis in self.axes]
        x = rows.unflatten(2, sizes).unflatten(1, grid)
        where = {name: 1 + ndim + i for i, name in enumerate(self.axes)}
        order = [0, where["c"]]
        for axis in range(ndim):
            order += [1 + axis, where[f"p{axis + 1}"]]
        x = x.permute(order)
        return x.reshape(*x.shape[:2], *(n * p for n in grid))


@pytest.fixture
def make_plain():
    def make(cells=(32, 48), patch=8, linear=True, **options):
        return Plain(cells, patch, linear=linear, **options).eval()

    return make
