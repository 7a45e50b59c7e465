"""Open files: one handle for each file and process, the least recently used closed first.

HDF5 handles must not cross a fork and can't be pickled. So a `Handles` keeps what each process has
opened apart, and travels empty. The threads of a process share its files and take turns: HDF5 has
one lock for all of its calls anyway. A file that was cut or overwritten since it was opened would
read as zeros; its size and modification time, looked at after every read, give that away.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from overtone.data.attributes import in_file
from overtone.data.layout import FieldSpec, Layout
from overtone.data.location import Location, local_stamp
from overtone.errors import DataError

MAX_CONSTANT_BYTES = 4_000_000
"""Constant fields up to this size are kept in memory for as long as their file is open."""
NUM_SAMPLES = 4
"""Places of each field that a digest looks at."""
DESCRIBED = ("axes", "shape", "num_trajectories", "num_steps", "dt", "extent", "boundaries")
"""What of a layout goes into a digest, next to its fields and parameters."""


class Scratch:
    """Memory that is used again and again: fresh pages cost more than the copy out of them."""

    def __init__(self) -> None:
        self._flat: dict[np.dtype, np.ndarray] = {}

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array of any content, valid until the next call."""
        size = math.prod(shape)
        if dtype not in self._flat or self._flat[dtype].size < size:
            self._flat[dtype] = np.empty(size, dtype)
        return self._flat[dtype][:size].reshape(shape)


class OpenFile:
    """An open file with its fields looked up once.

    Args:
        place: where it is.
        layout: what was read from it before; a file that has changed since is refused.
        scratch: memory to read into before values are converted, shared by a process's files.
    """

    def __init__(self, place: Location, layout: Layout, scratch: Scratch | None = None):
        self.place = place
        self.layout = layout
        self.file = place.open()
        self._stamp = place.stamp(self.file)
        if layout.stamp and layout.stamp != self._stamp:
            self.file.close()
            raise self._changed()
        self._descriptor = None if place.is_remote else self.file.id.get_vfd_handle()
        self.datasets = {spec.name: self._lookup(spec) for spec in layout.fields}
        # Looked up once: at every read, it would take longer than to look at the file's stamp.
        self._dtypes = {name: found.dtype for name, found in self.datasets.items()}
        self._spaces = {name: found.id.get_space() for name, found in self.datasets.items()}
        self._scratch = scratch or Scratch()
        self._constants: dict[str, Tensor] = {}

    def _lookup(self, spec: FieldSpec) -> h5py.Dataset:
        size = self.layout.num_trajectories, self.layout.num_steps, self.layout.shape
        found = self.file.get(in_file(f"{spec.group}/{spec.name}"))
        if not isinstance(found, h5py.Dataset) or found.shape not in (
            spec.stored_shape(*size),
            spec.padded_shape(*size),
        ):
            self.file.close()
            raise self._changed()
        return found

    def require_unchanged(self) -> None:
        """Raise an error if the file was cut or overwritten since it was opened."""
        if self._descriptor is not None and local_stamp(self._descriptor) != self._stamp:
            raise self._changed()

    def _unreadable(self, dataset: h5py.Dataset, error: Exception, which: str = "") -> DataError:
        self.require_unchanged()
        return DataError(
            f"'{self.place.path}': {dataset.name}{which} can't be read: {error}. The file is "
            "damaged or uses a filter that is not installed"
        )

    def _changed(self) -> DataError:
        return DataError(
            f"'{self.place.path}' has changed since it was first read: its size, modification time "
            "or content is not what it was, and what was read may be wrong. Make sure that the "
            "file is complete (`overtone data check`), then build the dataset again"
        )

    def read(self, spec: FieldSpec, trajectory: int, steps: slice, out: Tensor) -> None:
        """Read one field of one trajectory with a single HDF5 call.

        Args:
            spec: which field.
            trajectory: which trajectory of the file.
            steps: which frames, as a slice with start, stop and step.
            out: where to put them, `(components, T, *space)`, contiguous.
        """
        if spec.order == 0 and spec.time_varying and not spec.dim_varying:
            dataset, target = self.datasets[spec.name], out[0].numpy()
            if self._dtypes[spec.name] == target.dtype:
                self._read_into(dataset, spec, trajectory, steps, target)
                return
        out.copy_(self._values(spec, trajectory, steps))

    def scalar(self, name: str, index: tuple[Any, ...]) -> np.ndarray:
        """Values of a scalar, float64."""
        dataset: Any = self.file[in_file(f"scalars/{name}")]
        try:
            return np.asarray(dataset[index], dtype=np.float64)
        except (OSError, RuntimeError) as error:
            raise self._unreadable(dataset, error) from error

    def digest(self, cells: int) -> str:
        """SHA-256 of the file's layout and size and of a sample of each field, in hexadecimal.

        The sample of a field is a block of at most `cells` cells of `NUM_SAMPLES` frames. From one
        to the next, trajectory, frame and place move on, from the first to the last of each.
        """
        description = {key: getattr(self.layout, key) for key in DESCRIBED}
        description["parameters"] = {k: str(v) for k, v in self.layout.parameters.items()}
        datasets = {spec: self.datasets[spec.name] for spec in self.layout.fields}
        description["fields"] = [
            (spec.name, spec.order, found.shape, found.dtype.str)
            for spec, found in datasets.items()
        ]
        description["bytes"] = self.file.id.get_filesize()
        total = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
        for spec in self.layout.fields:
            for number in range(NUM_SAMPLES):
                total.update(self._sample(spec, number / (NUM_SAMPLES - 1), cells).tobytes())
        return total.hexdigest()

    def _sample(self, spec: FieldSpec, position: float, cells: int) -> np.ndarray:
        """A block of one frame, `position` of the way (0 to 1) along each axis of the dataset."""
        dataset, index = self.datasets[spec.name], []
        lead = spec.sample_varying + spec.time_varying
        space = len(dataset.shape) - lead - spec.order
        side = max(1, int(cells ** (1 / max(1, space))))
        for axis, size in enumerate(dataset.shape[: lead + space]):
            width = 1 if axis < lead else min(size, side)
            first = round(position * (size - width))
            index.append(slice(first, first + width))
        try:
            return np.asarray(dataset[tuple(index)])
        except (OSError, RuntimeError) as error:
            raise self._unreadable(dataset, error) from error

    def close(self) -> None:
        """Close the file."""
        self.datasets.clear()
        self.file.close()

    def _values(self, spec: FieldSpec, trajectory: int, steps: slice) -> Tensor:
        """A field as stored, but `(components, T or 1, *space or 1)`."""
        if spec.name in self._constants:
            return self._constants[spec.name]
        dataset, ndim = self.datasets[spec.name], len(self.layout.shape)
        times = len(range(steps.start, steps.stop, steps.step)) if spec.time_varying else 1
        lead = spec.sample_varying + spec.time_varying
        shape = (times,) * spec.time_varying + dataset.shape[lead:]
        raw = self._scratch.array(shape, self._dtypes[spec.name].newbyteorder("="))
        self._read_into(dataset, spec, trajectory, steps, raw)
        space = (n if v else 1 for n, v in zip(self.layout.shape, spec.varies(ndim), strict=True))
        values = torch.from_numpy(raw).reshape(times, *space, spec.components(ndim)).movedim(-1, 0)
        if not (spec.sample_varying or spec.time_varying) and raw.nbytes <= MAX_CONSTANT_BYTES:
            self._constants[spec.name] = values = values.clone()
        return values

    def _read_into(
        self,
        dataset: h5py.Dataset,
        spec: FieldSpec,
        trajectory: int,
        steps: slice,
        target: np.ndarray,
    ) -> None:
        start, count, stride = [], [], []
        if spec.sample_varying:
            start.append(trajectory)
            count.append(1)
            stride.append(1)
        if spec.time_varying:
            start.append(steps.start)
            count.append(len(range(steps.start, steps.stop, steps.step)))
            stride.append(steps.step)
        rest = dataset.shape[len(start) :]
        start += [0] * len(rest)
        stride += [1] * len(rest)
        count += rest
        try:
            source = self._spaces[spec.name]
            if source.get_simple_extent_type() == h5py.h5s.SIMPLE and start:
                source.select_hyperslab(tuple(start), tuple(count), tuple(stride))
            memory = h5py.h5s.create_simple(target.shape) if target.shape else source
            dataset.id.read(memory, source, target)
        except (OSError, RuntimeError) as error:
            which = f" of trajectory {trajectory}, frames {steps.start} to {steps.stop - 1},"
            raise self._unreadable(dataset, error, which) from error


@dataclass
class _Opened:
    """What one process has open, and the turn of its threads."""

    files: OrderedDict[str, OpenFile] = field(default_factory=OrderedDict)
    scratch: Scratch = field(default_factory=Scratch)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handles:
    """The open files of each process, at most `limit` at a time."""

    def __init__(self, limit: int = 64):
        self.limit = limit
        self._processes: dict[int, _Opened] = {}

    @contextmanager
    def reading(self, place: Location, layout: Layout) -> Iterator[OpenFile]:
        """The open file at a place, opened if it is not; other threads wait until the block ends.

        What was read holds if the block ends without an error: the file is then what it was.
        """
        opened = self._opened()
        with opened.lock:
            file = self._get(opened, place, layout)
            try:
                yield file
                file.require_unchanged()
            except DataError:
                # Whoever reads next opens it again and sees it as it then is.
                opened.files.pop(place.path).close()
                raise

    def close(self) -> None:
        """Close all files of this process; later reads open them again."""
        opened = self._opened()
        with opened.lock:
            while opened.files:
                opened.files.popitem()[1].close()

    def __len__(self) -> int:
        return len(self._opened().files)

    def __getstate__(self) -> dict[str, Any]:
        return {"limit": self.limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["limit"])

    def _get(self, opened: _Opened, place: Location, layout: Layout) -> OpenFile:
        files = opened.files
        if place.path in files:
            files.move_to_end(place.path)
            return files[place.path]
        while len(files) >= self.limit:
            files.popitem(last=False)[1].close()
        file = files[place.path] = OpenFile(place, layout, opened.scratch)
        return file

    def _opened(self) -> _Opened:
        """This process's files; those of the process that it was forked from are let go.

        So is the lock: a thread that held it during the fork does not exist here.
        """
        process = os.getpid()
        if process not in self._processes:
            self._processes.setdefault(process, _Opened())  # in one step, for threads that race
            for other in set(self._processes) - {process}:
                self._processes.pop(other, None)
        return self._processes[process]
