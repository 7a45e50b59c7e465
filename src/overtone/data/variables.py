"""Arrays in files of other people's, opened and not yet read: npy, npz, zarr, HDF5 and netCDF-4.

A file is an `Arrays`: its variables by name, each with what the file says about it. HDF5 and
netCDF-4 name the axes of an array by dimension scales, zarr by `dimension_names` (version 3) or
`_ARRAY_DIMENSIONS` (version 2); npy and npz name nothing. netCDF-4 is HDF5 and read as such.

What CF's attributes say of values is done when they are read: packed integers are unpacked, and
values that stand for "missing" become NaN. Pickled objects are never loaded.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from overtone.data.attributes import MAX_ATTRIBUTE_BYTES
from overtone.data.layout import GROUPS
from overtone.data.location import SUFFIXES, Location
from overtone.data.safety import (
    NUMBERS,
    inspect_npz,
    inspect_zarr,
    is_bare_dimension,
    read_json,
)
from overtone.errors import DataError
from overtone.guard.names import shown

FORMATS = (".npy", ".npz", ".zarr", ".nc")
"""What holds arrays and nothing else; HDF5 files (`SUFFIXES`) may also be The Well's."""
ABOUT_VALUES = ("scale_factor", "add_offset", "_FillValue", "missing_value")
ABOUT_AXES = ("axis", "standard_name", "units")
ABOUT_ALL = ("dt", "extent", "boundaries")
"""Attributes of a file that are read, all others are nothing to us."""
NOT_A_COORDINATE = "_nc4_non_coord_"
"""How netCDF-4 begins the name of a variable that is called like a dimension and is none."""


@dataclass(frozen=True, eq=False)
class Variable:
    """An array, read as it is sliced.

    Attributes:
        name: its path in the file, without a slash at the beginning.
        values: what has a shape and a dtype and can be sliced.
        dims: names of its axes; empty where the file gives none.
        attributes: what the file says about it, of `ABOUT_VALUES` and `ABOUT_AXES`.
    """

    name: str
    values: Any
    dims: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its size along each axis."""
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.values.shape)

    @property
    def dtype(self) -> np.dtype:
        """As it is stored."""
        return np.dtype(self.values.dtype)

    def __getitem__(self, index: Any) -> np.ndarray:
        """Values in this machine's byte order, unpacked, with NaN for those that are missing."""
        stored = self.values[index]
        values = np.asarray(stored)
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        missing = np.ma.getmaskarray(stored) if np.ma.isMaskedArray(stored) else None
        for key in ("_FillValue", "missing_value"):
            for mark in np.ravel(self.attributes.get(key, ())):
                found = values == mark
                missing = found if missing is None else missing | found
        scale, offset = (self.attributes.get(key) for key in ABOUT_VALUES[:2])
        if scale is not None or offset is not None:
            values = values * float(np.ravel(1.0 if scale is None else scale)[0])
            values = values + float(np.ravel(0.0 if offset is None else offset)[0])
        if missing is not None and bool(missing.any()):
            wide = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
            values = np.where(missing, np.nan, values).astype(wide)
        return values


class Arrays(dict[str, Variable]):
    """The variables of a file by name.

    Args:
        variables: all of them.
        attributes: what the file says about all of them, of `ABOUT_ALL`.
    """

    def __init__(self, variables: Mapping[str, Variable] = {}, attributes: Mapping[str, Any] = {}):
        super().__init__(variables)
        self.attributes = dict(attributes)


@contextmanager
def open_arrays(path: str | Path) -> Iterator[Arrays]:
    """The arrays of a file by name, those of an `.npz` in memory, others as they are sliced."""
    path = Path(path)
    kinds = ", ".join((*FORMATS, *SUFFIXES))
    if not path.exists():
        raise DataError(f"'{path}' does not exist; expected a file that ends in one of {kinds}")
    if not is_known(path):
        raise DataError(
            f"'{path}' is of no known kind; expected a name that ends in one of {kinds}"
        )
    openers = {".npy": _open_npy, ".npz": _open_npz, ".zarr": _open_zarr}
    suffix = ".zarr" if path.is_dir() else path.suffix.lower()
    with openers.get(suffix, _open_hdf5)(path) as arrays:
        yield arrays


def is_known(path: Path) -> bool:
    """Whether a path leads to a file of arrays or to a zarr store, by its name and what it is."""
    if path.is_dir():
        described = any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))
        return described or path.suffix == ".zarr"
    return path.suffix.lower() in {*FORMATS, *SUFFIXES, ".nc4"} - {".zarr"}


class _Reader:
    """An array in a file, whose errors name the file.

    Args:
        array: as zarr or h5py have it open.
        path: of the file, for an error.
        verify: called after every read; raises an error if the file has changed meanwhile.
    """

    def __init__(self, array: Any, path: Path, verify: Callable[[], None] | None = None):
        self.shape, self.dtype = tuple(array.shape), np.dtype(array.dtype)
        self._array, self._path, self._verify = array, path, verify

    def __getitem__(self, index: Any) -> np.ndarray:
        try:
            values = np.asarray(self._array[index])
        except Exception as error:  # those of decoders have no common base class
            raise DataError(
                f"'{shown(self._path)}' can't be read: {shown(error)}. It is damaged; copy or "
                "download it again"
            ) from error
        if self._verify:
            self._verify()
        return values


@contextmanager
def _open_npy(path: Path) -> Iterator[Arrays]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"'{path}' can't be read as an array of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"'{path}' is a zip file; name it .npz if it holds arrays")
    yield Arrays({"": Variable("", array)})


@contextmanager
def _open_npz(path: Path) -> Iterator[Arrays]:
    try:
        inspect_npz(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except DataError:
        raise
    except (ValueError, OSError, EOFError, MemoryError, RuntimeError) as error:
        raise DataError(f"'{path}' can't be read as arrays of numbers: {error}") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"'{path}' is a damaged zip file: {error}") from error
    about = {key: arrays.pop(key) for key in ABOUT_ALL if key in arrays}
    yield Arrays({key: Variable(key, array) for key, array in arrays.items()}, about)


@contextmanager
def _open_zarr(path: Path) -> Iterator[Arrays]:
    try:
        import zarr  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DataError(
            f"'{path}' needs zarr, which is not installed; pip install 'overtone[arrays]'"
        ) from error
    arrays, members = {}, {"": path}
    if inspect_zarr(path) is None:  # a group: its members by their folders, not by what it says
        members = {f.name: f for f in sorted(path.iterdir()) if f.is_dir() or f.is_symlink()}
    for name, folder in members.items():
        if name and folder.is_symlink():
            raise DataError(f"'{shown(folder)}' is a link; copy the data into the store")
        version = inspect_zarr(folder) if not name or _holds_numbers(folder) else None
        if version is None:
            continue
        try:
            array = zarr.open_array(str(folder), mode="r", zarr_format=version)
        except Exception as error:  # zarr's own errors have no common base class
            raise DataError(f"'{shown(folder)}' can't be read by zarr: {shown(error)}") from error
        about = _zarr_attributes(folder)
        dims = getattr(array.metadata, "dimension_names", None) or about.get("_ARRAY_DIMENSIONS")
        dims = tuple(map(str, dims)) if dims and len(dims) == array.ndim and all(dims) else ()
        kept = _numbers_and_names(about, (*ABOUT_VALUES, *ABOUT_AXES))
        arrays[name] = Variable(name, _Reader(array, folder), dims, kept)
    yield Arrays(arrays, _numbers_and_names(_zarr_attributes(path), ABOUT_ALL))


def _holds_numbers(folder: Path) -> bool:
    """Whether a member of a group is no array of texts or flags, which would be none of ours."""
    for name, key in (("zarr.json", "data_type"), (".zarray", "dtype")):
        if (folder / name).is_file():
            try:
                dtype = json.loads(read_json(folder / name)).get(key, "f4")
            except (ValueError, RecursionError, AttributeError):
                return True  # `inspect_zarr` says what is wrong
            return isinstance(dtype, str) and NUMBERS.fullmatch(dtype) is not None
    return True


def _zarr_attributes(folder: Path) -> Mapping[str, Any]:
    """What a zarr array or group says about itself, in either version of the format."""
    for name, inner in (("zarr.json", "attributes"), (".zattrs", None)):
        if (folder / name).is_file():
            try:
                content = json.loads(read_json(folder / name))
                found = content.get(inner, {}) if inner else content
            except (ValueError, RecursionError, AttributeError):
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def _numbers_and_names(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Those attributes that are what they should be; zarr's own texts for NaN are not."""
    found = {}
    for key in keys:
        value = attributes.get(key)
        named = isinstance(value, str) and key not in ABOUT_VALUES
        listed = isinstance(value, list) and all(isinstance(v, int | float) for v in value)
        if named or listed or isinstance(value, int | float):
            found[key] = value
    return found


@contextmanager
def _open_hdf5(path: Path) -> Iterator[Arrays]:
    place = Location(str(path))
    if place.read(3) == b"CDF":
        raise DataError(
            f"'{path}' is a classic netCDF file; convert it with `nccopy -k nc4 in.nc out.nc`, or "
            "open it with xarray and use overtone.data.from_xarray"
        )
    with place.open() as file:
        if GROUPS[0] in file and "dimensions" in file:
            raise DataError(
                f"'{path}' is in The Well's layout already; there is nothing to import. Put such "
                "files into NAME/data/train, NAME/data/valid and NAME/data/test, and use NAME"
            )
        before = place.stamp(file)

        def verify() -> None:
            if place.stamp(file) != before:
                raise DataError(f"'{path}' has changed while it was read; try again")

        variables, about = {}, _hdf5_attributes(file, ABOUT_ALL)
        for name, entry in _datasets(file).items():
            if entry.ndim == 0 and name in ABOUT_ALL and entry.dtype.kind in "fiu":
                about[name] = entry[()]
            if entry.ndim:
                values = _Reader(entry, path, verify)
                said = _hdf5_attributes(entry, (*ABOUT_VALUES, *ABOUT_AXES))
                if "_FillValue" not in said and path.suffix not in SUFFIXES and entry.fillvalue:
                    said["_FillValue"] = entry.fillvalue  # what netCDF leaves where nothing is
                variables[name] = Variable(name, values, _dims(entry), said)
        yield Arrays(variables, about)


def _datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Datasets of a file by their paths, each once; not those that are no numbers or hold none."""
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str, entry: h5py.Group | h5py.Dataset) -> None:
        if not isinstance(entry, h5py.Dataset) or is_bare_dimension(entry):
            return
        if entry.dtype.kind in "fiubc":
            found[name.replace(NOT_A_COORDINATE, "")] = entry

    file.visititems(visit)
    return found


def _dims(dataset: h5py.Dataset) -> tuple[str, ...]:
    """Names of a dataset's axes by its dimension scales or labels; empty if one has none."""
    if dataset.is_scale and dataset.ndim == 1:
        return ((dataset.name or "").strip("/"),)
    try:
        names = [str((a[0].name if len(a) else None) or a.label) for a in dataset.dims]
    except (OSError, RuntimeError, KeyError, ValueError, TypeError):  # not as HDF5 makes them
        return ()
    return tuple(name.strip("/") for name in names) if all(names) else ()


def _hdf5_attributes(where: h5py.HLObject, keys: tuple[str, ...]) -> dict[str, Any]:
    """Some attributes of an object; those of a size or type that says nothing are left out."""
    found: dict[str, Any] = {}
    for key in keys:
        if key not in where.attrs:
            continue
        about = where.attrs.get_id(key)
        if math.prod(about.shape or ()) * about.dtype.itemsize > MAX_ATTRIBUTE_BYTES:
            continue
        try:
            value = where.attrs[key]
        except (OSError, TypeError, UnicodeError, RuntimeError):
            continue
        value = value.decode(errors="replace") if isinstance(value, bytes) else value
        numeric = np.asarray(value).dtype.kind in "fiu"
        if numeric or (isinstance(value, str) and key not in ABOUT_VALUES):
            found[key] = value
    return found


__all__ = ["FORMATS", "Arrays", "Variable", "is_known", "open_arrays"]
