"""What fields live on: boundaries, domains and windows of frames.

A `Domain` is the metadata of a field: grid, physical size, boundaries, field names and the time
between frames. A `Window` is a few consecutive frames on a domain, in the one tensor layout of
this library, `(B, T, C, *space)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, TypeGuard, cast

import numpy as np
import torch
from torch import Tensor

from overtone.errors import DomainError


class Boundary(StrEnum):
    """What lies beyond a side of the domain. The Well's three kinds."""

    WALL = "wall"
    OPEN = "open"
    PERIODIC = "periodic"


Sides = tuple[Boundary, Boundary]
"""The lower and the upper side of one axis."""

BoundarySpec = str | Sequence[str | Sequence[str]]
"""One name for all axes, or for each axis one name or a pair (lower side, upper side)."""

MAX_AXES = 3
SAME = 1e-3
"""Relative difference up to which dt and extent are equal but for rounding."""
MAX_INT = 2**63 - 1
"""Largest int of torch. Python writes out no ints of thousands of digits, not even in an error."""


@dataclass(frozen=True, init=False)
class Domain:
    """Where fields live and how far apart their frames are.

    Args:
        shape: number of cells along each axis, one to three axes; one int for one axis.
        extent: physical length of each axis; one number for one axis.
        boundaries: `"periodic"`, `"wall"` or `"open"` for each axis, or a pair of them for its
            lower and upper side.
        fields: names of the channels, in tensor order.
        dt: time between two frames.
        dt_range: shortest and longest such time, where they differ; `(dt, dt)` by default. Where
            several datasets or files are one domain, `extent` and `dt` are those of the first.
    """

    shape: tuple[int, ...]
    extent: tuple[float, ...]
    boundaries: tuple[Sides, ...]
    fields: tuple[str, ...]
    dt: float
    dt_range: tuple[float, float]

    def __init__(
        self,
        shape: int | Sequence[int],
        extent: float | Sequence[float],
        boundaries: BoundarySpec,
        fields: Sequence[str],
        dt: float = 1.0,
        dt_range: Sequence[float] | None = None,
    ):
        shape, dt = _shape(shape), _positive(dt, "dt")
        values = {
            "shape": shape,
            "extent": _extent(extent, len(shape)),
            "boundaries": _boundaries(boundaries, len(shape)),
            "fields": _fields(fields),
            "dt": dt,
            "dt_range": (dt, dt) if dt_range is None else _dt_range(dt_range, dt),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def ndim(self) -> int:
        """Number of spatial axes."""
        return len(self.shape)

    @property
    def spacing(self) -> tuple[float, ...]:
        """Physical length of a cell along each axis."""
        return tuple(length / n for length, n in zip(self.extent, self.shape, strict=True))

    @property
    def periodic(self) -> tuple[bool, ...]:
        """For each axis, whether its two sides are joined."""
        return tuple(lower is Boundary.PERIODIC for lower, _ in self.boundaries)

    @property
    def kinds(self) -> tuple[Boundary, ...]:
        """The kinds of boundary that occur and are not periodic, in a fixed order."""
        present = {side for sides in self.boundaries for side in sides}
        return tuple(kind for kind in (Boundary.WALL, Boundary.OPEN) if kind in present)

    @property
    def has_one_dt(self) -> bool:
        """Whether all frames are equally far apart."""
        return self.dt_range[0] == self.dt_range[1]

    def steps_by(self, dt: float) -> bool:
        """Whether a time between frames is within the range, up to rounding."""
        shortest, longest = self.dt_range
        return shortest * (1 - SAME) <= dt <= longest * (1 + SAME)

    def __str__(self) -> str:
        """In a line, without the digits that nobody reads."""
        extent = " x ".join(f"{length:.4g}" for length in self.extent)
        sides = [
            lower if lower == upper else f"{lower}/{upper}" for lower, upper in self.boundaries
        ]
        return (
            f"{', '.join(self.fields)} on {'x'.join(map(str, self.shape))} cells of {extent}, "
            f"{' and '.join(dict.fromkeys(sides))}, dt {self.dt:.4g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, strings and numbers, for JSON."""
        several = {} if self.has_one_dt else {"dt_range": list(self.dt_range)}
        return {
            "shape": list(self.shape),
            "extent": list(self.extent),
            "boundaries": [[str(side) for side in sides] for sides in self.boundaries],
            "fields": list(self.fields),
            "dt": self.dt,
            **several,
        }


@dataclass(frozen=True, eq=False)
class Window:
    """Consecutive frames on a domain.

    Args:
        fields: frames in physical units, `(B, T, C, *space)`, or `(T, C, *space)` for one sample
            that is still to be batched. An array of NumPy becomes a tensor.
        domain: what they live on.
    """

    fields: Tensor
    domain: Domain

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            object.__setattr__(self, "fields", _as_tensor(self.fields))
        expected = f"(B, T, {len(self.domain.fields)}, {', '.join(map(str, self.domain.shape))})"
        given = tuple(self.fields.shape)
        if len(given) not in (self.domain.ndim + 2, self.domain.ndim + 3):
            raise DomainError(
                f"fields have {len(given)} dimensions, shape {given}; this {self.domain.ndim}D "
                f"domain needs {expected}, or the same without B"
            )
        if not self.fields.is_floating_point():
            raise DomainError(f"fields have dtype {self.fields.dtype}; convert them with .float()")
        if self.num_channels != len(self.domain.fields):
            raise DomainError(
                f"fields have {self.num_channels} channels, shape {given}; the domain names "
                f"{len(self.domain.fields)}: {', '.join(self.domain.fields)}. Expected {expected}"
            )
        if given[-self.domain.ndim :] != self.domain.shape:
            raise DomainError(
                f"fields lie on a grid of {given[-self.domain.ndim :]} cells, the domain has "
                f"{self.domain.shape}. Expected {expected}"
            )

    def __repr__(self) -> str:
        """What it holds, in a line; the numbers themselves are in `fields`."""
        samples = f"{len(self.fields)} x " if self.batched else ""
        kind = f"{str(self.fields.dtype).removeprefix('torch.')}, {self.fields.device}"
        return f"Window({samples}{self.num_frames} frames, {kind}; {self.domain})"

    @property
    def num_channels(self) -> int:
        """C."""
        return self.fields.shape[-self.domain.ndim - 1]

    @property
    def num_frames(self) -> int:
        """T."""
        return self.fields.shape[-self.domain.ndim - 2]

    @property
    def batched(self) -> bool:
        """Whether there is a leading batch axis."""
        return self.fields.dim() == self.domain.ndim + 3

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Window:
        """The same frames on a device."""
        return Window(self.fields.to(device, non_blocking=non_blocking), self.domain)

    def last(self, num_frames: int) -> Window:
        """The latest `num_frames` frames, or all if there are fewer."""
        axis = self.fields.dim() - self.domain.ndim - 2
        start = max(0, self.num_frames - num_frames)
        return Window(self.fields.narrow(axis, start, self.num_frames - start), self.domain)

    def slide(self, frame: Tensor) -> Window:
        """Drop the oldest frame and append a new one `(B, C, *space)`."""
        fields = torch.cat([self.fields[:, 1:], frame.unsqueeze(1)], dim=1)
        return Window(fields, self.domain)

    def require_finite(self) -> None:
        """Raise an error that names the first value that is NaN or infinite."""
        # NaN and infinity never leave a sum: NaN stays, and infinity stays or meets its opposite,
        # which is NaN. So a finite sum is enough, and far sooner made than every value is looked
        # at; one that is not may also be of large numbers.
        if bool(self.fields.sum().isfinite()):
            return
        finite = self.fields.isfinite()
        if bool(finite.all()):
            return
        index = tuple(int(i) for i in (~finite).nonzero()[0])
        sample, frame, channel, *cell = index if self.batched else (0, *index)
        raise DomainError(
            f"the window holds {int((~finite).sum())} values that are NaN or infinite, the first "
            f"in sample {sample}, frame {frame}, field '{self.domain.fields[channel]}', cell "
            f"{tuple(cell)}; clean the data or leave that window out"
        )


def require_window(window: object, domain: Domain | None) -> None:
    """Refuse frames without their domain, and say how to give them one.

    Args:
        window: what was given.
        domain: what the model was built for, if that is known.
    """
    if isinstance(window, Window):
        return
    shape = getattr(window, "shape", None)
    given = type(window).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
    wanted = "(B, T, C, *space)"
    if domain is not None:
        sizes = [str(len(domain.fields)), *map(str, domain.shape)]
        wanted = f"(B, T, {', '.join(sizes)})"
    raise DomainError(
        f"the window is a {given}; expected a Window, which knows what the frames live on: "
        f"ot.Window(fields, model.domain) with fields {wanted} in physical units"
    )


PerAxis = int | Sequence[int]
"""One int for all axes, or one for each."""


def per_axis(value: PerAxis, ndim: int, name: str) -> tuple[int, ...]:
    """One int for each axis, from one for all or one for each.

    Args:
        value: an int, or `ndim` of them.
        ndim: number of axes.
        name: what to call it in an error.
    """
    values = (value,) * ndim if is_int(value) else entries(value)
    if len(values) != ndim or not all(map(is_int, values)):
        raise DomainError(f"{name} is {value!r}; expected one int, or one for each of {ndim} axes")
    if any(abs(v) > MAX_INT for v in values):
        raise DomainError(f"{name} is beyond {MAX_INT}; expected a number of cells")
    return tuple(map(int, values))


def is_int(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, NumPy's or Python's; 4.0 and True are none."""
    return type(value) is int or (type(value) is not bool and isinstance(value, Integral))


def _is_number(value: object) -> TypeGuard[float]:
    return type(value) is not bool and isinstance(value, Real)


def entries(value: object) -> tuple[Any, ...]:
    """The entries of a list, tuple or array; of what has none, nothing, which fits nowhere."""
    try:
        return () if isinstance(value, str) else tuple(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return ()


def _as_tensor(fields: Any) -> Tensor:
    array = cast("np.ndarray[Any, Any]", fields) if isinstance(fields, np.ndarray) else None
    if array is None or array.dtype.kind != "f" or array.dtype.itemsize > 8:
        given = cast("object", fields)
        kind = f"a {type(given).__name__}" if array is None else f"an array of {array.dtype}"
        raise DomainError(
            f"fields are {kind}; expected a tensor, or a NumPy array, of floating-point numbers: "
            "convert them, e.g. with torch.tensor(fields, dtype=torch.float32)"
        )
    # torch takes neither foreign byte orders, nor negative strides, nor memory that is locked.
    native: Any = np.require(
        array.astype(array.dtype.newbyteorder("="), copy=False), requirements=["C", "W"]
    )
    return torch.as_tensor(native)


def _positive(value: float, name: str) -> float:
    if not _is_number(value) or not 0 < value < math.inf:
        raise DomainError(f"{name} is {value!r}; expected a positive number")
    return float(value)


def _dt_range(dt_range: Sequence[float], dt: float) -> tuple[float, float]:
    given = tuple(_positive(value, "dt_range") for value in entries(dt_range))
    if len(given) != 2 or not given[0] <= dt <= given[1]:
        raise DomainError(
            f"dt_range is {dt_range!r}; expected the shortest and the longest time between frames, "
            f"with dt {dt} between them"
        )
    return given[0], given[1]


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (shape,) if is_int(shape) else entries(shape)
    if not 1 <= len(sizes) <= MAX_AXES:
        raise DomainError(f"shape is {shape!r}; expected one to {MAX_AXES} axes, such as (64, 64)")
    if any(_is_number(n) and n > MAX_INT for n in sizes):
        raise DomainError(f"shape has an axis of more than {MAX_INT} cells")
    if not all(_is_number(n) and n > 0 and n == int(n) for n in sizes):
        raise DomainError(f"shape is {shape!r}; expected a positive number of cells each")
    return tuple(int(n) for n in sizes)


def _extent(extent: float | Sequence[float], ndim: int) -> tuple[float, ...]:
    lengths = (extent,) if _is_number(extent) else entries(extent)
    if len(lengths) != ndim:
        raise DomainError(f"extent is {extent!r}; expected one length for each of {ndim} axes")
    return tuple(_positive(length, "extent") for length in lengths)


def _fields(fields: Sequence[str]) -> tuple[str, ...]:
    names = entries(fields)
    if not names or not all(isinstance(name, str) for name in names):
        raise DomainError(f"fields is {fields!r}; expected a tuple of names, one for each channel")
    if len(set(fields)) != len(fields):
        raise DomainError(f"fields are {tuple(fields)}; each name may occur once")
    return tuple(fields)


def _boundaries(spec: BoundarySpec, ndim: int) -> tuple[Sides, ...]:
    axes = (spec,) * ndim if isinstance(spec, str) else entries(spec)
    if len(axes) != ndim:
        raise DomainError(
            f"boundaries are {spec!r}; expected one for each of {ndim} axes, each a name or a pair "
            "(lower side, upper side)"
        )
    return tuple(_sides(axis) for axis in axes)


def parse_boundaries(text: str) -> BoundarySpec:
    """One name for all axes, or one for each with commas; `lower/upper` where sides differ."""
    axes = text.split(",")
    if len(axes) == 1 and "/" not in text:
        return text
    return [axis.split("/") if "/" in axis else axis for axis in axes]


def _sides(spec: str | Sequence[str]) -> Sides:
    names = (spec, spec) if isinstance(spec, str) else entries(spec)
    known = [str(kind) for kind in Boundary]
    if len(names) != 2 or any(name not in known for name in names):
        raise DomainError(f"boundary is {spec!r}; expected one of {known}, or a pair of them")
    lower, upper = Boundary(names[0]), Boundary(names[1])
    if (lower is Boundary.PERIODIC) != (upper is Boundary.PERIODIC):
        raise DomainError(f"boundary is {spec!r}; an axis is periodic on both sides or on neither")
    return lower, upper
