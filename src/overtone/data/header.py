"""What a file of The Well's layout says about itself, and how that is written.

Everything but the values of its fields: attributes, axes, boundaries, scalars, and what describes
each field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np

from overtone.data.layout import GROUPS, ROOT_ATTRIBUTES, FieldSpec
from overtone.domain import BoundarySpec, Domain, Sides
from overtone.errors import DataError
from overtone.guard.names import shown

TEXT = h5py.string_dtype()
RESERVED = {*ROOT_ATTRIBUTES, "simulation_parameters"}


@dataclass(frozen=True)
class Header:
    """What a file says about itself, apart from its fields.

    Args:
        name: of the dataset, e.g. `"shear_flow"`.
        shape: cells along each axis.
        extent: physical length of each axis.
        boundaries: as for `Domain`.
        dt: time between frames.
        axes: names of the axes; x, y, z by default.
        coordinates: positions of the cells along each axis; centres that begin at 0 by default.
        parameters: physical parameters, which also become constant scalars as in The Well.
        attributes: further attributes of the file.
        grid_type: as The Well names it.
    """

    name: str
    shape: tuple[int, ...]
    extent: tuple[float, ...]
    boundaries: BoundarySpec
    dt: float = 1.0
    axes: tuple[str, ...] = ()
    coordinates: tuple[Sequence[float], ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    grid_type: str = "cartesian"

    def __post_init__(self) -> None:
        ndim = len(Domain(self.shape, self.extent, self.boundaries, ("any",), self.dt).shape)
        axes = tuple(self.axes) or ("x", "y", "z")[:ndim]
        if len(axes) != ndim or len(set(axes)) != ndim or "time" in axes:
            raise DataError(f"axes are {axes}; expected {ndim} different names, none 'time'")
        given = tuple(self.coordinates) or tuple(
            (np.arange(n) + 0.5) * length / n
            for n, length in zip(self.shape, self.extent, strict=True)
        )
        if tuple(len(x) for x in given) != tuple(self.shape):
            raise DataError(
                f"coordinates have {tuple(len(x) for x in given)} points; the grid has {self.shape}"
            )
        for text in (self.name, self.grid_type):
            if not text or shown(text) != text:
                raise DataError(f"'{shown(text)}' can't be the name of a dataset or of its grid")
        for name in (*axes, *self.parameters, *self.attributes):
            require_name(name, "an axis or a parameter")
        if taken := RESERVED & {*self.parameters, *self.attributes}:
            raise DataError(f"{sorted(taken)} can't be names of parameters; the layout uses them")
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "coordinates", tuple(tuple(map(float, x)) for x in given))

    @property
    def sides(self) -> tuple[Sides, ...]:
        """Lower and upper side of each axis."""
        return Domain(self.shape, self.extent, self.boundaries, ("any",), self.dt).boundaries


def write_header(file: h5py.File, header: Header, num_trajectories: int) -> None:
    """Attributes, axes and boundaries, and the groups that fields go to."""
    file.attrs["dataset_name"] = header.name
    file.attrs["grid_type"] = header.grid_type
    file.attrs["n_spatial_dims"] = len(header.shape)
    file.attrs["n_trajectories"] = num_trajectories
    file.attrs["simulation_parameters"] = _texts(list(header.parameters))
    for name, value in {**header.parameters, **header.attributes}.items():
        file.attrs[name] = value
    dimensions = file.create_group("dimensions")
    dimensions.attrs["spatial_dims"] = _texts(header.axes)
    for axis, x in zip(header.axes, header.coordinates, strict=True):
        write_dimension(file, axis, np.asarray(x), time_varying=False)
    conditions = file.create_group("boundary_conditions")
    for axis, n, sides in zip(header.axes, header.shape, header.sides, strict=True):
        for kind in dict.fromkeys(sides):
            group = conditions.create_group(f"{axis}_{kind}")
            group.attrs["associated_dims"] = _texts([axis])
            group.attrs["associated_fields"] = _texts([])
            group.attrs["bc_type"] = kind.upper()
            group.attrs["sample_varying"] = False
            group.attrs["time_varying"] = False
            mask = np.zeros(n, dtype=bool)
            mask[0], mask[-1] = mask[0] or sides[0] is kind, mask[-1] or sides[1] is kind
            group.create_dataset("mask", data=mask)
    for name in GROUPS:
        file.create_group(name)


def write_dimension(file: h5py.File, name: str, x: np.ndarray, *, time_varying: bool) -> None:
    """The positions `(n,)` of cells along an axis, or the times of frames."""
    dataset = file.create_dataset(f"dimensions/{name}", data=x.astype(np.float32))
    dataset.attrs["sample_varying"] = False
    dataset.attrs["time_varying"] = time_varying


def write_scalars(
    file: h5py.File, scalars: Mapping[str, Any], num_trajectories: int, steps: int | None
) -> None:
    """Numbers, one for all, one for each trajectory `(n,)` or for each frame `(n, T)`."""
    for name in scalars:
        require_name(name, "a scalar")
    group = file.create_group("scalars")
    group.attrs["field_names"] = _texts(list(scalars))
    for name, value in scalars.items():
        values = np.asarray(value, dtype=np.float32)
        allowed = [(), (num_trajectories,)] + ([(num_trajectories, steps)] if steps else [])
        if values.shape not in allowed:
            raise DataError(f"scalar '{name}' has shape {values.shape}; expected one of {allowed}")
        dataset = group.create_dataset(name, data=values)
        dataset.attrs["sample_varying"] = values.ndim > 0
        dataset.attrs["time_varying"] = values.ndim > 1


def describe_field(dataset: h5py.Dataset, spec: FieldSpec, ndim: int) -> None:
    """What the values of a field vary with."""
    dataset.attrs["dim_varying"] = np.array(spec.varies(ndim), dtype=bool)
    dataset.attrs["sample_varying"] = spec.sample_varying
    dataset.attrs["time_varying"] = spec.time_varying
    if spec.order == 2:
        dataset.attrs["symmetric"] = False
        dataset.attrs["antisymmetric"] = False


def write_field_names(file: h5py.File, specs: Sequence[FieldSpec]) -> None:
    """The names of the fields of each tensor order."""
    for order, group in enumerate(GROUPS):
        names = [spec.name for spec in specs if spec.order == order]
        file[group].attrs["field_names"] = _texts(names)


def _texts(names: Sequence[str]) -> np.ndarray:
    return np.array(list(names), dtype=TEXT)


def require_name(name: str, what: str) -> None:
    """HDF5 would take a slash for a group, and others would print what they can't."""
    if not name or "/" in name or name.startswith(".") or shown(name) != name:
        raise DataError(
            f"'{shown(name)}' can't be the name of {what}; expected printable characters, no '/', "
            "and no '.' at the beginning"
        )
