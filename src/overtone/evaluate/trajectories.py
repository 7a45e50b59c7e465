"""The true trajectories, read frame by frame.

All models predict the same frames: the first is the one after `start` and the longest context. A
model with a shorter context sees the latest frames before it. Only what is asked for is read, so
that memory does not grow with the length of a rollout. What a file says about itself can be said
again by a file that is made from it (`header_like`, `fields_of`, `coordinates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from overtone.data.header import Header
from overtone.data.layout import FieldSpec, Layout
from overtone.data.location import Location
from overtone.data.well import WellFolder
from overtone.domain import Domain, Window
from overtone.errors import DataError


class Reading(TypedDict, total=False):
    """What to read of a dataset.

    Attributes:
        split: train, valid or test; `"test"` by default.
        start: first frame of the longest context.
        trajectories: how many of the split's; all by default.
        stride: how many stored frames apart the frames are.
        coarsen: cells to average into one, one number or one for each axis.
    """

    split: str
    start: int
    trajectories: int | None
    stride: int
    coarsen: int | Sequence[int]


class Trajectories:
    """The trajectories of one split, for evaluation.

    Args:
        path: as for `WellFolder`.
        fields: the channels to read.
        context: the longest context of the models.
        reading: as `Reading` says.
    """

    def __init__(self, path: str | Path, fields: Sequence[str], context: int, reading: Reading):
        self.start, self.context = reading.get("start", 0), context
        cap = reading.get("trajectories")
        if self.start < 0 or (cap is not None and cap < 1):
            raise DataError(
                f"start is {self.start} and trajectories {cap}; expected 0 or more, and 1 or more"
            )
        self.folder = WellFolder(
            path,
            reading.get("split", "test"),
            context=context,
            stride=reading.get("stride", 1),
            coarsen=reading.get("coarsen", 1),
            trajectories=None if cap is None else slice(cap),
            fields=fields,
        )
        self._lock = Lock()  # threads may share the files
        if self.folder.domain.fields != tuple(fields):
            raise DataError(
                f"'{path}' has the fields in the order {self.folder.domain.fields}, the model "
                f"expects {tuple(fields)}"
            )

    def __len__(self) -> int:
        return self.folder.num_trajectories

    @property
    def first(self) -> int:
        """The frame that is predicted first."""
        return self.start + self.context

    @property
    def domain(self) -> Domain:
        """What the first trajectory lives on."""
        return self.domain_of(0)

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.folder.layouts[0].dataset_name

    def domain_of(self, trajectory: int) -> Domain:
        """What a trajectory lives on; files may differ in extent and dt."""
        return self.folder.domain_of(trajectory)

    def parameters(self, trajectory: int) -> dict[str, float | str]:
        """Simulation parameters and constant scalars."""
        return self.folder.parameters(self.folder.first_item(trajectory))

    def file(self, trajectory: int) -> Location:
        """The file that a trajectory comes from."""
        return Location(self.folder.where(self.folder.first_item(trajectory)).file)

    def layout(self, trajectory: int) -> Layout:
        """The metadata of that file."""
        return self.folder.layouts[self.folder.files.index(self.file(trajectory))]

    def num_targets(self, trajectory: int) -> int:
        """How many frames there are to predict."""
        return self.folder.num_frames(trajectory) - self.first

    def require_steps(self, steps: int) -> None:
        """Raise an error if a trajectory is too short for a rollout."""
        if steps < 1:
            raise DataError(f"steps is {steps}; expected at least 1")
        for trajectory in range(len(self)):
            if self.num_targets(trajectory) < steps:
                raise DataError(
                    f"{steps} steps were asked for; trajectory {trajectory} of '{self.name}' has "
                    f"{self.folder.num_frames(trajectory)} frames, which leaves "
                    f"{max(self.num_targets(trajectory), 0)} steps after a context of "
                    f"{self.context} that starts at frame {self.start}. Ask for fewer"
                )

    def batches(self, size: int, *, by_file: bool = False) -> Iterator[list[int]]:
        """All trajectories in order, at most `size` at a time.

        Args:
            size: of a batch, at most.
            by_file: whether to keep files apart; else a batch shares a domain.
        """
        if size < 1:
            raise DataError(f"batch is {size}; expected at least 1")
        kind = self.file if by_file else self.domain_of
        for _, group in groupby(range(len(self)), key=kind):
            rows = [*group]
            yield from (rows[i : i + size] for i in range(0, len(rows), size))

    def window(self, rows: Sequence[int], context: int, target: int) -> Window:
        """The `context` frames before a frame, of some trajectories, `(B, T, C, *space)`."""
        return self._read(rows, target - context, context)

    def frame(self, rows: Sequence[int], target: int) -> Tensor:
        """A frame of some trajectories, `(B, C, *space)`."""
        return self._read(rows, target, 1).fields[:, 0]

    def close(self) -> None:
        """Close the files."""
        self.folder.close()

    def _read(self, rows: Sequence[int], start: int, count: int) -> Window:
        with self._lock:
            windows = [self.folder.frames(row, start, count) for row in rows]
        fields = torch.stack([window.fields for window in windows])
        if not bool(fields.isfinite().all()):
            row, frame = (int(i) for i in (~fields.isfinite()).nonzero()[0, :2])
            raise DataError(
                f"the truth holds NaN or infinity: trajectory {rows[row]} of '{self.name}', frame "
                f"{start + frame}. `overtone data check` lists all of them"
            )
        return Window(fields, windows[0].domain)


def coordinates(file: Location, layout: Layout, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Positions of the cells along each axis, float64.

    Args:
        file: the file.
        layout: its layout.
        shape: the grid; where it is coarser than the file's, the means of the averaged cells.
    """
    with file.open() as opened:
        stored = [
            np.asarray(opened[f"dimensions/{axis}"], dtype=np.float64) for axis in layout.axes
        ]
    # Some files give the coordinates of every sample; they are those of the first.
    points = [values.reshape(-1, values.shape[-1])[0] for values in stored]
    return tuple(x.reshape(n, -1).mean(axis=1) for x, n in zip(points, shape, strict=True))


def header_like(
    file: Location, layout: Layout, domain: Domain, attributes: Mapping[str, str]
) -> Header:
    """The header for data on a domain that come from a file.

    Args:
        file: the file.
        layout: its layout.
        domain: grid, extent and dt of the new data.
        attributes: what the new file says beside that.
    """
    numbers = {k: float(v) for k, v in layout.parameters.items() if not isinstance(v, str)}
    texts = {k: v for k, v in layout.parameters.items() if isinstance(v, str)}
    return Header(
        name=layout.dataset_name,
        shape=domain.shape,
        extent=domain.extent,
        boundaries=domain.boundaries,
        dt=domain.dt,
        axes=layout.axes,
        coordinates=tuple(x.tolist() for x in coordinates(file, layout, domain.shape)),
        parameters=numbers,
        attributes={**texts, **attributes},
        grid_type=layout.grid_type,
    )


def fields_of(layout: Layout, channels: Sequence[str]) -> tuple[list[FieldSpec], list[int]]:
    """Fields that hold some channels, and the order in which they take them.

    A vector or tensor of which a part is missing is no vector; its channels become scalars.
    """
    found: list[tuple[FieldSpec, list[int]]] = []
    for spec in layout.fields:
        own = spec.channels(layout.axes)
        present = [name for name in own if name in channels]
        if len(present) == len(own):
            kept = FieldSpec(spec.name, spec.order)
            found.append((kept, [channels.index(name) for name in own]))
        else:
            found += [(FieldSpec(name), [channels.index(name)]) for name in present]
    found.sort(key=lambda entry: entry[0].order)
    return [spec for spec, _ in found], [index for _, part in found for index in part]
