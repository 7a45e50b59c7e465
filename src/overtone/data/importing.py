"""A user's own arrays as a Well folder.

Arrays are `(n, T, C, *S)`: trajectories, frames, channels, cells. They come from `.npy`, `.npz`,
`.zarr` or `.nc` (netCDF-4, which is HDF5 and read as such). Where a file holds several arrays,
each may also be one field: `(n, T, *S)`, with `(D,)` or `(D, D)` at the end for vectors and
tensors. The trajectories of one output file are in memory at a time; of an `.npz`, all are. Pickled
objects are never loaded. The folder appears when all of it is written.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overtone.data.layout import FieldSpec
from overtone.data.location import DATASET, SPLITS, Location, split_counts
from overtone.data.safety import inspect_npz, inspect_zarr
from overtone.data.stats import write_stats
from overtone.data.writer import Header, Storage, WellWriter, writing
from overtone.domain import BoundarySpec
from overtone.errors import DataError, suggest
from overtone.guard.folders import replacing_owned
from overtone.guard.limits import require_disk, require_memory
from overtone.guard.names import file_name, shown

FORMATS = (".npy", ".npz", ".zarr", ".nc")


@dataclass(frozen=True)
class Source:
    """Arrays that look like one of shape `(n, T, C, *S)`.

    Attributes:
        arrays: one array for all channels, or one for each field.
        fields: what the channels are, in The Well's order.
        shape: the grid, S.
        by_field: whether there is one array for each field.
    """

    arrays: tuple[Any, ...]
    fields: tuple[FieldSpec, ...]
    shape: tuple[int, ...]
    by_field: bool

    @property
    def num(self) -> int:
        """N."""
        return self.arrays[0].shape[0]

    @property
    def steps(self) -> int:
        """T."""
        return self.arrays[0].shape[1]

    @property
    def values(self) -> int:
        """How many values a trajectory has."""
        return sum(math.prod(array.shape[1:]) for array in self.arrays)

    def require_memory(self, num: int) -> None:
        """Raise an error if `num` trajectories are too many to have in memory."""
        itemsize = max(np.dtype(array.dtype).itemsize for array in self.arrays)
        # Twice: they are stacked, and compared with what is finite.
        needed = 2 * min(num, self.num) * self.values * itemsize
        require_memory(needed, f"{num} trajectories", "put fewer into a file (per_file)")

    def trajectory(self, index: int) -> np.ndarray:
        """One trajectory, `(T, C, *S)`."""
        parts = [np.asarray(array[index]) for array in self.arrays]
        if not self.by_field:
            return parts[0]
        ndim = len(self.shape)
        flat = [
            np.moveaxis(part.reshape(self.steps, *self.shape, ndim**spec.order), -1, 1)
            for part, spec in zip(parts, self.fields, strict=True)
        ]
        return np.concatenate(flat, axis=1)


def import_arrays(
    source: str | Path,
    out: str | Path,
    *,
    fields: Sequence[FieldSpec] | str,
    dt: float = 1.0,
    boundaries: BoundarySpec = "periodic",
    extent: Sequence[float] | None = None,
    name: str | None = None,
    splits: Sequence[float] = (0.8, 0.1, 0.1),
    per_file: int = 8,
    seed: int | None = 0,
    storage: Storage | None = None,
) -> Path:
    """Write a Well folder with train, valid and test splits from arrays in a file.

    Args:
        source: a `.npy`, `.npz`, `.zarr` or `.nc`.
        out: the folder; absent or empty.
        fields: what the channels are, e.g. `"density,velocity:1"`; see `parse_fields`.
        dt: time between frames.
        boundaries: as for `Domain`.
        extent: physical length of each axis; cells of length 1 if None.
        name: of the dataset and its files; the source's if None.
        splits: fractions of train, valid and test, by trajectory.
        per_file: trajectories of a file, at most.
        seed: of the order in which trajectories are given to the splits; None keeps theirs.
        storage: how values are stored.
    """
    out, specs = Path(out), parse_fields(fields) if isinstance(fields, str) else tuple(fields)
    if per_file < 1:
        raise DataError(f"per_file is {per_file}; expected at least 1")
    if out.is_dir() and any(out.iterdir()):
        raise DataError(f"'{out}' is not empty; it is left alone. Choose another folder")
    name = file_name(name or Path(source).stem, "the dataset's name (name)", error=DataError)
    storage = storage or Storage()
    with (
        open_source(source, specs) as arrays,
        writing(out),
        replacing_owned(out, DATASET, inputs=[source], error=DataError) as scratch,
    ):
        arrays.require_memory(per_file)
        size = arrays.num * arrays.values * np.dtype(storage.dtype).itemsize
        require_disk(0 if storage.compression else size, out, f"a dataset of '{source}'")
        header = Header(
            name=name,
            shape=arrays.shape,
            extent=tuple(extent) if extent else tuple(float(n) for n in arrays.shape),
            boundaries=boundaries,
            dt=dt,
        )
        counts = split_counts(arrays.num, splits)
        order = np.arange(arrays.num)
        if seed is not None:
            np.random.default_rng(seed).shuffle(order)
        try:
            _write_splits(scratch, arrays, order, counts, per_file, header, storage)
            if counts["train"]:
                write_stats(scratch)
        except DataError as error:  # of files by the names that they would have had
            raise DataError(str(error).replace(str(scratch), str(out))) from error
    return out


def parse_fields(text: str) -> tuple[FieldSpec, ...]:
    """Fields from text: names with commas between them, `:1` after a vector, `:2` after a tensor.

    `"density,velocity:1"` on two axes is three channels: density, velocity_x, velocity_y.
    """
    specs = []
    for entry in text.split(","):
        name, _, order = entry.strip().partition(":")
        if not name or order not in ("", "0", "1", "2"):
            raise DataError(
                f"fields are {text!r}; expected names with commas between them, with :1 after a "
                "vector and :2 after a tensor, e.g. density,velocity:1"
            )
        specs.append(FieldSpec(name, int(order or 0)))
    if [spec.order for spec in specs] != sorted(spec.order for spec in specs):
        raise DataError(
            f"fields are {text!r}; The Well's order is scalars first, then vectors, then tensors. "
            "Reorder the channels"
        )
    return tuple(specs)


@contextmanager
def open_source(path: str | Path, fields: tuple[FieldSpec, ...]) -> Iterator[Source]:
    """Open a file of arrays for as long as the `with` block lasts."""
    with open_arrays(path) as arrays:
        yield _arrange(arrays, fields, Path(path))


@contextmanager
def open_arrays(path: str | Path) -> Iterator[Mapping[str, Any]]:
    """The arrays of a file by name, those of an `.npz` in memory, others as they are sliced."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"'{path}' does not exist; expected a file that ends in {_formats()}")
    openers = {".npy": _open_npy, ".npz": _open_npz, ".zarr": _open_zarr, ".nc": _open_netcdf}
    if path.suffix not in openers:
        raise DataError(f"'{path}' is of no known kind; expected a name that ends in {_formats()}")
    with openers[path.suffix](path) as arrays:
        yield arrays


class _Reader:
    """An array in a file, read as it is sliced.

    Args:
        array: as zarr or h5py have it open.
        path: of the file, for an error.
        verify: called after every read; raises an error if the file has changed meanwhile.
    """

    def __init__(self, array: Any, path: Path, verify: Callable[[], None] | None = None):
        self.shape, self.dtype, self.ndim = tuple(array.shape), np.dtype(array.dtype), array.ndim
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
def _open_npy(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"'{path}' can't be read as an array of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"'{path}' is a zip file; name it .npz if it holds arrays")
    yield {"": array}


@contextmanager
def _open_npz(path: Path) -> Iterator[Mapping[str, Any]]:
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
    yield arrays


@contextmanager
def _open_zarr(path: Path) -> Iterator[Mapping[str, Any]]:
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
        version = inspect_zarr(folder)
        if version is None:
            continue
        try:
            array = zarr.open_array(str(folder), mode="r", zarr_format=version)
        except Exception as error:  # zarr's own errors have no common base class
            raise DataError(f"'{shown(folder)}' can't be read by zarr: {shown(error)}") from error
        arrays[name] = _Reader(array, folder)
    yield arrays


@contextmanager
def _open_netcdf(path: Path) -> Iterator[Mapping[str, Any]]:
    import h5py

    place = Location(str(path))
    if place.read(3) == b"CDF":
        raise DataError(
            f"'{path}' is a classic netCDF file; convert it with `nccopy -k nc4 in.nc out.nc`"
        )
    with place.open() as file:
        before = place.stamp(file)

        def verify() -> None:
            if place.stamp(file) != before:
                raise DataError(f"'{path}' has changed while it was read; try again")

        arrays = {}
        for key in file:
            entry = file[key]
            if isinstance(entry, h5py.Dataset) and entry.ndim >= 3:
                if "scale_factor" in entry.attrs or "add_offset" in entry.attrs:
                    raise DataError(f"'{path}': variable '{shown(key)}' is packed; unpack it first")
                arrays[key] = _Reader(entry, path, verify)
        yield arrays


def _arrange(arrays: Mapping[str, Any], fields: tuple[FieldSpec, ...], path: Path) -> Source:
    """See the arrays of a file as one `(n, T, C, *S)`."""
    named = [arrays[spec.name] for spec in fields if spec.name in arrays]
    if len(named) == len(fields):
        shapes = {a.shape[: a.ndim - s.order] for a, s in zip(named, fields, strict=True)}
        shape = min(shapes)[2:]
        if len(shapes) > 1 or not 1 <= len(shape) <= 3:
            raise DataError(
                f"'{path}': {', '.join(f'{name} {a.shape}' for name, a in arrays.items())}; "
                "expected (n, T, *S) with the same n, T and S, and (D,) or (D, D) at the end for "
                "vectors and tensors"
            )
        source = Source(tuple(named), fields, tuple(shape), by_field=True)
    elif len(arrays) == 1:
        (array,) = arrays.values()
        source = Source((array,), fields, tuple(array.shape[3:]), by_field=False)
        channels = sum(spec.components(len(source.shape)) for spec in fields)
        if not 1 <= len(source.shape) <= 3 or array.shape[2] != channels:
            raise DataError(
                f"'{path}' has shape {array.shape}; expected (n, T, C, *S) with one to three axes "
                f"S and C = {channels} for {', '.join(f'{s.name}:{s.order}' for s in fields)}"
            )
    else:
        missing = next(spec.name for spec in fields if spec.name not in arrays)
        raise DataError(
            f"'{path}' has no array '{missing}'; it has {', '.join(sorted(arrays)) or 'none'}"
            f"{suggest(missing, list(arrays))}. Expected one for each field, or a single array"
        )
    for array in source.arrays:
        if np.dtype(array.dtype).kind not in "fiu" or 0 in array.shape:
            raise DataError(
                f"'{path}' holds {array.dtype} of shape {array.shape}; expected numbers"
            )
    return source


def _write_splits(
    out: Path,
    source: Source,
    order: np.ndarray,
    counts: Mapping[str, int],
    per_file: int,
    header: Header,
    storage: Storage,
) -> None:
    """Deal trajectories out to the splits in the given order, some to a file."""
    first = 0
    for split in SPLITS:
        chosen = np.sort(order[first : first + counts[split]])
        first += counts[split]
        for index, start in enumerate(range(0, len(chosen), per_file)):
            path = out / "data" / split / f"{header.name}_{index:03d}.hdf5"
            _write(path, source, chosen[start : start + per_file], header, storage)


def _write(
    path: Path, source: Source, chosen: np.ndarray, header: Header, storage: Storage
) -> None:
    """Write some trajectories as one file."""
    block = np.stack([source.trajectory(int(index)) for index in chosen], axis=1)
    finite = np.isfinite(block)
    if not finite.all():
        step, row, channel, *cell = (int(i) for i in np.argwhere(~finite)[0])
        raise DataError(
            f"trajectory {chosen[row]} has a value that is NaN or infinite at step {step}, channel "
            f"{channel}, cell {tuple(cell)}; nothing is written. Clean the arrays first"
        )
    with WellWriter(path, header, source.fields, len(chosen), storage=storage) as writer:
        for frame in block:
            writer.append(frame)


def _formats() -> str:
    return f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"


__all__ = ["FORMATS", "Source", "import_arrays", "open_arrays", "open_source", "parse_fields"]
