"""Dt, extent and boundaries of arrays, each with its origin.

What the user gave comes first, then the file's coordinates, then its attributes `dt`, `extent` and
`boundaries`, then a default. Coordinates must be even: dt and extent follow from one spacing. An
extent reaches half a cell beyond the outermost points, as in `layout.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from overtone.data.axes import letter_of, space_of
from overtone.data.layout import FieldSpec, digits
from overtone.data.variables import Arrays
from overtone.domain import BoundarySpec, Domain, parse_boundaries
from overtone.errors import DataError, DomainError
from overtone.guard.names import shown

EVEN = 1e-3
"""Relative difference up to which spacings are equal but for rounding."""
SECONDS = {"day": 86400.0, "hour": 3600.0, "hr": 3600.0, "h": 3600.0, "minute": 60.0, "min": 60.0,
           "second": 1.0, "sec": 1.0, "s": 1.0, "millisecond": 1e-3}  # fmt: skip
"""CF's units of "… since …" in seconds, without a plural's s."""
FieldParts = Mapping[FieldSpec, tuple[str, ...]]
"""Fields, each with the names of the arrays that hold its components; none where not said."""


@dataclass(frozen=True)
class Fact:
    """Something that was understood.

    Attributes:
        value: what.
        origin: where it comes from, e.g. `"coordinate 'time'"`, `"option"`, `"default"`.
    """

    value: Any
    origin: str


@dataclass(frozen=True)
class Given:
    """What the user says about files; all of it may be left out.

    Attributes:
        fields: what the channels are.
        dataset: names of the arrays to use.
        layout: a letter for each axis, or `"pdebench"`.
        dt: time between frames.
        extent: physical length of each axis.
        boundaries: as for `Domain`.
    """

    fields: FieldParts | None = None
    dataset: tuple[str, ...] = ()
    layout: str | None = None
    dt: float | None = None
    extent: tuple[float, ...] | None = None
    boundaries: BoundarySpec | None = None


def find_facts(
    arrays: Arrays,
    name: str,
    letters: str,
    shape: tuple[int, ...],
    given: Given,
    where: str,
) -> dict[str, Fact]:
    """Dt, extent of each axis and boundaries.

    Args:
        arrays: of a file.
        name: of the array whose axes count.
        letters: what they are.
        shape: the grid.
        given: what the user says.
        where: what to call the file in an error.
    """
    space = space_of(letters)
    said = arrays.attributes
    found = {"dt": _interval(arrays, name, letters, given, where)}
    lengths = _per_axis(given.extent, len(space), "extent")
    told = _per_axis(_listed(said.get("extent"), where), len(space), "the attribute extent")
    for i, axis in enumerate(space):
        coordinate = _coordinate(arrays, name, letters, axis)
        if lengths is not None:
            fact = Fact(lengths[i], "option")
        elif coordinate is not None and len(coordinate.values) > 1:
            step = _even_step(coordinate, "cell", "--extent", where)
            fact = Fact(digits(abs(step) * shape[i]), f"coordinate '{shown(coordinate.name)}'")
        elif told is not None:
            fact = Fact(told[i], "attribute 'extent'")
        else:
            fact = Fact(float(shape[i]), "default: cells of length 1; see --extent")
        found[f"extent {axis}"] = fact
    found["boundaries"] = _boundaries(said.get("boundaries"), given, space, where)
    return found


def _per_axis(values: Sequence[float] | None, ndim: int, what: str) -> tuple[float, ...] | None:
    if values is None:
        return None
    lengths = tuple(float(value) for value in values)
    if len(lengths) != ndim:
        raise DataError(
            f"{what} is {'x'.join(f'{v:g}' for v in lengths)}; expected one length for each of "
            f"{ndim} axes"
        )
    return lengths


def _listed(value: Any, where: str) -> list[float] | None:
    """Numbers of an attribute, which may be a text such as 1x2."""
    if value is None:
        return None
    try:
        entries = value.split("x") if isinstance(value, str) else np.ravel(value)
        return [float(entry) for entry in entries]
    except (TypeError, ValueError):
        raise DataError(
            f"{where}: attribute 'extent' is '{shown(value)}'; expected numbers"
        ) from None


def _interval(arrays: Arrays, name: str, letters: str, given: Given, where: str) -> Fact:
    coordinate = _coordinate(arrays, name, letters, "t")
    if given.dt is not None:
        return Fact(float(given.dt), "option")
    if coordinate is not None:
        step = _even_step(coordinate, "frame", "--dt", where)
        if step <= 0:
            raise DataError(
                f"{where}: coordinate '{shown(coordinate.name)}' runs backwards; expected times "
                "that grow. Turn the frames round, or give --dt"
            )
        return Fact(digits(step), f"coordinate '{shown(coordinate.name)}'")
    if "dt" in arrays.attributes:
        value = np.ravel(arrays.attributes["dt"])
        try:
            return Fact(float(value[0]), "attribute 'dt'")
        except (ValueError, IndexError):
            raise DataError(
                f"{where}: attribute 'dt' is '{shown(value)}'; expected a number"
            ) from None
    return Fact(1.0, "default; see --dt")


@dataclass(frozen=True)
class Coordinate:
    """Positions along an axis, float64 `(N,)`, and what the file calls them."""

    name: str
    values: np.ndarray
    rounding: float


def _coordinate(arrays: Arrays, name: str, letters: str, axis: str) -> Coordinate | None:
    """The coordinate of an axis, if there is one."""
    array, position = arrays[name], letters.index(axis)
    if array.dims:
        keys = [array.dims[position]]
    else:
        keys = [k for k, v in arrays.items() if v.ndim == 1 and letter_of(k, v.attributes) == axis]
    for key in keys:
        found = arrays.get(key)
        if found is not None and found.shape == (array.shape[position],):
            if found.dtype.kind not in "fiuMm":
                continue
            raw = found[:]
            if raw.dtype.kind in "Mm":  # of xarray, which knows dates
                raw = (raw - raw[0]) / np.timedelta64(1, "s")
            values = raw.astype(np.float64)
            eps = np.finfo(raw.dtype).eps if raw.dtype.kind == "f" else 0.0
            rounding = 4 * eps * float(np.abs(values).max())
            unit = _seconds(str(found.attributes.get("units", "")))
            return Coordinate(key, values * unit, rounding * unit)
    return None


def _seconds(units: str) -> float:
    """How many seconds a unit of time since some date is; 1 for anything else."""
    found = re.match(r"\s*([a-z]+?)s?\s+since\s", units.lower())
    return SECONDS.get(found[1], SECONDS.get(found[1] + "s", 1.0)) if found else 1.0


def _even_step(coordinate: Coordinate, what: str, option: str, where: str) -> float:
    """The distance of neighbours, which must be the same everywhere."""
    values = coordinate.values
    about = f"{where}: coordinate '{shown(coordinate.name)}'"
    if not np.isfinite(values).all():
        raise DataError(f"{about} has values that are NaN, infinite or missing; give {option}")
    steps = np.diff(values)
    mean = float(np.median(steps))
    off = np.abs(steps - mean) > EVEN * abs(mean) + coordinate.rounding
    if off.any() or mean == 0:
        i = int(np.argmax(off)) if off.any() else 0
        raise DataError(
            f"{about} is uneven: from {what} {i} to {i + 1} it changes by {steps[i]:.4g}, mostly "
            f"by {mean:.4g}. Interpolate to even spacing, or give {option} if this does not matter"
        )
    return float((values[-1] - values[0]) / len(steps))


def _boundaries(said: Any, given: Given, space: str, where: str) -> Fact:
    spec, origin = given.boundaries, "option"
    if spec is None and said is not None:
        spec, origin = parse_boundaries(str(said)), "attribute 'boundaries'"
    if spec is None:
        spec, origin = "periodic", "default; see --boundaries"
    try:
        ndim = len(space)
        return Fact(Domain((2,) * ndim, (1.0,) * ndim, spec, ("any",)).boundaries, origin)
    except DomainError as error:
        raise DataError(f"{where}: {error} ({origin})") from error


__all__ = ["Fact", "FieldParts", "Given", "find_facts"]
