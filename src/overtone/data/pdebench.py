"""PDEBench's files, whose names say what their axes are.

There are two kinds. Of one, a dataset holds all trajectories: `tensor (n, t, *S)`, perhaps with
channels at the end, or one for each field (`density`, `pressure`, `Vx`, `Vy`, `velocity` …), next
to `t-coordinate`, `x-coordinate` and so on; times may have one entry more than there are frames. Of
the other, each trajectory is a group: `0000/data (t, *S, c)` with `0000/grid/t`, `0000/grid/x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from overtone.data.axes import SPACE
from overtone.data.layout import FieldSpec
from overtone.data.variables import Arrays, Variable
from overtone.errors import DataError
from overtone.guard.names import shown

NAME = "pdebench"
WITH_CHANNELS = ("velocity", "particles")
"""Datasets that have an axis of channels in any case."""
FIELDS = ("tensor", "density", "pressure", "Vx", "Vy", "Vz", *WITH_CHANNELS)


def looks_like(arrays: Arrays) -> bool:
    """Whether these are the names of PDEBench."""
    return "x-coordinate" in arrays or bool(_groups(arrays))


def arrange(arrays: Arrays, where: str) -> tuple[Arrays, dict[FieldSpec, tuple[str, ...]]]:
    """The same arrays with names for their axes, and the fields that they are.

    Args:
        arrays: of a file.
        where: what to call it in an error.
    """
    groups = _groups(arrays)
    if groups:
        return _from_groups(arrays, groups, where), {}
    names = [name for name in FIELDS if name in arrays]
    if not names:
        listed = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(
            f"{where} is none of PDEBench's files: it has {shown(listed)}; expected "
            f"{', '.join(FIELDS)} or groups such as 0000/data. Give another --layout"
        )
    found = {name: Variable(name, arrays[name].values, _dims(arrays, name)) for name in names}
    times = found[names[0]].shape[1]
    for letter in ("t", *SPACE):
        for key in (f"{letter}-coordinate", letter):
            if key in arrays and letter not in found:
                found[letter] = _coordinate(arrays[key], letter, times, where)
    vector = tuple(name for name in ("Vx", "Vy", "Vz") if name in found)
    known = [name for name in names if name not in (*vector, "tensor")]  # which may be anything
    specs = {FieldSpec(name, int(name == "velocity")): (name,) for name in known}
    return Arrays(found, arrays.attributes), specs | (
        {FieldSpec("velocity", 1): vector} if vector else {}
    )


def _dims(arrays: Arrays, name: str) -> tuple[str, ...]:
    """Letters of an array's axes, by the coordinates next to it."""
    space = "".join(letter for letter in SPACE if f"{letter}-coordinate" in arrays)
    rest = arrays[name].ndim - 2
    if not space or name in WITH_CHANNELS:
        space = SPACE[: rest - (name in WITH_CHANNELS)]
    return tuple(f"nt{space}{'c' * (rest - len(space))}")


def _coordinate(variable: Variable, letter: str, times: int, where: str) -> Variable:
    values = variable[()]
    if values.ndim == 2 and letter == "t":
        if not np.allclose(values, values[:1]):
            raise DataError(f"{where}: trajectories have different times in '{variable.name}'")
        values = values[0]
    return Variable(letter, values[:times] if letter == "t" else values, (letter,))


def _groups(arrays: Arrays) -> list[str]:
    """Names of groups of one trajectory each, in order."""
    names = [name.removesuffix("/data") for name in arrays if name.endswith("/data")]
    return sorted(name for name in names if f"{name}/grid/x" in arrays)


def _from_groups(arrays: Arrays, groups: Sequence[str], where: str) -> Arrays:
    first = f"{groups[0]}/data"
    space = "".join(letter for letter in SPACE if f"{groups[0]}/grid/{letter}" in arrays)
    rest = arrays[first].ndim - 1 - len(space)
    data = [arrays[f"{group}/data"] for group in groups]
    for variable in data:
        if variable.shape != data[0].shape:
            raise DataError(
                f"{where}: '{variable.name}' has shape {variable.shape}, '{first}' has "
                f"{data[0].shape}; one dataset has one grid and one number of frames"
            )
    found = {"data": Variable("data", _Stack(data), ("n", "t", *space, *"c" * rest))}
    for letter in ("t", *space):
        if (name := f"{groups[0]}/grid/{letter}") in arrays:
            found[letter] = _coordinate(arrays[name], letter, data[0].shape[0], where)
    return Arrays(found, arrays.attributes)


class _Stack:
    """Arrays of one shape as one, of which one is read at a time."""

    def __init__(self, arrays: Sequence[Variable]):
        self.shape, self.dtype = (len(arrays), *arrays[0].shape), arrays[0].dtype
        self._arrays = arrays

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        return self._arrays[index[0]][index[1:]]


__all__ = ["NAME", "arrange", "looks_like"]
