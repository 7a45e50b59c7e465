"""One file of arrays, understood: which arrays are fields, and in which order their axes are.

Names decide over the order of axes, so `(time, y, x)` and `(time, x, y)` of the same simulation are
the same. What neither names nor sizes tell is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from overtone.data import pdebench
from overtone.data.axes import (
    SPACE,
    by_names,
    by_shape,
    choose,
    letter_of,
    parse_layout,
    space_of,
)
from overtone.data.facts import Fact, FieldParts, Given, find_facts
from overtone.data.layout import FieldSpec
from overtone.data.variables import Arrays, Variable
from overtone.domain import Domain
from overtone.errors import DataError, suggest
from overtone.guard.names import shown

VECTORS = ("component", "components", "comp", "vector")
"""Names of an axis whose entries are the components of one vector."""


@dataclass(frozen=True, eq=False)
class Source:
    """What a file holds, seen as trajectories `(T, C, *S)`. Built by `understand`.

    Attributes:
        name: of the file, for errors.
        fields: in The Well's order.
        axes: names of the spatial axes.
        num: trajectories.
        steps: frames of each.
        shape: the grid.
        facts: layout, dt, extent of each axis and boundaries, by what they are called.
        left_out: names of arrays that are no fields.
        dtypes: how values are stored.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    axes: tuple[str, ...]
    num: int
    steps: int
    shape: tuple[int, ...]
    facts: Mapping[str, Fact]
    left_out: tuple[str, ...]
    dtypes: tuple[str, ...]
    _arrays: Arrays = field(repr=False)
    _letters: Mapping[str, str] = field(repr=False)
    _picks: tuple[tuple[str, tuple[int, ...]], ...] = field(repr=False)

    @property
    def domain(self) -> Domain:
        """What the trajectories live on."""
        channels = tuple(name for spec in self.fields for name in spec.channels(self.axes))
        extent = tuple(self.facts[f"extent {axis}"].value for axis in self.axes)
        dt, sides = self.facts["dt"].value, self.facts["boundaries"].value
        return Domain(self.shape, extent, sides, channels, dt)

    def read(self, sample: int, steps: slice) -> np.ndarray:
        """Frames of one trajectory, `(T, C, *S)`, floating-point."""
        blocks = {
            name: _block(self._arrays[name], letters, sample, steps)
            for name, letters in self._letters.items()
        }
        return np.concatenate([blocks[name][:, list(picks)] for name, picks in self._picks], axis=1)


def understand(arrays: Arrays, name: str, given: Given) -> Source:
    """Find out what arrays are, or ask.

    Args:
        arrays: of a file, open for as long as the result is used.
        name: what to call the file in an error.
        given: what the user says.
    """
    parts, layout, told = given.fields, given.layout, ""
    where = f"'{name}'"
    if layout == pdebench.NAME or (layout is None and pdebench.looks_like(arrays)):
        arrays, known = pdebench.arrange(arrays, where)
        # What the user wants may also be the names of the channels of its only array.
        parts, layout, told = parts or known or None, None, "names of PDEBench"
    layout = layout if layout is None else parse_layout(layout)
    chosen, parts, left_out = _select(arrays, parts, given.dataset, layout, where)
    letters, origin = _layouts(arrays, chosen, parts, layout, where)
    sizes = [dict(zip(letters[key], arrays[key].shape, strict=True)) for key in chosen]
    num, steps, shape = _one_size(sizes, chosen, arrays, where)
    fields, picks = _channels(arrays, letters, parts, where)
    space = space_of(letters[chosen[0]])
    return Source(
        name=name,
        fields=fields,
        axes=tuple(space),
        num=num,
        steps=steps,
        shape=shape,
        facts={
            "layout": Fact(", ".join(dict.fromkeys(letters.values())), told or origin),
            **find_facts(arrays, chosen[0], letters[chosen[0]], shape, given, where),
        },
        left_out=left_out,
        dtypes=tuple(dict.fromkeys(str(arrays[key].dtype) for key in chosen)),
        _arrays=arrays,
        _letters=letters,
        _picks=picks,
    )


def parse_fields(text: str) -> dict[FieldSpec, tuple[str, ...]]:
    """Fields from text: names with commas between them, `:1` after a vector, `:2` after a tensor.

    `"density,velocity:1"` on two axes is three channels: density, velocity_x, velocity_y. After `=`
    stand the arrays that hold a field's components, `+` between them: `"velocity:1=u+v"`.
    """
    parts: dict[FieldSpec, tuple[str, ...]] = {}
    for entry in text.split(","):
        about, equals, arrays = entry.strip().partition("=")
        name, _, order = about.strip().partition(":")
        names = tuple(part.strip() for part in arrays.split("+")) if equals else ()
        if not name or order not in ("", "0", "1", "2") or not all(names):
            raise DataError(
                f"fields are {text!r}; expected names with commas between them, with :1 after a "
                "vector and :2 after a tensor, e.g. density,velocity:1, or velocity:1=u+v for one "
                "whose components are the arrays u and v"
            )
        parts[FieldSpec(name, int(order or 0))] = names
    return parts


def _select(
    arrays: Arrays,
    parts: FieldParts | None,
    dataset: Sequence[str],
    layout: str | None,
    where: str,
) -> tuple[list[str], FieldParts | None, tuple[str, ...]]:
    """Names of the arrays to use, what fields they are (None: their channels are), and the rest."""
    chosen = [name.strip("/") for name in dataset] or _candidates(arrays)
    wanted = {
        s: names or ((s.name,) if s.name in arrays else ()) for s, names in (parts or {}).items()
    }
    missing = [spec.name for spec, names in wanted.items() if not names]
    if wanted and not missing:  # an array, or several, for each field
        chosen, parts = [name for names in wanted.values() for name in names], wanted
    elif missing and len(chosen) > 1:
        _require_array(missing[0], arrays, where)
    for name in chosen:
        _require_array(name, arrays, where)
    if not chosen:
        listed = ", ".join(f"{n} {a.shape}" for n, a in arrays.items()) or "nothing"
        raise DataError(
            f"{where} has no array with an axis of time and one of space; it has {shown(listed)}. "
            "If one of them is what you mean, choose it with --dataset and --layout"
        )
    unclear = parts is None and layout is None and not all(arrays[name].dims for name in chosen)
    if unclear and len({arrays[name].shape for name in chosen}) > 1:
        listed = ", ".join(f"{name} {arrays[name].shape}" for name in chosen)
        raise DataError(
            f"{where} holds several arrays: {shown(listed)}. Say which to use with --dataset, or "
            "what fields they are with --fields, e.g. --fields density,velocity:1"
        )
    left_out = (k for k, array in arrays.items() if array.ndim > 1 and k not in chosen)
    return chosen, parts, tuple(left_out)


def _require_array(name: str, arrays: Arrays, where: str) -> None:
    if name not in arrays:
        known = sorted(key for key in arrays if key)
        raise DataError(
            f"{where} has no array '{shown(name)}'; it has {shown(', '.join(known)) or 'none'}"
            f"{suggest(name, known)}. Expected one for each field, or a single array"
        )
    _require_numbers(arrays[name], where)


def _require_numbers(array: Variable, where: str) -> None:
    what = f"{where}: '{shown(array.name)}'" if array.name else where
    if array.dtype.kind == "c":
        raise DataError(
            f"{what} holds complex numbers ({array.dtype}); expected real ones. Save the real and "
            "the imaginary part as two fields"
        )
    if array.dtype.kind not in "fiu":
        raise DataError(f"{what} holds {array.dtype} of shape {array.shape}; expected numbers")
    if 0 in array.shape:
        empty = array.shape.index(0)
        axis = f"dimension '{shown(array.dims[empty])}'" if array.dims else f"axis {empty}"
        raise DataError(
            f"{what} has shape {array.shape}: its {axis} has length 0, so it holds nothing. An "
            "unlimited dimension grows when something is written; check the program that wrote it"
        )


def _letters_by_name(arrays: Arrays, name: str) -> list[str]:
    dims = arrays[name].dims
    about: list[Mapping[str, Any]] = [
        arrays[dim].attributes if dim in arrays else {} for dim in dims
    ]
    return [letter_of(dim, said) for dim, said in zip(dims, about, strict=True)]


def _candidates(arrays: Arrays) -> list[str]:
    """Arrays that may be fields: no coordinates, and none whose names tell something else."""
    coordinates = {dim for array in arrays.values() for dim in array.dims}
    found = [k for k, array in arrays.items() if array.ndim > 1 and k not in coordinates]
    complete: list[str] = []
    for name in [k for k in found if arrays[k].dims]:
        letters = _letters_by_name(arrays, name)
        if "t" in letters and set(letters) & set(SPACE) and all(letters):
            complete.append(name)
        elif all(letters) and len(set(letters)) == len(letters):
            found.remove(name)  # a mask, or the like
    return complete or found


def _layouts(
    arrays: Arrays,
    chosen: Sequence[str],
    parts: FieldParts | None,
    layout: str | None,
    where: str,
) -> tuple[dict[str, str], str]:
    """Letters of the axes of each array, and where they come from."""
    orders = _orders(chosen, parts)
    if layout is not None:
        return {k: _stretched(layout, arrays[k], orders[k], where) for k in chosen}, "option"
    if all(arrays[name].dims for name in chosen):
        return {k: _named(arrays, k, parts, where) for k in chosen}, "names of the dimensions"
    # Of several without names, the one with the fewest axes shows what all have in common.
    key = min(chosen, key=lambda name: arrays[name].ndim - orders[name])
    base, order = arrays[key], orders[key]
    about = f"{where}: '{shown(key)}'" if key else where
    scalars = {1: 1, 2: 1, 3: 1}
    if order == 2 or (order and len(chosen) > 1):
        found = by_shape(base.shape[: base.ndim - order], _lengths(arrays), scalars)
    else:
        alone = parts is None or len(chosen) == 1
        wanted = None if parts is None else _num_channels(parts)
        found = by_shape(base.shape, _lengths(arrays), wanted if alone else scalars)
        order = 0
    for k in (k for k in chosen if orders[k] and (orders[k] == 2 or len(chosen) > 1)):
        tail = arrays[k].shape[-orders[k] :]
        found = [o for o in found if tail == (len(space_of(o)),) * orders[k]]
    picked = choose(found, base.shape[: base.ndim - order], about)
    letters = {k: _stretched(picked, arrays[k], orders[k], where) for k in chosen}
    return letters, "the only way to read its shape"


def _orders(chosen: Sequence[str], parts: FieldParts | None) -> dict[str, int]:
    """For each array, how many axes of components its field asks for, where it is a field's own."""
    orders = dict.fromkeys(chosen, 0)
    for spec, names in (parts or {}).items():
        if len(names) == 1:
            orders[names[0]] = spec.order
    return orders


def _num_channels(parts: FieldParts) -> dict[int, int]:
    return {ndim: sum(spec.components(ndim) for spec in parts) for ndim in (1, 2, 3)}


def _lengths(arrays: Arrays) -> dict[str, int]:
    """Lengths of coordinates that lie beside arrays without names, by letter."""
    found: dict[str, int] = {}
    for name, array in arrays.items():
        letter = letter_of(name, array.attributes) if array.ndim == 1 and name else ""
        if letter and letter in "t" + SPACE:
            found.setdefault(letter, array.shape[0])
    return found


def _stretched(layout: str, array: Variable, order: int, where: str) -> str:
    """A layout for an array that lacks the channels' axis, or has those of a vector or tensor."""
    for letters in (layout, layout.replace("c", ""), layout.replace("c", "") + "c" * order):
        if len(letters) == array.ndim and "t" in letters:
            return letters
    what = f"'{shown(array.name)}'" if array.name else "the array"
    raise DataError(
        f"{where}: {what} has shape {array.shape}; expected {len(layout)} axes for the layout "
        f"'{layout}', t among them"
    )


def _named(arrays: Arrays, name: str, parts: FieldParts | None, where: str) -> str:
    """The layout of an array by the names of its axes."""
    array, letters = arrays[name], _letters_by_name(arrays, name)
    found = list(by_names(letters))
    if len(found) > 1:  # one frame has no next one
        found = [o for o in found if dict(zip(o, array.shape, strict=True))["t"] > 1]
    about = f"{where}: '{shown(name)}' ({shown(', '.join(array.dims))})"
    if not found and all(letters) and "t" not in letters:
        raise DataError(
            f"{about} has no axis of time; expected one that is called time or t, or has the "
            "attribute axis = 'T'. --layout says which one it is, e.g. --layout txy"
        )
    if len(found) > 1 and parts and len(parts) > 1 and name not in {s.name for s in parts}:
        wanted = _num_channels(parts)
        sizes = ((o, dict(zip(o, array.shape, strict=True))) for o in found)
        found = [o for o, size in sizes if size.get("c", 1) == wanted[len(space_of(o))]]
    return choose(found, array.shape, about)


def _one_size(
    sizes: Sequence[Mapping[str, int]], chosen: Sequence[str], arrays: Arrays, where: str
) -> tuple[int, int, tuple[int, ...]]:
    """Trajectories, frames and grid that all arrays have in common."""
    seen = {(s.get("n", 1), s["t"], tuple((a, s[a]) for a in space_of("".join(s)))) for s in sizes}
    if len(seen) > 1:
        listed = ", ".join(f"{name} {arrays[name].shape}" for name in chosen)
        raise DataError(
            f"{where}: {shown(listed)} differ in trajectories, frames or cells; expected the same "
            "for all fields, (n, T, *S) and (D,) or (D, D) at the end for vectors and tensors. "
            "Choose fields that agree with --fields or --dataset"
        )
    ((num, steps, shape),) = seen
    if steps < 2:
        raise DataError(
            f"{where} has {steps} frame in each trajectory; expected at least 2. Frames in files "
            "of their own are to be joined along time first"
        )
    return num, steps, tuple(n for _, n in shape)


def _channels(
    arrays: Arrays, letters: Mapping[str, str], parts: FieldParts | None, where: str
) -> tuple[tuple[FieldSpec, ...], tuple[tuple[str, tuple[int, ...]], ...]]:
    """Fields in The Well's order, and which channels of which arrays they are."""
    if parts is not None and all(parts.values()):
        found = _by_array(arrays, letters, parts, where)
    elif parts is not None:
        found = _by_channel(arrays, letters, parts, where)
    else:
        found = [
            entry
            for name, order in letters.items()
            for entry in _without_names(arrays[name], order, len(letters) == 1)
        ]
    found.sort(key=lambda entry: entry[0].order)  # scalars, vectors, tensors; stable
    return tuple(spec for spec, _ in found), tuple(p for _, picks in found for p in picks)


Picked = list[tuple[FieldSpec, list[tuple[str, tuple[int, ...]]]]]


def _count(array: Variable, letters: str) -> int:
    """Channels of an array."""
    axes = zip(letters, array.shape, strict=True)
    return int(np.prod([n for letter, n in axes if letter == "c"], dtype=int))


def _by_array(arrays: Arrays, letters: Mapping[str, str], parts: FieldParts, where: str) -> Picked:
    found: Picked = []
    for spec, names in parts.items():
        picks = [(name, tuple(range(_count(arrays[name], letters[name])))) for name in names]
        ndim = len(space_of(letters[names[0]]))
        total = sum(len(channels) for _, channels in picks)
        if total != spec.components(ndim):
            listed = ", ".join(f"{name} {arrays[name].shape}" for name in names)
            raise DataError(
                f"{where}: the field '{spec.name}:{spec.order}' has {spec.components(ndim)} "
                f"components on {ndim} axes; {shown(listed)} has {total}. Name what is there: a "
                "scalar for each channel, or :1 for a vector"
            )
        found.append((spec, picks))
    return found


def _by_channel(
    arrays: Arrays, letters: Mapping[str, str], parts: FieldParts, where: str
) -> Picked:
    """Fields that are the channels of the only array, one after the other."""
    ((name, order),) = letters.items()
    ndim, first = len(space_of(order)), 0
    found: Picked = []
    for spec in parts:
        count = spec.components(ndim)
        found.append((spec, [(name, tuple(range(first, first + count)))]))
        first += count
    if first != (total := _count(arrays[name], order)):
        listed = ", ".join(f"{spec.name}:{spec.order}" for spec in parts)
        raise DataError(
            f"{where}: the array of shape {arrays[name].shape} (layout {order}) has C = {total} "
            f"channels; expected C = {first} for {listed} on {ndim} axes"
        )
    return found


def _without_names(array: Variable, letters: str, alone: bool) -> Picked:
    """Fields of an array of which nobody says what its channels are."""
    own = array.name.rpartition("/")[2]
    total, ndim = _count(array, letters), len(space_of(letters))
    axis = array.dims[letters.index("c")] if array.dims and "c" in letters else ""
    everything = [(array.name, tuple(range(total)))]
    if total == 1:
        return [(FieldSpec(own or "field"), everything)]
    if total == ndim and axis.lower() in VECTORS:
        return [(FieldSpec(own or "field", 1), everything)]
    return [(FieldSpec(f"{own or 'channel'}_{i}"), [(array.name, (i,))]) for i in range(total)]


def _block(array: Variable, letters: str, sample: int, steps: slice) -> np.ndarray:
    """Frames of one array, `(T, C, *S)`, floating-point, its space in the order x, y, z."""
    index = tuple({"n": sample, "t": steps}.get(letter, slice(None)) for letter in letters)
    values = array[index]
    left = [letter for letter in letters if letter != "n"]
    space = space_of(letters)
    inner = [i for i, letter in enumerate(left) if letter == "c"]
    order = [left.index("t"), *inner, *(left.index(axis) for axis in space)]
    shape = [values.shape[left.index(axis)] for axis in space]
    values = values.transpose(order).reshape(values.shape[left.index("t")], -1, *shape)
    return values if values.dtype.kind == "f" else values.astype(np.float64)


__all__ = ["Given", "Source", "parse_fields", "understand"]
