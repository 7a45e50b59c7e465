"""What a model has learned about places, resized to the token grid of the patch in use.

Absolute position embeddings hold one vector for each token of the base patch's grid, in one of
three layouts:

- `"tokens"`: `(1, prefix + N, D)`, tokens in row-major order behind class and register tokens;
- `"last"`: `(1, *grid, D)`; `"first"`: `(1, D, *grid)`; each also without the leading 1.

They are samples of a field on the domain, so another grid gets that field's (cubic, antialiased)
interpolation. Prefix tokens have no place and stay as they are.

Relative-position bias tables (Swin, BEiT) have one row for each displacement between two tokens of
a window of `w` tokens along an axis, `-(w - 1) … w - 1`, and an index that tells each pair of
tokens its row. Where the window is a part of the grid (Swin), a patch changes the number of windows
and not their size: nothing to do. Where it is the whole grid (BEiT), the window grows with the
number of tokens. A displacement of `d'` tokens at one patch is `d = d' · w / w'` tokens at the
base, the same distance in the domain; the table is interpolated linearly there, and the index made
anew. Rows at the end that stand for pairs with a class token stay as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

import torch
from torch import Tensor, nn

from overtone.errors import PatchError, require_one_of, suggest
from overtone.flexify.modules import View
from overtone.flexify.patching import Patching
from overtone.flexify.sizes import StoredCount, StoredGrid
from overtone.ops.constants import constant
from overtone.ops.resize import interpolate

LAYOUTS = ("tokens", "first", "last")
MASK = "attn_mask"
"""What Swins call the masks of shifted windows that they keep."""
CLASS_ROWS = 3
"""Rows for class to token, token to class, and class to class."""

_NAMES = re.compile(r"pos(ition(al)?)?_?(emb|enc)|(^|_)pe$|^pos$")
_OTHER_NAMES = re.compile(r"temporal|time|relative|^rel_|_rel_|rotary|rope")


@dataclass(frozen=True)
class TokenPositions:
    """View of an embedding in the layout `"tokens"`.

    Attributes:
        name: of the embedding, for errors.
        prefixes: numbers of class and register tokens that it may begin with; `None` for any.
    """

    name: str
    prefixes: tuple[int, ...] | None

    def __call__(self, value: Tensor, patching: Patching) -> Tensor:
        """From `(1, prefix + N, D)` to the same with the tokens of the patch in use."""
        grid = patching.trained_grid
        if grid is None:
            raise PatchError(
                f"'{self.name}' is used before the encoder ran, so its grid is not known; call "
                "flexify(..., grid=(tokens along each axis at the base patch))"
            )
        prefix = value.shape[-2] - math.prod(grid)
        if self.prefixes is not None and prefix not in self.prefixes:
            return value  # it has the name of a position embedding and is none of these tokens
        _require_room(self.name, value, prefix, grid)
        before, tokens = value[..., :prefix, :], value[..., prefix:, :]
        kernel = tokens.reshape(1, *grid, value.shape[-1]).movedim(-1, 1)
        resized = _resize(kernel, patching).movedim(1, -1).flatten(1, -2)
        return torch.cat([before, resized.reshape(*value.shape[:-2], -1, value.shape[-1])], dim=-2)


@dataclass(frozen=True)
class GridPositions:
    """View of an embedding that keeps its grid, with its channels first or last."""

    last: bool

    def __call__(self, value: Tensor, patching: Patching) -> Tensor:
        """From `(…, *grid, D)` or `(…, D, *grid)` to the grid of the patch in use."""
        core = value.reshape(value.shape[-patching.ndim - 1 :])
        kernel = core.movedim(-1, 0) if self.last else core
        resized = _resize(kernel[None], patching)[0]
        resized = resized.movedim(0, -1) if self.last else resized
        return resized.reshape(*value.shape[: -core.dim()], *resized.shape)


PositionView = TokenPositions | GridPositions


def find_positions(
    model: nn.Module,
    layouts: Mapping[str, str] | None,
    *,
    ndim: int,
    grid: tuple[int, ...] | None,
    width: int,
) -> dict[str, PositionView]:
    """Views of all position embeddings of a model, by full name.

    Args:
        model: whose parameters and buffers.
        layouts: name, or pattern with `*`, to layout; `None` goes by names and shapes.
        ndim: number of spatial axes.
        grid: tokens along each axis at the base patch, if known.
        width: of a token, which tells channels from grid where the grid is not known.
    """
    tensors = dict(_tensors(model))
    if layouts is not None:
        return _find_named(tensors, layouts, ndim)
    found: dict[str, PositionView] = {}
    for name, tensor in tensors.items():
        last_name = name.rpartition(".")[2]
        if _NAMES.search(last_name) and not _OTHER_NAMES.search(last_name):
            prefixes = _prefixes(model, name)
            shape = tuple(tensor.shape)
            layout = _layout(name, shape, grid, ndim=ndim, width=width, prefixes=prefixes)
            if layout is not None:
                found[name] = _view(name, layout, prefixes)
    return found


def grid_of(views: Mapping[str, PositionView], model: nn.Module, ndim: int) -> set[tuple[int, ...]]:
    """The grids that embeddings with a grid of their own were learned on."""
    tensors, grids = dict(_tensors(model)), set()
    for name, view in views.items():
        if isinstance(view, GridPositions):
            core = tuple(tensors[name].shape[-ndim - 1 :])
            grids.add(core[:-1] if view.last else core[1:])
    return grids


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


def find_masks(model: nn.Module) -> tuple[str, ...]:
    """Buffers that hide tokens of shifted windows from each other, made for one token grid."""
    return tuple(name for name, _ in model.named_buffers() if name.rpartition(".")[2] == MASK)


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


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _find_named(
    tensors: Mapping[str, Tensor], layouts: Mapping[str, str], ndim: int
) -> dict[str, PositionView]:
    found: dict[str, PositionView] = {}
    for pattern, layout in layouts.items():
        require_one_of(layout, LAYOUTS, f"embeddings[{pattern!r}]", PatchError)
        names = [name for name in tensors if fnmatchcase(name, pattern)]
        if not names:
            raise PatchError(
                f"embeddings names {pattern!r}, which no parameter or buffer of the model has"
                f"{suggest(pattern, list(tensors))}"
            )
        for name in names:
            _require_shape(name, tuple(tensors[name].shape), layout, ndim)
            found[name] = _view(name, layout, None)
    return found


def _layout(
    name: str,
    shape: tuple[int, ...],
    grid: tuple[int, ...] | None,
    *,
    ndim: int,
    width: int,
    prefixes: tuple[int, ...],
) -> str | None:
    """The layout of an embedding, `None` where it is none of these tokens."""
    flat = len(shape) == 2 or (len(shape) == 3 and shape[0] == 1)
    core, before = shape[-ndim - 1 :], shape[: -ndim - 1]
    last = first = False
    if len(core) == ndim + 1 and before in ((), (1,)) and (ndim == 1 or not flat):
        last = core[:-1] == grid if grid else core[-1] == width
        first = core[1:] == grid if grid else core[0] == width
    if last and first:
        raise PatchError(
            f"the shape {shape} of '{name}' can be read with its channels first or last; say which "
            f"with flexify(..., embeddings={{'{name}': 'first'}}) or 'last'"
        )
    if flat and not first:
        fits = grid is None or shape[-2] - math.prod(grid) in prefixes
        return "tokens" if fits else None
    return "last" if last else "first" if first else None


def _view(name: str, layout: str, prefixes: tuple[int, ...] | None) -> PositionView:
    if layout == "tokens":
        return TokenPositions(name, prefixes)
    return GridPositions(last=layout == "last")


def _prefixes(model: nn.Module, name: str) -> tuple[int, ...]:
    """None, a class token, or as many as the owner of the embedding says."""
    owner = model.get_submodule(name.rpartition(".")[0])
    return (0, 1, int(getattr(owner, "num_prefix_tokens", 0)))


def _require_shape(name: str, shape: tuple[int, ...], layout: str, ndim: int) -> None:
    num_axes = 2 if layout == "tokens" else ndim + 1
    if len(shape) < num_axes or any(size != 1 for size in shape[:-num_axes]):
        forms = {"tokens": "(1, N, D)", "first": "(1, D, *grid)", "last": "(1, *grid, D)"}
        raise PatchError(
            f"embeddings takes '{name}' for the layout '{layout}', {forms[layout]}; its shape is "
            f"{shape} and the model has {ndim} spatial axes"
        )


def _require_room(name: str, value: Tensor, prefix: int, grid: tuple[int, ...]) -> None:
    if prefix < 0:
        raise PatchError(
            f"'{name}' has shape {tuple(value.shape)}, too few for the grid of {grid} tokens at "
            "the base patch; give flexify(..., grid=...) the grid it was learned on"
        )


def _resize(kernel: Tensor, patching: Patching) -> Tensor:
    return interpolate(kernel, patching.tokens, antialias=True)
