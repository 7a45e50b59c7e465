"""Sizes that a model stores as plain attributes and uses in its forward pass.

Models keep their patch, their token grid or their number of tokens, to fold and unfold tokens or
to check their input. At another patch these must follow. Attributes of well-known names follow on
their own if their value is what it should be at the base patch; others are named by the user.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from overtone.errors import PatchError, require_one_of, suggest
from overtone.flexify.modules import View
from overtone.flexify.patching import Patching
from overtone.models.base import short_patch

GRID_NAMES = ("grid_size", "token_grid", "grid")
"""Attributes that tell the token grid."""

KNOWN_NAMES = {
    "patch_size": "patch",
    "num_patches": "count",
    "inner_size": "grid",
    "resolution": "grid",
    "input_resolution": "grid",
    **dict.fromkeys(GRID_NAMES, "grid"),
}
"""Attributes that follow where their value fits, and what they hold."""


@dataclass(frozen=True)
class StoredPatch:
    """View of a stored patch."""

    def __call__(self, value: Any, patching: Patching) -> Any:
        """The patch in use, in the form of `value`."""
        return _like(value, patching.patch)


@dataclass(frozen=True)
class StoredGrid:
    """View of a stored token grid."""

    def __call__(self, value: Any, patching: Patching) -> Any:
        """The grid at the patch in use, in the form of `value`."""
        return _like(value, patching.tokens)


@dataclass(frozen=True)
class StoredCount:
    """View of a stored number of tokens."""

    def __call__(self, value: Any, patching: Patching) -> Any:
        """The number of tokens at the patch in use."""
        return patching.num_tokens


_VIEWS = {"patch": StoredPatch, "grid": StoredGrid, "count": StoredCount}


def find_sizes(
    model: nn.Module,
    follow: Mapping[str, str],
    *,
    base: tuple[int, ...],
    grid: tuple[int, ...] | None,
) -> dict[str, View]:
    """Views of all stored sizes that must follow the patch, by full name.

    Args:
        model: whose attributes.
        follow: name, or pattern with `*`, to `"patch"`, `"grid"`, `"count"`, or `"keep"` for one
            that must not follow.
        base: the base patch.
        grid: tokens along each axis at the base patch, if known.
    """
    expected = {"patch": base, "grid": grid, "count": None if grid is None else math.prod(grid)}
    stored = dict(_stored_sizes(model))
    chosen = {
        name: kind
        for name, value in stored.items()
        if (kind := KNOWN_NAMES.get(name.rpartition(".")[2])) and _fits(value, expected[kind])
    }
    for pattern, kind in follow.items():
        require_one_of(kind, (*_VIEWS, "keep"), f"follow[{pattern!r}]", PatchError)
        names = [name for name in stored if fnmatchcase(name, pattern)]
        if not names:
            raise PatchError(
                f"follow names {pattern!r}, which no int or tuple of ints of the model has"
                f"{suggest(pattern, list(stored))}"
            )
        for name in names:
            _require_fit(name, stored[name], kind, expected.get(kind))
            chosen[name] = kind
    return {name: _VIEWS[kind]() for name, kind in chosen.items() if kind != "keep"}


def stored_grid(module: nn.Module, ndim: int) -> tuple[int, ...] | None:
    """The token grid that a module tells of, if it does."""
    for name in GRID_NAMES:
        value = module.__dict__.get(name)
        if isinstance(value, (tuple, list)) and _is_sizes(value) and len(value) == ndim:
            return tuple(value)
    return None


def _stored_sizes(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for module_name, module in model.named_modules():
        if type(module).__module__.startswith("torch.nn."):
            continue  # a kernel or a number of heads, which may have such a value by chance
        for name, value in module.__dict__.items():
            if not name.startswith("_") and _is_sizes(value):
                yield (f"{module_name}.{name}" if module_name else name), value


def _is_sizes(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(type(size) is int for size in value)
    return type(value) is int


def _fits(value: Any, expected: tuple[int, ...] | int | None) -> bool:
    if expected is None:
        return False
    if isinstance(expected, int):
        return value == expected
    return value == short_patch(expected) if isinstance(value, int) else tuple(value) == expected


def _require_fit(name: str, value: Any, kind: str, expected: tuple[int, ...] | int | None) -> None:
    if expected is not None and not _fits(value, expected):
        raise PatchError(
            f"follow takes '{name}' for the {kind}, but it is {value} and the {kind} of the "
            f"model as it stands is {expected}"
        )


def _like(value: Any, sizes: tuple[int, ...]) -> Any:
    if not isinstance(value, int):
        return type(value)(sizes)
    if len(set(sizes)) > 1:
        raise PatchError(
            f"the model stores one int for all axes where {sizes} is needed; use the same size "
            "along each axis"
        )
    return sizes[0]
