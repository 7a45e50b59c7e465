"""Writing files in The Well's layout.

`WellWriter` takes frames one after the other, so that a solver's output never has to fit into
memory; `write_well` writes arrays that are there already. Both write under a temporary name and
rename at the end: a file is complete or absent. Fields are stored in chunks of a few whole frames
of one trajectory, which is what a window reads.

HDF5 does not survive a full disk: it keeps what it could not write, tries again when the process
ends, and crashes. So room is set aside before it writes (`_reserve`), and where it fails all the
same, it is given a place where it can write in peace (`_abandon`).
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from torch import Tensor

from overtone.data.header import (
    Header,
    describe_field,
    require_name,
    write_dimension,
    write_field_names,
    write_header,
    write_scalars,
)
from overtone.data.layout import GROUPS, FieldSpec
from overtone.errors import DataError
from overtone.files import replacing

CHUNK_BYTES = 256_000
"""Several frames share a chunk up to this size; a larger frame is a chunk of its own."""
CHUNK_FRAMES = 8
"""Most frames of a chunk: the last chunk of a trajectory takes its full space."""
RESERVE = 4_000_000
"""Bytes set aside for what HDF5 adds to the values."""


@dataclass(frozen=True)
class Storage:
    """How values are stored.

    Args:
        dtype: of the fields.
        compression: `"gzip"`, `"lzf"` or None. Smaller files, slower windows.
        fletcher32: whether to store a checksum for each chunk, verified at every read.
        chunk_frames: frames of a chunk; chosen by size if None.
    """

    dtype: str = "float32"
    compression: str | None = None
    fletcher32: bool = False
    chunk_frames: int | None = None

    def __post_init__(self) -> None:
        if np.dtype(self.dtype).kind != "f":
            raise DataError(f"dtype is {self.dtype}; expected a floating-point one")
        if self.compression not in (None, "gzip", "lzf"):
            raise DataError(f"compression is {self.compression!r}; expected 'gzip', 'lzf' or None")
        if self.chunk_frames is not None and self.chunk_frames < 1:
            raise DataError(f"chunk_frames is {self.chunk_frames}; expected at least 1")

    def frames(self, frame_bytes: int) -> int:
        """Frames of a chunk, for a frame of that size."""
        return self.chunk_frames or min(CHUNK_FRAMES, max(1, CHUNK_BYTES // max(1, frame_bytes)))


@contextmanager
def writing(path: str | Path) -> Generator[None]:
    """Say which file can't be written, and why, in the place of h5py's and the system's errors."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        found = re.search(r"errno = (\d+)", str(error))  # h5py's, also within a RuntimeError
        if not found and not isinstance(error, OSError):
            raise
        reason = os.strerror(int(found[1])) if found else getattr(error, "strerror", "") or error
        raise DataError(
            f"'{path}' can't be written: {reason}. Nothing half-written stays, and what was "
            "complete before is kept; make room or choose another folder, then run it again"
        ) from error


@contextmanager
def _new_file(path: Path) -> Generator[h5py.File]:
    """An HDF5 file that is at `path` when the block has ended, and only if it ends well."""
    with writing(path), replacing(path) as scratch:
        with h5py.File(scratch, "w") as file:
            try:
                _reserve(file, path, 0)
                yield file
                file.flush()
                size = file.id.get_filesize()
            except DataError:  # no room was left: there is still that for what HDF5 holds
                raise
            except BaseException:
                _abandon(file)
                raise
        if scratch.stat().st_size > size:  # what was set aside and not used
            os.truncate(scratch, size)


def _reserve(file: h5py.File, path: Path, num_bytes: int) -> None:
    """Have the disk set aside room for values, where the system can do so."""
    if not hasattr(os, "posix_fallocate"):
        return
    room = num_bytes + num_bytes // 8 + RESERVE
    with writing(path):
        try:
            os.posix_fallocate(file.id.get_vfd_handle(), file.id.get_filesize(), room)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise


def _abandon(file: h5py.File) -> None:
    """Let HDF5 write what it still holds into memory, so that it can close the file."""
    memory = getattr(os, "memfd_create", None)  # of Linux; elsewhere what is written is not kept
    target = memory("abandoned") if memory else os.open(os.devnull, os.O_RDWR)
    os.dup2(target, file.id.get_vfd_handle())
    os.close(target)


class WellWriter:
    """A file that grows frame by frame. Use it in a `with` statement.

    Nothing is at `path` until the block ends; if it ends with an error, nothing ever is.

    Args:
        path: of the file; its folder is made.
        header: what the file says about itself.
        fields: in The Well's order: scalars, then vectors, then tensors; all vary with everything.
        num_trajectories: written side by side.
        storage: how values are stored.
        scalars: further scalars, each a number or one for each trajectory.
    """

    def __init__(
        self,
        path: str | Path,
        header: Header,
        fields: Sequence[FieldSpec],
        num_trajectories: int,
        *,
        storage: Storage | None = None,
        scalars: Mapping[str, Any] | None = None,
    ):
        if num_trajectories < 1:
            raise DataError(f"num_trajectories is {num_trajectories}; expected at least 1")
        self.path, self.header, self.fields = Path(path), header, tuple(fields)
        self.num_trajectories, self.num_frames = num_trajectories, 0
        self.storage = storage or Storage()
        self._scalars = dict(scalars or {})
        self._waiting: list[np.ndarray] = []
        self._given = 0
        self._stack = ExitStack()
        _require_fields(self.fields)
        ndim = len(header.shape)
        self._counts = [spec.components(ndim) for spec in self.fields]
        frame_bytes = math.prod(header.shape) * np.dtype(self.storage.dtype).itemsize
        self._length = self.storage.frames(frame_bytes * max(self._counts))

    def __enter__(self) -> WellWriter:
        with ExitStack() as stack:
            self._file = stack.enter_context(_new_file(self.path))
            write_header(self._file, self.header, self.num_trajectories)
            scalars = {**self.header.parameters, **self._scalars}
            write_scalars(self._file, scalars, self.num_trajectories, None)
            self._datasets = [self._create(spec) for spec in self.fields]
            write_field_names(self._file, self.fields)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            self._finish()

    def append(self, frame: np.ndarray | Tensor) -> None:
        """Add the next frame of all trajectories, `(num_trajectories, C, *shape)`."""
        values = frame.detach().cpu().numpy() if isinstance(frame, Tensor) else np.asarray(frame)
        expected = (self.num_trajectories, sum(self._counts), *self.header.shape)
        if values.shape != expected:
            raise DataError(f"a frame has shape {values.shape}; expected {expected}")
        # A copy: the caller may reuse its array before the chunk is full.
        self._waiting.append(np.array(values, dtype=self.storage.dtype))
        if len(self._waiting) == self._length:
            self._flush()

    def _create(self, spec: FieldSpec) -> h5py.Dataset:
        tail = (*self.header.shape, *(len(self.header.shape),) * spec.order)
        dataset = self._file.create_dataset(
            f"{spec.group}/{spec.name}",
            shape=(self.num_trajectories, 0, *tail),
            maxshape=(self.num_trajectories, None, *tail),
            chunks=(1, self._length, *tail),
            dtype=self.storage.dtype,
            compression=self.storage.compression,
            shuffle=self.storage.compression is not None,
            fletcher32=self.storage.fletcher32,
        )
        describe_field(dataset, spec, len(self.header.shape))
        return dataset

    def _flush(self) -> None:
        if not self._waiting:
            return
        block = np.stack(self._waiting, axis=1)
        self._waiting.clear()
        # Of what it was given, HDF5 may hold back as much as its caches take.
        cache = self._file.id.get_access_plist().get_cache()[2] * len(self.fields)
        _reserve(self._file, self.path, block.nbytes + min(self._given, cache))
        self._given += block.nbytes
        end = self.num_frames + block.shape[1]
        first, ndim = 0, len(self.header.shape)
        for spec, count, dataset in zip(self.fields, self._counts, self._datasets, strict=True):
            part = block[:, :, first : first + count]
            first += count
            dataset.resize(end, axis=1)
            shape = (*part.shape[:2], *self.header.shape, *(ndim,) * spec.order)
            dataset[:, self.num_frames :] = np.moveaxis(part, 2, -1).reshape(shape)
        self.num_frames = end

    def _finish(self) -> None:
        self._flush()
        if not self.num_frames:
            raise DataError(f"no frame was appended to '{self.path}'; it is not written")
        times = np.arange(self.num_frames) * self.header.dt
        write_dimension(self._file, "time", times, time_varying=True)


def write_well(
    path: str | Path,
    fields: Mapping[str, np.ndarray | Tensor] | Mapping[FieldSpec, np.ndarray | Tensor],
    header: Header,
    *,
    scalars: Mapping[str, Any] | None = None,
    storage: Storage | None = None,
) -> Path:
    """Write arrays as one file in The Well's layout.

    Args:
        path: of the file; replaced in one step if it exists.
        fields: values by name: scalars `(n, T, *shape)`, vectors `(n, T, *shape, D)`, tensors
            `(n, T, *shape, D, D)`, in this order. With a `FieldSpec` in place of a name, a field
            may lack the axes that it does not vary with.
        header: what the file says about itself.
        scalars: further scalars: a number, `(n,)`, or `(n, T)`.
        storage: how values are stored.
    """
    path, storage = Path(path), storage or Storage()
    arrays = dict(_field_values(key, values, header.shape) for key, values in fields.items())
    specs = tuple(arrays)
    _require_fields(specs)
    num, steps = _sizes(arrays)
    for spec, values in arrays.items():
        if values.shape != spec.stored_shape(num, steps, header.shape):
            raise DataError(
                f"field '{spec.name}' has shape {values.shape}; expected "
                f"{spec.stored_shape(num, steps, header.shape)}"
            )
    with _new_file(path) as file:
        _reserve(file, path, sum(values.nbytes for values in arrays.values()))
        write_header(file, header, num)
        write_scalars(file, {**header.parameters, **(scalars or {})}, num, steps)
        times = np.arange(steps) * header.dt
        write_dimension(file, "time", times, time_varying=True)
        for spec, values in arrays.items():
            dataset = file.create_dataset(
                f"{spec.group}/{spec.name}",
                data=values.astype(storage.dtype, copy=False),
                chunks=_chunks(spec, values.shape, storage),
                compression=storage.compression,
                shuffle=storage.compression is not None,
                fletcher32=storage.fletcher32,
            )
            describe_field(dataset, spec, len(header.shape))
        write_field_names(file, specs)
    return path


def _field_values(
    key: str | FieldSpec, values: np.ndarray | Tensor, shape: tuple[int, ...]
) -> tuple[FieldSpec, np.ndarray]:
    """What a field is, and its array; a bare name's tensor order shows in the number of axes."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if isinstance(key, FieldSpec):
        return key, array
    order = array.ndim - 2 - len(shape)
    if not 0 <= order < len(GROUPS):
        raise DataError(
            f"field '{key}' has shape {array.shape} on a grid of {shape}; expected (n, T) and the "
            "grid, with one more axis for a vector and two for a tensor"
        )
    return FieldSpec(key, order), array


def _require_fields(specs: tuple[FieldSpec, ...]) -> None:
    orders = [spec.order for spec in specs]
    names = [spec.name for spec in specs]
    if not specs or orders != sorted(orders) or len(set(names)) != len(names):
        raise DataError(
            f"fields are {[(spec.name, spec.order) for spec in specs]}; expected different names, "
            "scalars (order 0) first, then vectors (1), then tensors (2)"
        )
    for name in names:
        require_name(name, "a field")


def _sizes(arrays: Mapping[FieldSpec, np.ndarray]) -> tuple[int, int]:
    """Numbers of trajectories and frames, from a field that varies with both."""
    for spec, values in arrays.items():
        if spec.sample_varying and spec.time_varying and min(values.shape[:2], default=0) > 0:
            return values.shape[0], values.shape[1]
    raise DataError("no field has values that vary with sample and time; at least one must")


def _chunks(spec: FieldSpec, shape: tuple[int, ...], storage: Storage) -> tuple[int, ...] | None:
    """A few frames of one trajectory; one chunk for a field without a time axis."""
    lead = (1,) * spec.sample_varying
    tail = shape[len(lead) + spec.time_varying :]
    if not lead and not spec.time_varying and not tail:
        return None
    if not spec.time_varying:
        return (*lead, *tail) or None
    frames = storage.frames(math.prod(tail) * np.dtype(storage.dtype).itemsize)
    return (*lead, max(1, min(frames, shape[len(lead)])), *tail)
