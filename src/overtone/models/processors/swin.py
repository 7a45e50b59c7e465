"""Shifted windows: attention inside windows of tokens, O(N · window), moved in every other block.

Each axis of `n` tokens is cut into the fewest windows of at most `window` tokens, of equal size
`ceil(n / count)`, so that little is padded. Odd blocks move the cut by half a window, so that
neighbours on two sides of a cut meet in the next block.

- Periodic axis: the cut moves round the circle. The tokens are rolled, and a window that spans the
  seam is a window like any other.
- Other axes: the cut moves, and the windows at the two ends are smaller.

Where windows are not full they are padded with ghost tokens, which nobody sees: they are masked as
keys, and their own results are dropped. An axis with a single window is not moved. Positions are
rotary, as everywhere, so windows of any size share their weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.grid import PatchGrid
from overtone.models.processors.attention import Heads, softmax_attention
from overtone.ops.constants import constant
from overtone.ops.padding import take


@dataclass(frozen=True)
class Cut:
    """How one axis is cut into windows.

    Attributes:
        length: tokens along the axis.
        start: first token of the first window; negative where it begins with ghosts.
        size: tokens of a window.
        count: windows.
        periodic: whether the axis wraps.
    """

    length: int
    start: int
    size: int
    count: int
    periodic: bool

    @classmethod
    def of(cls, length: int, window: int, *, periodic: bool, shifted: bool) -> Cut:
        """Cut an axis into windows of at most `window` tokens, moved by half of one if shifted."""
        count = math.ceil(length / window)
        size = math.ceil(length / count)
        start = size // 2 if shifted and count > 1 else 0
        if start and not periodic:
            start -= size
            count = math.ceil((length - start) / size)
        return cls(length, start, size, count, periodic)

    @property
    def real(self) -> tuple[int, ...]:
        """For each place in the windows' order 1 where there is a token, 0 for a ghost."""
        first = 0 if self.periodic else -self.start
        return tuple(int(first <= i < first + self.length) for i in range(self.count * self.size))

    def open(self, x: Tensor, dim: int) -> Tensor:
        """From `length` tokens along a dimension to the `count · size` places of the windows."""
        places = self.count * self.size
        if not self.periodic:
            return take(x, dim, (self.start, self.start + places), periodic=False)
        x = take(x, dim, (self.start, self.start + self.length), periodic=True)
        return take(x, dim, (0, places), periodic=False)

    def close(self, x: Tensor, dim: int) -> Tensor:
        """The inverse of `open`."""
        if not self.periodic:
            return x.narrow(dim, -self.start, self.length)
        x = x.narrow(dim, 0, self.length)
        return take(x, dim, (-self.start, self.length - self.start), periodic=True)


class WindowAttention(Heads):
    """Attention inside windows of a frame.

    Args:
        dim, num_heads, scale: as in `Heads`.
        window: most tokens of a window along an axis.
        shifted: whether the windows are moved by half of their size.
    """

    def __init__(self, dim: int, num_heads: int, *, scale: float, window: int, shifted: bool):
        super().__init__(dim, num_heads, scale=scale)
        self.window = window
        self.shifted = shifted

    def forward(self, x: Tensor, rotation: Tensor, grid: PatchGrid) -> Tensor:
        """Mix the tokens of each window.

        Args:
            x: `(B, T, *grid.shape, dim)`.
            rotation: `(*grid.shape, head_dim / 2, 2)`.
            grid: the patch grid, whose periodic axes wrap.
        """
        cuts = tuple(
            Cut.of(length, self.window, periodic=wraps, shifted=self.shifted)
            for length, wraps in zip(grid.shape, grid.domain.periodic, strict=True)
        )
        q, (k, v) = self.queries(x, rotation), self.keys_values(x, rotation)
        q, k, v = (_to_windows(part, cuts) for part in (q, k, v))
        y = softmax_attention(q, k, v, self._mask(cuts, v))
        return self.out(_from_windows(y, cuts, x.shape, self.num_heads))

    def _mask(self, cuts: tuple[Cut, ...], like: Tensor) -> Tensor | None:
        """Which keys are seen, `(1, windows · heads, 1, tokens)`; None if there are no ghosts."""
        if all(cut.count * cut.size == cut.length for cut in cuts):
            return None
        mask = constant(_real_tokens, (cuts,), like.device, torch.bool)
        return mask.repeat_interleave(self.num_heads, dim=0)[None, :, None, :]


def _real_tokens(cuts: tuple[Cut, ...]) -> Tensor:
    """1 for the tokens and 0 for the ghosts of every window, `(windows, tokens)`."""
    real = torch.ones((), dtype=torch.float64)
    for cut in cuts:
        real = real[..., None] * torch.tensor(cut.real, dtype=torch.float64)
    return _split(real, 0, cuts).flatten(0, len(cuts) - 1).flatten(1)


def _split(x: Tensor, first: int, cuts: tuple[Cut, ...]) -> Tensor:
    """Axes of places from `first` on into axes of windows, then axes of tokens in a window."""
    for i, cut in enumerate(cuts):
        x = x.unflatten(first + 2 * i, (cut.count, cut.size))
    windows = [first + 2 * i for i in range(len(cuts))]
    return x.movedim(windows, list(range(first, first + len(cuts))))


def _to_windows(x: Tensor, cuts: tuple[Cut, ...]) -> Tensor:
    """`(B, T, *grid, heads, head_dim)` to `(B · T, windows · heads, tokens, head_dim)`."""
    for axis, cut in enumerate(cuts):
        x = cut.open(x, axis + 2)
    x = _split(x.flatten(0, 1), 1, cuts).movedim(-2, 1 + len(cuts))
    return x.flatten(1, 1 + len(cuts)).flatten(2, -2)


def _from_windows(y: Tensor, cuts: tuple[Cut, ...], shape: torch.Size, num_heads: int) -> Tensor:
    """`(B · T, windows · heads, tokens, head_dim)` to the tokens' `shape`, `(B, T, *grid, dim)`."""
    counts, sizes = [cut.count for cut in cuts], [cut.size for cut in cuts]
    y = y.reshape(*shape[:2], *counts, num_heads, *sizes, y.shape[-1])
    ndim = len(cuts)
    order = [axis for i in range(ndim) for axis in (2 + i, 3 + ndim + i)]
    y = y.permute(0, 1, *order, 2 + ndim, 3 + 2 * ndim)
    y = y.reshape(*shape[:2], *(c * s for c, s in zip(counts, sizes, strict=True)), shape[-1])
    for axis, cut in enumerate(cuts):
        y = cut.close(y, axis + 2)
    return y
