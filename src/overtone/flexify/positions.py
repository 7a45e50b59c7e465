"""Learned absolute position embeddings, resized to the token grid of the patch in use.

An embedding holds one vector for each token of the base patch's grid, in one of three layouts:

- `"tokens"`: `(1, prefix + N, D)`, tokens in row-major order behind class and register tokens;
- `"last"`: `(1, *grid, D)`; `"first"`: `(1, D, *grid)`; each also without the leading 1.

They are samples of a field on the domain, so another grid gets that field's (cubic, antialiased)
interpolation. Prefix tokens have no place and stay as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from overtone.errors import PatchError, suggest
from overtone.flexify.patching import Patching
from overtone.ops.resize import interpolate

LAYOUTS = ("tokens", "first", "last")

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


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _find_named(
    tensors: Mapping[str, Tensor], layouts: Mapping[str, str], ndim: int
) -> dict[str, PositionView]:
    found: dict[str, PositionView] = {}
    for pattern, layout in layouts.items():
        if layout not in LAYOUTS:
            raise PatchError(f"embeddings[{pattern!r}] is {layout!r}; expected one of {LAYOUTS}")
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
