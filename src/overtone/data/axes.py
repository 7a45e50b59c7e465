"""Which axis of an array is what: `n` trajectories, `t` frames, `c` channels, `x`, `y`, `z` cells.

A layout is a letter for each axis: `"ntcxy"` is this library's own order, `"tyxc"` one trajectory
with channels last. `b` (batch) stands for `n`. Where a file names its axes, letters follow from
CF's attributes and from the names. What is left open may have several readings: an only one is
taken, and of several the user is asked to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from overtone.errors import DataError
from overtone.guard.names import shown

SPACE = "xyz"
LETTERS = "ntc" + SPACE
ORDERS = ("tx", "ntx", "txy", "tcx", "txc", "ntxy", "txyz", "ntcx", "ntxc", "tcxy", "txyc", "ntxyz",
          "ntcxy", "ntxyc", "tcxyz", "txyzc", "ntcxyz", "ntxyzc")  # fmt: skip
"""How arrays without names are laid out in practice."""
NAMES = {
    "n": "n b sample samples batch trajectory trajectories traj run runs member members number "
    "realization realisation ensemble ens sim sims simulation simulations case cases seed ic",
    "t": "t time times frame frames step steps timestep timesteps snapshot snapshots nt it "
    "tcoord tcoordinate",
    "c": "c channel channels component components comp variable variables field fields feature "
    "features vector",
    "x": "x lon longitude xc nx xcoord xcoordinate westeast rlon easting",
    "y": "y lat latitude yc ny ycoord ycoordinate southnorth rlat northing",
    "z": "z lev level levels depth height altitude zc nz zcoord zcoordinate bottomtop",
}
"""What axes are called, without case, `_` and `-`."""
KNOWN = {name: letter for letter, names in NAMES.items() for name in names.split()}
STANDARD = {
    "time": "t", "longitude": "x", "latitude": "y", "projection_x_coordinate": "x",
    "projection_y_coordinate": "y", "grid_longitude": "x", "grid_latitude": "y", "altitude": "z",
    "height": "z", "depth": "z", "realization": "n",
}  # fmt: skip
"""CF's standard names."""
UNITS = {"degrees_east": "x", "degrees_north": "y"}
MAX_LISTED = 8
"""Readings that an error lists."""


def parse_layout(text: str) -> str:
    """A layout in letters of `LETTERS`, each at most once, with x, xy or xyz in any order."""
    layout = text.replace("b", "n")
    if (
        len(set(layout)) != len(layout)
        or set(layout) - set(LETTERS)
        or space_of(layout) not in (SPACE[:1], SPACE[:2], SPACE)
    ):
        raise DataError(
            f"layout is '{shown(text)}'; expected each of n (trajectories; also b), t (frames), c "
            "(channels) at most once, and x, xy or xyz in any order, e.g. ntcxy"
        )
    return layout


def space_of(layout: str) -> str:
    """The letters of space in a layout, in the order x, y, z."""
    return "".join(sorted(set(layout) & set(SPACE)))


def letter_of(dim: str, attributes: Mapping[str, Any]) -> str:
    """What an axis is, by the attributes of its coordinate or by its name; empty if unknown.

    Args:
        dim: its name; of one in a group, the last part counts.
        attributes: of its coordinate variable, if there is one.
    """
    axis, standard, units = (
        str(attributes.get(key, "")) for key in ("axis", "standard_name", "units")
    )
    if axis.upper() in ("T", "X", "Y", "Z"):
        return axis.lower()
    said = STANDARD.get(standard) or UNITS.get(units) or ("t" if " since " in units else "")
    name = dim.rpartition("/")[2].lower().replace("_", "").replace("-", "")
    return said or KNOWN.get(name, "")


def by_names(letters: Sequence[str]) -> Iterator[str]:
    """Layouts that agree with what names say: one letter for each axis, `""` where unknown.

    An axis whose letter another one has, too, is as good as unknown.
    """
    open_axes = [i for i, letter in enumerate(letters) if not letter or letters.count(letter) > 1]
    taken = {letter for i, letter in enumerate(letters) if i not in open_axes}
    free = [letter for letter in "ntc" if letter not in taken]
    cells = [letter for letter in SPACE if letter not in taken]
    for kinds in product(("s", *free), repeat=len(open_axes)):
        if len({k for k in kinds if k != "s"}) != sum(k != "s" for k in kinds):
            continue
        if kinds.count("s") > len(cells):
            continue
        unused, filled = iter(cells), list(letters)
        for axis, kind in zip(open_axes, kinds, strict=True):
            filled[axis] = next(unused) if kind == "s" else kind
        if "t" in filled and space_of("".join(filled)):
            yield "".join(filled)


def by_shape(
    shape: Sequence[int], lengths: Mapping[str, int], channels: Mapping[int, int] | None
) -> list[str]:
    """Layouts that an array without names may have, by its shape.

    Args:
        shape: of the array.
        lengths: of coordinates that lie beside it, by letter; all of them must fit.
        channels: how many it has if its grid has one, two or three axes; None if that is open.
    """
    usual = [order for order in ORDERS if len(order) == len(shape)]
    found = [order for order in usual if _fits(order, shape, lengths, channels)]
    if not found and set(lengths) & set(SPACE):  # rows first, as of images
        turned = {
            "".join(dict(zip(space_of(o), p, strict=True)).get(a, a) for a in o)
            for o in usual
            for p in permutations(space_of(o))
        }
        found = sorted(order for order in turned if _fits(order, shape, lengths, channels))
    return found


def _fits(
    order: str,
    shape: Sequence[int],
    lengths: Mapping[str, int],
    channels: Mapping[int, int] | None,
) -> bool:
    size = dict(zip(order, shape, strict=True))
    space = space_of(order)
    if size["t"] < 2 or any(size[axis] < 2 for axis in space):
        return False  # one frame has no next one, and one cell is no axis
    if any(size.get(letter) != length for letter, length in lengths.items()):
        return False
    return channels is None or size.get("c", 1) == channels[len(space)]


def choose(found: Sequence[str], shape: Sequence[int], where: str) -> str:
    """The only reading that there is.

    Args:
        found: all readings.
        shape: of the array.
        where: what to call the array in an error.
    """
    if len(found) == 1:
        return found[0]
    if not found:
        raise DataError(
            f"{where} has shape {tuple(shape)}, which fits none of the known layouts "
            f"({', '.join(o for o in ORDERS if len(o) == len(shape)) or 'two to six axes'}); "
            "say what its axes are with --layout (n trajectories, t frames, c channels, x y z "
            "cells), e.g. --layout ntcxy, and name its channels with --fields"
        )
    lines = [f"  --layout {order}: {reading(order, shape)}" for order in found[:MAX_LISTED]]
    more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    lines.append(f"  or any other order of n, t, c, x, y, z{more}")
    raise DataError(
        f"{where} has shape {tuple(shape)}, which can be read in {len(found)} ways; choose one "
        "(in Python: layout=…):\n" + "\n".join(lines)
    )


def reading(order: str, shape: Sequence[int]) -> str:
    """What a layout makes of a shape, in words."""
    size = dict(zip(order, shape, strict=False))
    num, cells = size.get("n", 1), "x".join(str(size[axis]) for axis in space_of(order))
    channels = f", {size['c']} channels" if "c" in size else ""
    plural = "trajectory" if num == 1 else "trajectories"
    return f"{num} {plural} of {size['t']} frames on {cells} cells{channels}"


__all__ = ["LETTERS", "SPACE", "by_names", "by_shape", "choose", "letter_of", "parse_layout"]
