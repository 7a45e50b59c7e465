"""Where trajectories come from: files, arrays and tensors in memory, xarray's datasets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from overtone.data.facts import Given
from overtone.data.layout import FieldSpec
from overtone.data.source import parse_fields
from overtone.data.trajectories import Trajectories
from overtone.data.variables import ABOUT_ALL, ABOUT_AXES, Arrays, Variable, is_known, open_arrays
from overtone.domain import BoundarySpec
from overtone.errors import DataError

Fields = str | Sequence[FieldSpec] | Mapping[FieldSpec, tuple[str, ...]]
"""What channels are: `"density,velocity:1"`, see `parse_fields`, or the same as data."""
Runs = Any
"""An array or tensor, arrays by name, or a list of either, one for each run."""


def from_files(
    paths: str | Path | Sequence[str | Path],
    *,
    fields: Fields | None = None,
    dataset: str | Sequence[str] = (),
    layout: str | None = None,
    dt: float | None = None,
    extent: float | Sequence[float] | None = None,
    boundaries: BoundarySpec | None = None,
    name: str | None = None,
) -> Trajectories:
    """Simulations in `.npy`, `.npz`, `.zarr`, `.nc` or `.hdf5` files; nothing is read yet.

    Args:
        paths: files, or folders of them; each may hold one trajectory or several.
        fields: what the channels are, e.g. `"density,velocity:1"`; see `parse_fields`. By default
            the arrays that have an axis of time and one of space.
        dataset: names of the arrays to use.
        layout: a letter for each axis: n trajectories, t frames, c channels, x y z cells; or
            `"pdebench"`. By default what names tell; asked for where that leaves a choice.
        dt: time between frames; from the file's coordinate of time, or 1, by default.
        extent: physical length of each axis; from coordinates, or cells of length 1, by default.
        boundaries: as for `Domain`; periodic by default.
        name: of the dataset; the first path's by default.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files = [file for path in given for file in _files_of(Path(path))]
    if not files:
        raise DataError("no file is given; expected at least one to import")
    openers = [partial(open_arrays, path) for path in files]
    said = _given(fields, dataset, layout, dt, extent, boundaries)
    name = name or Path(given[0]).resolve().stem
    return Trajectories(name, openers, list(map(str, files)), said, files)


def from_arrays(
    arrays: Runs,
    *,
    fields: Fields | None = None,
    layout: str | None = None,
    dt: float | None = None,
    extent: float | Sequence[float] | None = None,
    boundaries: BoundarySpec | None = None,
    name: str = "arrays",
) -> Trajectories:
    """Simulations in memory: NumPy's arrays or tensors.

    Args:
        arrays: one array; arrays by name, `t`, `x`, `y`, `z` among them for coordinates; or a list
            of either, one for each run.
        fields, layout, dt, extent, boundaries: as for `from_files`.
        name: of the dataset.
    """
    said = _given(fields, (), layout, dt, extent, boundaries)
    return _in_hand(arrays, _in_memory, said, name, "an array, arrays by name")


def from_xarray(
    data: Any,
    *,
    fields: Fields | None = None,
    layout: str | None = None,
    dt: float | None = None,
    extent: float | Sequence[float] | None = None,
    boundaries: BoundarySpec | None = None,
    name: str = "xarray",
) -> Trajectories:
    """Simulations in xarray's objects, also those that are read from files as they are needed.

    Args:
        data: a `Dataset` or `DataArray`, or a list of them, one for each run.
        fields, layout, dt, extent, boundaries: as for `from_files`.
        name: of the dataset.
    """
    said = _given(fields, (), layout, dt, extent, boundaries)
    return _in_hand(data, _of_xarray, said, name, "a Dataset, a DataArray")


def _in_hand(
    data: Any, read: Callable[[Any], Arrays], said: Given, name: str, expected: str
) -> Trajectories:
    """Runs that need no file to be opened: one, or a list of them."""
    several = isinstance(data, list | tuple)
    runs = list(cast("Sequence[Any]", data)) if several else [data]
    if not runs:
        raise DataError(f"{name} is empty; expected {expected}, or a list of them")
    openers = [partial(nullcontext, read(run)) for run in runs]
    return Trajectories(name, openers, _numbered(name, len(runs)), said)


def import_arrays(
    source: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    fields: Fields | None = None,
    dataset: str | Sequence[str] = (),
    layout: str | None = None,
    dt: float | None = None,
    extent: float | Sequence[float] | None = None,
    boundaries: BoundarySpec | None = None,
    name: str | None = None,
    drop_nan: bool = False,
    **options: Any,
) -> Path:
    """Write a Well folder from files: `from_files(source, …).save(out, …)`.

    Args:
        source, fields, dataset, layout, dt, extent, boundaries, name: as for `from_files`.
        out: the folder; absent or empty.
        drop_nan: leave out trajectories with NaN; see `Trajectories.drop_nan`.
        options: as for `Trajectories.save`.
    """
    found = from_files(
        source,
        fields=fields,
        dataset=dataset,
        layout=layout,
        dt=dt,
        extent=extent,
        boundaries=boundaries,
        name=name,
    )
    try:
        if drop_nan:
            found.drop_nan()
        return found.save(out, **options)
    finally:
        found.close()


def _given(
    fields: Fields | None,
    dataset: str | Sequence[str],
    layout: str | None,
    dt: float | None,
    extent: float | Sequence[float] | None,
    boundaries: BoundarySpec | None,
) -> Given:
    parts = parse_fields(fields) if isinstance(fields, str) else fields
    if parts is not None and not isinstance(parts, Mapping):
        parts = dict.fromkeys(parts, ())
    lengths = None if extent is None else tuple(np.atleast_1d(extent).tolist())
    for what, values in (("dt", () if dt is None else (dt,)), ("extent", lengths or ())):
        for value in values:
            if not (np.isfinite(value) and value > 0):
                raise DataError(f"{what} is {value:g}; expected a positive number")
    return Given(
        fields=parts or None,
        dataset=(dataset,) if isinstance(dataset, str) else tuple(dataset),
        layout=layout,
        dt=dt,
        extent=lengths,
        boundaries=boundaries,
    )


def _files_of(path: Path) -> list[Path]:
    """A file, or those of a folder of runs, in the order in which people count."""
    if not path.is_dir() or is_known(path):
        return [path]
    if (path / "data").is_dir():
        raise DataError(
            f"'{path}' looks like a Well folder, which needs no import: `overtone data show` says "
            "what is in it"
        )
    files = [file for file in path.iterdir() if not file.name.startswith(".") and is_known(file)]
    if not files:
        raise DataError(f"'{path}' is a folder without files of arrays; expected one for each run")
    return sorted(files, key=_counted)


def _counted(path: Path) -> list[tuple[int, str]]:
    """Run 2 before run 10."""
    return [(int(p), p) if p.isdigit() else (-1, p) for p in re.split(r"([0-9]+)", path.name)]


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]


def _in_memory(arrays: Any) -> Arrays:
    several = isinstance(arrays, Mapping)
    given = cast("Mapping[Any, Any]", arrays) if several else {"": arrays}
    found: dict[str, Variable] = {}
    for name, array in given.items():
        if isinstance(array, Tensor):
            kept = array.detach().cpu()
            array = (kept.float() if kept.dtype is torch.bfloat16 else kept).numpy()
        if not isinstance(array, np.ndarray):
            raise DataError(
                f"{f'{name!r} is' if name else 'arrays are'} a {type(array).__name__}; expected "
                "arrays of NumPy or tensors, arrays by name, or a list of them for several runs"
            )
        found[str(name)] = Variable(str(name), array)
    return Arrays({name: found[name] for name in found if found[name].ndim})


def _of_xarray(data: Any) -> Arrays:
    try:
        import xarray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DataError(
            "from_xarray needs xarray, which is not installed; pip install 'overtone[xarray]'"
        ) from error
    if isinstance(data, xarray.DataArray):
        data = data.to_dataset(name=data.name or "field")
    if not isinstance(data, xarray.Dataset):
        raise DataError(
            f"data is a {type(data).__name__}; expected xarray's Dataset or DataArray, or a list "
            "of them for several runs. Arrays go to from_arrays"
        )
    found: dict[str, Variable] = {}
    for name, variable in data.variables.items():
        about = {key: variable.attrs[key] for key in ABOUT_AXES if key in variable.attrs}
        if variable.ndim:
            dims = tuple(map(str, variable.dims))
            found[str(name)] = Variable(str(name), _Lazy(variable), dims, about)
    return Arrays(found, {key: data.attrs[key] for key in ABOUT_ALL if key in data.attrs})


class _Lazy:
    """A variable of xarray, read as it is sliced."""

    def __init__(self, variable: Any):
        self.shape, self.dtype = tuple(variable.shape), variable.dtype
        self._variable = variable

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self._variable[index].values)


__all__ = ["from_arrays", "from_files", "from_xarray", "import_arrays"]
