"""Windows out of Well files, as a PyTorch dataset.

A window of a trajectory is `context` frames and the `horizon` frames after them, `stride` frames
apart. A dataset's items are all windows of all trajectories of all files of a split, in that
order. Fields become channels in The Well's order: scalars, vector components, tensor components
row by row. A field that does not vary with the sample, the time or an axis is broadcast along it.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from overtone.data.batches import Item, joined
from overtone.data.handles import Handles
from overtone.data.layout import FieldSpec, Layout
from overtone.data.location import find_files, find_stats
from overtone.data.stats import load_stats
from overtone.domain import Domain, Window, per_axis
from overtone.errors import DataError, suggest
from overtone.guard.limits import require_memory

SAMPLED_CELLS = 2**20
"""Cells of a frame that a fingerprint reads, shared by the files of a split."""


@dataclass(frozen=True)
class Place:
    """Where an item comes from.

    Attributes:
        file: path of the file.
        trajectory: which trajectory of the file.
        step: its first frame.
    """

    file: str
    trajectory: int
    step: int


class WellFolder(Dataset[Item]):
    """The windows of one split of a dataset in The Well's format. Lazy, for workers and threads.

    Args:
        path: a Well folder (`data/train/*.hdf5` below it), a folder of HDF5 files or one file;
            also a URL that fsspec knows, such as `hf://datasets/…`.
        split: which folder below `data`.
        context: frames of a window.
        horizon: frames of its target.
        stride: how many stored frames apart the frames of a window are.
        trajectories: which of the split's trajectories to use, counted over all its files.
        fields: names of fields (`velocity`) or channels (`velocity_x`) to read; all if None.
            They stay in The Well's order.
        coarsen: cells to average into one, one number or one for each axis.
        dtype: of the tensors.
        whole: one item for each trajectory: its first `context` frames, and all that follow as
            the target.
        max_open: files that a process keeps open.
        keep: bytes that may stay in memory: if all frames fit, each trajectory is read, and
            coarsened, once in a process. Otherwise, and with 0, files are read for every item.

    Attributes:
        path, split, context, horizon, stride, dtype, whole: as given.
        reading: options by which the same frames are read again.
    """

    def __init__(
        self,
        path: str | Path,
        split: str = "train",
        context: int = 6,
        horizon: int = 1,
        *,
        stride: int = 1,
        trajectories: slice | Sequence[int] | None = None,
        fields: Sequence[str] | None = None,
        coarsen: int | Sequence[int] = 1,
        dtype: torch.dtype = torch.float32,
        whole: bool = False,
        max_open: int = 64,
        keep: int = 0,
    ):
        for name, value in {"context": context, "horizon": horizon, "stride": stride}.items():
            if value < 1:
                raise DataError(f"{name} is {value}; expected at least 1")
        self.path, self.split = str(path), split
        self.context, self.horizon, self.stride = context, horizon, stride
        self.dtype, self.whole = dtype, whole
        self.reading: dict[str, Any] = {
            "stride": stride,
            "fields": fields,
            "coarsen": coarsen,
            "dtype": dtype,
            "max_open": max_open,
            "keep": keep,
        }
        self._trajectories = trajectories
        self.files = find_files(path, split)
        self.layouts = [file.layout() for file in self.files]
        self._handles = Handles(max_open)
        self._require_agreement()
        self._specs, self._picked, channels = _select(self.layouts[0], fields, self.path)
        self._coarsen = _blocks(coarsen, self.layouts[0].shape)
        self._domains = [self._domain(layout, channels) for layout in self.layouts]
        self._joined = joined(self._domains)
        self._runs = self._choose(trajectories)
        self._offsets = list(accumulate(map(self._num_windows, self._runs), initial=0))
        self._require_memory()
        self._kept: dict[tuple[int, int], Tensor] | None = {} if self._bytes() <= keep else None

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: not the frames, which it reads itself."""
        return self.__dict__ | {"_kept": None if self._kept is None else {}}

    def __repr__(self) -> str:
        """What is in it, in a line."""
        frames = {self.num_frames(i) for i in range(self.num_trajectories)}
        lengths = f"{min(frames)}" if len(frames) == 1 else f"{min(frames)} to {max(frames)}"
        return (
            f"WellFolder({self.path!r}, split '{self.split}': {self.num_trajectories} trajectories "
            f"of {lengths} frames, {len(self):,} windows of {self.context} + {self.horizon} "
            f"frames; {self.domain})"
        )

    def again(self, *, context: int, horizon: int, split: str | None = None, keep: int = 0) -> Self:
        """The same data cut into other windows.

        Args:
            context, horizon: as for the class.
            split: another one, with all of its trajectories; this one if None.
            keep: bytes that may stay in memory, if that is more than before.
        """
        split = self.split if split is None else split
        options: dict[str, Any] = self.reading | {"keep": max(keep, self.reading["keep"])}
        if split == self.split:
            options["trajectories"] = self._trajectories
        return type(self)(self.path, split, context, horizon, **options)

    @property
    def domain(self) -> Domain:
        """What the windows live on; `dt` is the time between their frames.

        Files may differ in dt and extent: then these are the first file's, and `dt_range` is that
        of all of them.
        """
        return self._joined

    @property
    def num_trajectories(self) -> int:
        """Trajectories in use."""
        return len(self._runs)

    @cached_property
    def stats(self) -> dict[str, Any] | None:
        """The dataset's `stats.yaml`: statistic -> field -> number or list; None if absent."""
        found = find_stats(self.path)
        return load_stats(found) if found else None

    def __len__(self) -> int:
        return self._offsets[-1]

    def __getitem__(self, index: int) -> Item:
        file, trajectory, step = self._locate(index)
        frames = self._read(file, trajectory, self._steps(file, step))
        window = Window(frames[: self.context], self._domains[file])
        return window, frames[self.context :]

    def where(self, index: int) -> Place:
        """File, trajectory and first frame of an item."""
        file, trajectory, step = self._locate(index)
        return Place(self.files[file].path, trajectory, step)

    def first_item(self, trajectory: int) -> int:
        """Index of the first item of one of the trajectories in use."""
        return self._offsets[trajectory]

    def domain_of(self, trajectory: int) -> Domain:
        """What one of the trajectories in use lives on; files may differ in extent and dt."""
        return self._domains[self._runs[trajectory][0]]

    def num_frames(self, trajectory: int) -> int:
        """Frames of one of the trajectories in use, `stride` stored ones apart."""
        return math.ceil(self.layouts[self._runs[trajectory][0]].num_steps / self.stride)

    def frames(self, trajectory: int, start: int, count: int) -> Window:
        """Any consecutive frames of one of the trajectories in use, `(count, C, *space)`.

        Args:
            trajectory: from 0 to `num_trajectories - 1`.
            start: the first frame; as all numbers here, in units of `stride` stored frames.
            count: how many.
        """
        if not (start >= 0 and count >= 1 and start + count <= self.num_frames(trajectory)):
            raise DataError(
                f"frames {start} to {start + count - 1} of trajectory {trajectory}; it has "
                f"{self.num_frames(trajectory)} at stride {self.stride}, counted from 0"
            )
        file, number = self._runs[trajectory]
        first, last = start * self.stride, (start + count - 1) * self.stride
        steps = slice(first, last + 1, self.stride)
        return Window(self._read(file, number, steps), self._domains[file])

    def parameters(self, index: int) -> dict[str, float | str]:
        """Simulation parameters of an item, and the scalars that are constant in time."""
        file, trajectory, _ = self._locate(index)
        values: dict[str, float | str] = {}
        with self._handles.reading(self.files[file], self.layouts[file]) as opened:
            for spec in self.layouts[file].scalars:
                if not spec.time_varying:
                    value = opened.scalar(spec.name, (trajectory,) if spec.sample_varying else ())
                    values[spec.name] = float(value.reshape(-1)[0])
        # Attributes hold in float64 what scalars repeat in float32.
        return {**values, **self.layouts[file].parameters}

    def scalars(self, index: int) -> dict[str, np.ndarray]:
        """Time-varying scalars of an item, one value for each frame of window and target."""
        file, trajectory, step = self._locate(index)
        with self._handles.reading(self.files[file], self.layouts[file]) as opened:
            return {
                spec.name: opened.scalar(
                    spec.name, (trajectory,) * spec.sample_varying + (self._steps(file, step),)
                )
                for spec in self.layouts[file].scalars
                if spec.time_varying
            }

    def fingerprint(self) -> str:
        """What tells this split from others, in hexadecimal: quick, whatever the files' size.

        SHA-256 over the files in their order: name, layout, size in bytes, and a sample of each
        field's values, so that other data of the same shape differ. Where the folder lies, when
        its files were written and which part of it was asked for (stride, fields, trajectories …)
        play no role. A change in a single cell may go unnoticed; `files.fingerprint` reads all.
        """
        total = hashlib.sha256()
        cells = max(2**8, SAMPLED_CELLS // len(self.files))
        for file, layout in zip(self.files, self.layouts, strict=True):
            with self._handles.reading(file, layout) as opened:
                digest = opened.digest(cells)
            total.update(f"{file.name}\0{digest}\0".encode(errors="surrogateescape"))
        return total.hexdigest()

    def close(self) -> None:
        """Close this process's files; reading opens them again."""
        self._handles.close()

    def _locate(self, index: int) -> tuple[int, int, int]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of a dataset of {len(self)}")
        index %= len(self)
        run = bisect_right(self._offsets, index) - 1
        file, trajectory = self._runs[run]
        return file, trajectory, index - self._offsets[run]

    def _steps(self, file: int, step: int) -> slice:
        """The frames of an item."""
        if self.whole:
            return slice(0, self.layouts[file].num_steps, self.stride)
        count = self.context + self.horizon
        return slice(step, step + (count - 1) * self.stride + 1, self.stride)

    def _read(self, file: int, trajectory: int, steps: slice) -> Tensor:
        """Frames `(T, C, *space)`; what is kept of them is not the caller's to change."""
        if self._kept is None:
            return self._read_file(file, trajectory, steps)
        if (file, trajectory) not in self._kept:
            every = slice(0, self.layouts[file].num_steps, 1)
            self._kept[file, trajectory] = self._read_file(file, trajectory, every)
        return self._kept[file, trajectory][steps].clone()

    def _read_file(self, file: int, trajectory: int, steps: slice) -> Tensor:
        """Frames `(T, C, *space)`, a view of memory that is laid out channel by channel."""
        layout = self.layouts[file]
        ndim, times = len(layout.shape), len(range(steps.start, steps.stop, steps.step))
        counts = [spec.components(ndim) for spec in self._specs]
        frames = torch.empty(sum(counts), times, *layout.shape, dtype=self.dtype)
        with self._handles.reading(self.files[file], layout) as opened:
            for spec, part in zip(self._specs, torch.split(frames, counts), strict=True):
                opened.read(spec, trajectory, steps, part)
        if self._picked is not None:
            frames = frames[self._picked]
        return _average(frames, self._coarsen).transpose(0, 1)

    def _num_windows(self, run: tuple[int, int]) -> int:
        frames = self.layouts[run[0]].num_steps
        horizon = 1 if self.whole else self.horizon
        windows = frames - (self.context + horizon - 1) * self.stride
        if windows < 1:
            raise DataError(
                f"'{self.files[run[0]].path}' has {frames} frames; context {self.context} and "
                f"horizon {horizon} at stride {self.stride} need "
                f"{(self.context + horizon - 1) * self.stride + 1}. Ask for fewer"
            )
        return 1 if self.whole else windows

    def _choose(self, trajectories: slice | Sequence[int] | None) -> list[tuple[int, int]]:
        runs = [
            (file, trajectory)
            for file, layout in enumerate(self.layouts)
            for trajectory in range(layout.num_trajectories)
        ]
        if trajectories is None:
            return runs
        try:
            if isinstance(trajectories, slice):
                chosen = runs[trajectories]
            else:
                chosen = [runs[i] for i in trajectories]
        except IndexError:
            chosen = []
        if not chosen:
            raise DataError(
                f"trajectories is {trajectories}; '{self.path}' has 0 to {len(runs) - 1} in split "
                f"'{self.split}'"
            )
        return chosen

    def _domain(self, layout: Layout, channels: tuple[str, ...]) -> Domain:
        shape = tuple(n // k for n, k in zip(layout.shape, self._coarsen, strict=True))
        dt, *dt_range = (value * self.stride for value in (layout.dt, *layout.dt_range))
        return Domain(shape, layout.extent, layout.boundaries, channels, dt, dt_range)

    def _require_agreement(self) -> None:
        """All files must have the same grid, axes and fields."""
        first = self.layouts[0]
        for file, layout in zip(self.files, self.layouts, strict=True):
            for what in ("shape", "axes", "channels", "fields"):
                if getattr(layout, what) != getattr(first, what):
                    raise DataError(
                        f"'{file.path}' has {what} {getattr(layout, what)}, "
                        f"'{self.files[0].path}' has {getattr(first, what)}; the files of a split "
                        "must agree. `overtone data check` lists all that differ"
                    )

    def _bytes(self) -> int:
        """Memory that all frames of the trajectories in use take."""
        frames = sum(self.layouts[file].num_steps for file, _ in self._runs)
        return frames * len(self.domain.fields) * math.prod(self.domain.shape) * self.dtype.itemsize

    def _require_memory(self) -> None:
        layout = self.layouts[0]
        frames = self.context + self.horizon
        if self.whole:
            frames = max(entry.num_steps for entry in self.layouts) // self.stride + 1
        cells = frames * math.prod(layout.shape)
        channels = sum(spec.components(len(layout.shape)) for spec in self._specs)
        # A field in the file's dtype may be in memory next to the item itself.
        scratch = max(spec.components(len(layout.shape)) for spec in self._specs) * 8
        needed = cells * (channels * self.dtype.itemsize + scratch)
        require_memory(
            needed,
            f"one item of '{self.path}', {frames} frames of {channels} channels on {layout.shape},",
            "ask for fewer frames or fields",
        )


def _select(
    layout: Layout, fields: Sequence[str] | None, path: str
) -> tuple[tuple[FieldSpec, ...], list[int] | None, tuple[str, ...]]:
    """Fields to read, which of their channels to keep (None: all), and the names of those."""
    if fields is None:
        return layout.fields, None, layout.channels
    wanted = {fields} if isinstance(fields, str) else set(fields)
    known = [spec.name for spec in layout.fields]
    for name in sorted(wanted):
        if name not in known and name not in layout.channels:
            names = [*known, *(c for c in layout.channels if c not in known)]
            raise DataError(
                f"'{path}' has no field '{name}'; it has {', '.join(names)}{suggest(name, names)}"
            )
    specs: list[FieldSpec] = []
    channels: list[str] = []
    for spec in layout.fields:
        own = spec.channels(layout.axes)
        kept = [c for c in own if spec.name in wanted or c in wanted]
        if kept:
            specs.append(spec)
            channels += kept
    read = [c for spec in specs for c in spec.channels(layout.axes)]
    picked = None if channels == read else [read.index(c) for c in channels]
    if not specs:
        raise DataError(f"fields is empty; '{path}' has {', '.join(known)}")
    return tuple(specs), picked, tuple(channels)


def _blocks(coarsen: int | Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    blocks = per_axis(coarsen, len(shape), "coarsen")
    if any(k < 1 or n % k for n, k in zip(shape, blocks, strict=True)):
        raise DataError(f"coarsen is {coarsen}; it must divide the grid of {shape} cells")
    return blocks


def _average(frames: Tensor, blocks: tuple[int, ...]) -> Tensor:
    """Averages over blocks of cells; frames are `(C, T, *space)`."""
    if set(blocks) == {1}:
        return frames
    split = [size for n, k in zip(frames.shape[2:], blocks, strict=True) for size in (n // k, k)]
    inner = [3 + 2 * axis for axis in range(len(blocks))]
    return frames.reshape(*frames.shape[:2], *split).mean(inner)
