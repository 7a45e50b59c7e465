"""Relative-position bias tables whose window is the whole token grid.

Such a table (Swin, BEiT) has one row for each displacement between two tokens of a window of
`w` tokens along an axis, `-(w - 1) … w - 1`, and an index that tells each pair of tokens its row.

Where the window is a part of the grid (Swin), a patch changes the number of windows and not their
size: nothing to do. Where it is the whole grid (BEiT), the window grows with the number of tokens.
A displacement of `d'` tokens at one patch is `d = d' · w / w'` tokens at the base, the same
distance in the domain; the table is interpolated linearly there, and the index made anew. Rows at
the end that stand for pairs with a class token stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from overtone.flexify.patching import Patching
from overtone.flexify.sizes import StoredCount, StoredGrid
from overtone.flexify.swap import View
from overtone.ops.constants import constant

CLASS_ROWS = 3
"""Rows for class to token, token to class, and class to class."""


@dataclass(frozen=True)
class BiasTable:
    """View of a table `(rows, heads)`."""

    window: tuple[int, ...]

    def __call__(self, table: Tensor, patching: Patching) -> Tensor:
        """The table for the window of the patch in use."""
        sizes = [2 * w - 1 for w in self.window]
        rows, rest = table[: math.prod(sizes)], table[math.prod(sizes) :]
        rows = rows.unflatten(0, sizes)
        for axis, (old, new) in enumerate(zip(self.window, patching.tokens, strict=True)):
            matrix = constant(displacement_matrix, (old, new), table.device, table.dtype)
            rows = (rows.movedim(axis, -1) @ matrix.T).movedim(-1, axis)
        return torch.cat([rows.flatten(0, -2), rest])


@dataclass(frozen=True)
class BiasIndex:
    """View of an index `(tokens, tokens)`."""

    class_token: bool

    def __call__(self, index: Tensor, patching: Patching) -> Tensor:
        """The index for the window of the patch in use."""
        arguments = (patching.tokens, self.class_token)
        return constant(displacement_index, arguments, index.device, index.dtype)


def find_tables(model: nn.Module, grid: tuple[int, ...] | None) -> dict[str, View]:
    """Views of the tables whose window is the grid, of their indices and window sizes, by name."""
    found: dict[str, View] = {}
    for name, module in model.named_modules():
        table = module._parameters.get("relative_position_bias_table")
        index = module._buffers.get("relative_position_index")
        window = module.__dict__.get("window_size")
        if table is None or index is None or grid is None or tuple(window or ()) != grid:
            continue
        class_token = index.shape[0] == math.prod(grid) + 1
        if not torch.equal(index.cpu(), displacement_index(grid, class_token).to(torch.long)):
            continue  # rows in an order of its own
        views: dict[str, View] = {
            "relative_position_bias_table": BiasTable(grid),
            "relative_position_index": BiasIndex(class_token),
            "window_size": StoredGrid(),
        }
        if module.__dict__.get("window_area") == math.prod(grid):
            views["window_area"] = StoredCount()
        prefix = f"{name}." if name else ""
        found |= {prefix + attribute: view for attribute, view in views.items()}
    return found


def displacement_matrix(old: int, new: int) -> Tensor:
    """`(2 new - 1, 2 old - 1)`, float64: linear interpolation at the same distances."""
    wanted = torch.arange(1 - new, new, dtype=torch.float64) * old / new
    wanted = wanted.clamp(1 - old, old - 1)
    known = torch.arange(1 - old, old, dtype=torch.float64)
    return (1 - (wanted[:, None] - known[None, :]).abs()).clamp(min=0)


def displacement_index(window: tuple[int, ...], class_token: bool) -> Tensor:
    """Row of the table for each pair of tokens, as float64 whole numbers."""
    places = torch.tensor(list(product(*map(range, window))), dtype=torch.float64)
    index = torch.zeros(len(places), len(places), dtype=torch.float64)
    for axis, size in enumerate(window):
        difference = places[:, None, axis] - places[None, :, axis]
        index = index * (2 * size - 1) + difference + size - 1
    if not class_token:
        return index
    num_rows = math.prod(2 * size - 1 for size in window) + CLASS_ROWS
    full = torch.zeros(len(places) + 1, len(places) + 1, dtype=torch.float64)
    full[1:, 1:] = index
    full[0, :] = num_rows - 3
    full[:, 0] = num_rows - 2
    full[0, 0] = num_rows - 1
    return full
