"""What a Well file is.

One HDF5 file holds `n` trajectories of `T` frames on one grid:

    /                      dataset_name, grid_type, n_spatial_dims, n_trajectories,
                           simulation_parameters and one attribute for each of them
    /dimensions            spatial_dims; datasets time (T,) and one of coordinates for each axis
    /boundary_conditions   one group for each condition: bc_type, associated_dims, mask
    /scalars               field_names; numbers that vary with the sample, the time or neither
    /t0_fields /t1_fields /t2_fields
                           field_names; scalars (n, T, *S), vectors (n, T, *S, D) and tensors
                           (n, T, *S, D, D); an axis along which a field does not vary is missing

`read_layout` turns this metadata into a `Layout` and complains, by file and object, about what is
not so. Values of fields are not touched.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import h5py
import numpy as np

from overtone.data.attributes import (
    as_text,
    find_dataset,
    find_group,
    malformed,
    read_attribute,
    read_count,
    read_flag,
    read_flags,
    read_names,
    read_word,
)
from overtone.domain import Boundary, Domain, Sides
from overtone.errors import DataError, DomainError
from overtone.guard.limits import require_memory

GROUPS = ("t0_fields", "t1_fields", "t2_fields")
"""Groups of fields by tensor order."""
NUMBERED_KINDS = (Boundary.WALL, Boundary.OPEN, Boundary.PERIODIC)
"""The Well's numbers for kinds of boundary: 0, 1, 2."""
DEFAULTS = "overtone_defaults"
"""Attribute of an imported file: what of it nobody gave, with commas in between."""
ROOT_ATTRIBUTES = ("dataset_name", "grid_type", "n_spatial_dims", "n_trajectories")


@dataclass(frozen=True)
class FieldSpec:
    """A field and the axes that it has.

    Attributes:
        name: e.g. `"velocity"`.
        order: tensor order: 0 scalar, 1 vector, 2 tensor.
        sample_varying: whether it differs between trajectories.
        time_varying: whether it differs between frames.
        dim_varying: for each spatial axis, whether it varies along it; empty means all.
    """

    name: str
    order: int = 0
    sample_varying: bool = True
    time_varying: bool = True
    dim_varying: tuple[bool, ...] = ()

    @property
    def group(self) -> str:
        """Name of the HDF5 group that holds it."""
        return GROUPS[self.order]

    def varies(self, ndim: int) -> tuple[bool, ...]:
        """For each of `ndim` spatial axes, whether the field varies along it."""
        return self.dim_varying or (True,) * ndim

    def components(self, ndim: int) -> int:
        """Number of channels on `ndim` spatial axes."""
        return ndim**self.order

    def channels(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """Names of its channels, components row by row, e.g. `velocity_x`, `D_xy`."""
        suffixes = itertools.product(axes, repeat=self.order)
        return tuple(f"{self.name}_{''.join(s)}" if s else self.name for s in suffixes)

    def stored_shape(self, num: int, steps: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of its dataset for `num` trajectories of `steps` frames on a grid."""
        space = (n for n, varies in zip(shape, self.varies(len(shape)), strict=True) if varies)
        leading = (num,) * self.sample_varying + (steps,) * self.time_varying
        return (*leading, *space, *(len(shape),) * self.order)

    def padded_shape(self, num: int, steps: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """As `stored_shape`, with an axis of length 1 where a spatial axis would be missing."""
        space = (n if v else 1 for n, v in zip(shape, self.varies(len(shape)), strict=True))
        leading = (num,) * self.sample_varying + (steps,) * self.time_varying
        return (*leading, *space, *(len(shape),) * self.order)


@dataclass(frozen=True)
class ScalarSpec:
    """A number of a file: constant, or varying with the sample, the time or both."""

    name: str
    sample_varying: bool = False
    time_varying: bool = False


@dataclass(frozen=True)
class Layout:
    """The metadata of one file.

    Attributes:
        dataset_name: e.g. `"shear_flow"`.
        grid_type: e.g. `"cartesian"`.
        axes: names of the spatial axes.
        shape: cells along each of them.
        num_trajectories: n.
        num_steps: T, frames of each trajectory.
        fields: in The Well's order.
        scalars: what `/scalars` holds.
        parameters: simulation parameters, from the root attributes.
        extent: physical length of each axis.
        boundaries: lower and upper side of each axis.
        dt: time between frames, their mean where it varies.
        dt_range: the shortest and the longest.
        notes: what is odd but no reason to refuse the file.
        defaults: what nobody gave when the file was imported, e.g. `"dt"`.
        stamp: size and modification time of the file when this was read; see `Location.stamp`.
    """

    dataset_name: str
    grid_type: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    num_trajectories: int
    num_steps: int
    fields: tuple[FieldSpec, ...]
    scalars: tuple[ScalarSpec, ...]
    parameters: Mapping[str, float | str]
    extent: tuple[float, ...]
    boundaries: tuple[Sides, ...]
    dt: float
    dt_range: tuple[float, float]
    notes: tuple[str, ...] = field(default=(), compare=False)
    defaults: tuple[str, ...] = field(default=(), compare=False)
    stamp: tuple[int | str, ...] = field(default=(), compare=False)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of all channels, in The Well's order."""
        return tuple(name for spec in self.fields for name in spec.channels(self.axes))

    @property
    def domain(self) -> Domain:
        """What all channels live on."""
        return Domain(
            self.shape, self.extent, self.boundaries, self.channels, self.dt, self.dt_range
        )


def read_layout(file: h5py.File, name: str) -> Layout:
    """Read and verify the metadata of an open file.

    Args:
        file: an open HDF5 file that `safety.inspect` let pass.
        name: what to call it in an error.
    """
    axes = read_names(find_group(file, "dimensions", name), "spatial_dims", name)
    ndim = read_count(file, "n_spatial_dims", name)
    if ndim != len(axes) or not 1 <= len(axes) <= 3:
        raise DataError(
            f"'{name}': n_spatial_dims is {ndim} and spatial_dims are {axes}; expected the names "
            "of one, two or three axes"
        )
    notes: list[str] = []
    dimensions = {key: _dimension(file, key, name) for key in ("time", *axes)}
    shape = tuple(dimensions[axis].shape[-1] for axis in axes)
    num, steps = read_count(file, "n_trajectories", name), dimensions["time"].shape[-1]
    if num < 1 or steps < 1 or 0 in shape:
        raise DataError(
            f"'{name}' has {num} trajectories of {steps} frames on a grid of {shape}; it is empty"
        )
    fields = tuple(
        _field(file, order, key, (num, steps, shape), name)
        for order, group in enumerate(GROUPS)
        for key in read_names(find_group(file, group, name), "field_names", name)
    )
    if not fields:
        raise DataError(f"'{name}' lists no fields in {', '.join(GROUPS)}")
    extent = tuple(_extent(axis, dimensions[axis][0], notes) for axis in axes)
    dt, dt_range = _interval(dimensions["time"], notes)
    defaults = read_word(file, DEFAULTS, name).split(",") if DEFAULTS in file.attrs else ()
    layout = Layout(
        dataset_name=read_word(file, "dataset_name", name),
        grid_type=read_word(file, "grid_type", name),
        axes=axes,
        shape=shape,
        num_trajectories=num,
        num_steps=steps,
        fields=fields,
        scalars=_scalars(file, num, steps, name),
        parameters=_parameters(file, name),
        extent=extent,
        boundaries=_boundaries(file, axes, shape, name),
        dt=dt,
        dt_range=dt_range,
        notes=tuple(notes),
        defaults=tuple(defaults),
    )
    try:
        _ = layout.domain
    except DomainError as error:
        raise DataError(f"'{name}' describes an impossible domain: {error}") from error
    return layout


def _dimension(file: h5py.File, key: str, name: str) -> np.ndarray:
    """Coordinates of one axis, float64 `(samples, N)`; one sample if all have the same."""
    dataset = find_dataset(find_group(file, "dimensions", name), key, name)
    if not 1 <= dataset.ndim <= 3:
        raise DataError(f"'{name}': {dataset.name} has shape {dataset.shape}; expected one axis")
    read_flag(dataset, "sample_varying", name)
    require_memory(
        math.prod(dataset.shape) * 8, f"'{name}': {dataset.name}", "use a machine with more"
    )
    values = np.asarray(dataset[()], dtype=np.float64)
    return values.reshape(-1, values.shape[-1])


def _extent(axis: str, x: np.ndarray, notes: list[str]) -> float:
    """Physical length of an axis: from its first to its last point, and half a cell beyond each."""
    if len(x) == 1:
        return 1.0
    steps = np.diff(x) if np.isfinite(x).all() else np.zeros(1)
    if not ((steps > 0).all() or (steps < 0).all()):
        notes.append(f"coordinates '{axis}' are not monotonic; cells of length 1 are assumed")
        return float(len(x))
    return digits(abs(x[-1] - x[0] + (steps[0] + steps[-1]) / 2))


def digits(value: float) -> float:
    """What float32 coordinates are good for: six digits, so that 0.1 comes out as 0.1."""
    return float(f"{value:.6g}")


def _interval(times: np.ndarray, notes: list[str]) -> tuple[float, tuple[float, float]]:
    """Mean time between frames of the first sample, and the shortest and longest of all.

    Args:
        times: `(samples, T)`.
        notes: told what is odd.
    """
    if times.shape[1] == 1:
        return 1.0, (1.0, 1.0)
    steps = np.diff(times) if np.isfinite(times).all() else np.zeros((1, 1))
    mean = float(steps[0].mean())
    if not np.isfinite(mean) or mean <= 0:
        notes.append("'time' does not increase; a frame interval of 1 is assumed")
        return 1.0, (1.0, 1.0)
    dt = digits(mean)
    if np.abs(steps - mean).max() <= 0.01 * mean:
        return dt, (dt, dt)
    notes.append(
        f"frames are {steps.min():.4g} to {steps.max():.4g} apart in time; the first trajectory's "
        f"mean {mean:.4g} is used as dt"
    )
    # A step back in time is no step; the others say how short one can be.
    shortest, longest = digits(steps[steps > 0].min()), digits(steps.max())
    return dt, (min(shortest, dt), max(longest, dt))


def _field(
    file: h5py.File, order: int, key: str, size: tuple[int, int, tuple[int, ...]], name: str
) -> FieldSpec:
    dataset = find_dataset(find_group(file, GROUPS[order], name), key, name)
    ndim = len(size[2])
    varying = read_flags(dataset, "dim_varying", ndim, name)
    spec = FieldSpec(
        name=key,
        order=order,
        sample_varying=read_flag(dataset, "sample_varying", name),
        time_varying=read_flag(dataset, "time_varying", name),
        dim_varying=() if all(varying) else varying,
    )
    if dataset.shape not in (spec.stored_shape(*size), spec.padded_shape(*size)):
        raise DataError(
            f"'{name}': {dataset.name} has shape {dataset.shape}; its attributes and the grid ask "
            f"for {spec.stored_shape(*size)}"
        )
    return spec


def _scalars(file: h5py.File, num: int, steps: int, name: str) -> tuple[ScalarSpec, ...]:
    group = find_group(file, "scalars", name)
    specs: list[ScalarSpec] = []
    for key in read_names(group, "field_names", name):
        dataset = find_dataset(group, key, name)
        flags = read_flag(dataset, "sample_varying", name), read_flag(dataset, "time_varying", name)
        expected = (num,) * flags[0] + (steps,) * flags[1]
        if dataset.shape != expected and dataset.size != (np.prod(expected) if expected else 1):
            raise DataError(
                f"'{name}': {dataset.name} has shape {dataset.shape}; its attributes ask for "
                f"{expected}"
            )
        specs.append(ScalarSpec(key, *flags))
    return tuple(specs)


def _parameters(file: h5py.File, name: str) -> dict[str, float | str]:
    parameters: dict[str, float | str] = {}
    for key in read_names(file, "simulation_parameters", name):
        value = np.asarray(read_attribute(file, key, name))
        number = value.size == 1 and value.dtype.kind in "fiub"
        parameters[key] = float(value.item()) if number else str(value.tolist())
    return parameters


def _boundaries(
    file: h5py.File, axes: tuple[str, ...], shape: tuple[int, ...], name: str
) -> tuple[Sides, ...]:
    """The kind of each side: open unless a condition's mask says otherwise.

    A side is a wall if all of it is; it is periodic or open if any of it is. Both sides of an axis
    are periodic if one of them is.
    """
    sides = {axis: [Boundary.OPEN, Boundary.OPEN] for axis in axes}
    group = find_group(file, "boundary_conditions", name)
    for key in group.keys():  # noqa: SIM118
        condition = find_group(group, key, name)
        kind = _kind(condition, name)
        dims = read_names(condition, "associated_dims", name)
        mask = find_dataset(condition, "mask", name)
        if not dims:
            continue  # about the inside of the domain, not about a side
        if unknown := set(dims) - set(axes):
            raise DataError(f"'{name}': {condition.name} is about {sorted(unknown)}, not {axes}")
        if mask.shape[-len(dims) :] != tuple(shape[axes.index(dim)] for dim in dims):
            raise DataError(
                f"'{name}': {mask.name} has shape {mask.shape}, which does not fit {dims} of a "
                f"grid of {shape}"
            )
        require_memory(math.prod(mask.shape), f"'{name}': {mask.name}", "use a machine with more")
        values: np.ndarray = mask[()].astype(bool)
        for position, dim in enumerate(dims, start=mask.ndim - len(dims)):
            for side, index in enumerate((0, -1)):
                edge = values.take(index, axis=position)
                if edge.all() if kind is Boundary.WALL else edge.any():
                    sides[dim][side] = kind
    for axis in axes:
        if Boundary.PERIODIC in sides[axis]:
            sides[axis] = [Boundary.PERIODIC] * 2
    return tuple((sides[axis][0], sides[axis][1]) for axis in axes)


def _kind(condition: h5py.Group, name: str) -> Boundary:
    """A kind of boundary from The Well's name or number for it."""
    value = np.asarray(read_attribute(condition, "bc_type", name))
    text = as_text(value.item()) if value.size == 1 else str(value)
    if text in map(str, range(len(NUMBERED_KINDS))):
        return NUMBERED_KINDS[int(text)]
    try:
        return Boundary(text.lower())
    except ValueError:
        known = ", ".join(kind.upper() for kind in Boundary)
        raise malformed(condition, "bc_type", text, f"one of {known}", name) from None
