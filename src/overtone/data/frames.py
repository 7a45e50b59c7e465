"""Trajectories of any kind, one frame at a time: Well folders, and arrays from any model.

Arrays are described by a letter for each of their axes, see `axes.py`. Without a description the
order is `(n, T, C, *S)`, or, where a file holds one array for each field, `(n, T, *S)` with `(D,)`
at the end for vectors.

`match` makes a prediction and its truth comparable: the same grid, fields, samples and steps. Steps
are counted from 1, the first frame that differs from the truth: the context frames that a rollout
begins with are not predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from overtone.data.axes import SPACE, parse_layout, space_of
from overtone.data.location import SUFFIXES, Location, find_splits, hdf5_files
from overtone.data.variables import FORMATS, open_arrays
from overtone.data.well import WellFolder
from overtone.domain import Domain
from overtone.errors import DataError, suggest

Picks = tuple[list[int], list[int]]
"""Which channels are compared: those of the prediction, and those of the truth."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Trajectories that are read frame by frame. Built by `open_frames`.

    Attributes:
        name: of the file or folder, without the folders that it is in.
        shape: the grid.
        lengths: number of frames of each trajectory.
        num_channels: C.
        channels: their names; empty where the file does not tell.
        domain: what they live on, where the file tells.
        read: trajectory, step -> frame `(C, *space)`, float64.
    """

    name: str
    shape: tuple[int, ...]
    lengths: tuple[int, ...]
    num_channels: int
    channels: tuple[str, ...]
    domain: Domain | None
    read: Callable[[int, int], Tensor]


@contextmanager
def open_frames(
    path: str | Path, *, layout: str | None = None, split: str | None = None
) -> Iterator[Frames]:
    """Open trajectories for as long as the `with` block lasts.

    Args:
        path: a Well folder or file, `.npy`, `.npz`, `.zarr` or `.nc`.
        layout: a letter for each axis of the arrays; means nothing for Well files.
        split: of a Well folder; see `choose_split`.
    """
    if Path(path).suffix in FORMATS:
        with open_arrays(path) as arrays:
            yield _from_arrays(arrays, layout, Path(path))
        return
    if not is_well(path):
        raise DataError(
            f"'{path}' is of no known kind; expected a Well folder, a file that ends in "
            f"{', '.join((*SUFFIXES, *FORMATS))}"
        )
    data = WellFolder(path, split or choose_split(path), context=1, horizon=1, dtype=torch.float64)
    try:
        yield Frames(
            Location(str(path)).name,
            data.domain.shape,
            tuple(data.num_frames(i) for i in range(data.num_trajectories)),
            len(data.domain.fields),
            data.domain.fields,
            data.domain,
            lambda trajectory, step: data.frames(trajectory, step, 1).fields[0],
        )
    finally:
        data.close()


def is_well(path: str | Path) -> bool:
    """Whether a path leads to HDF5 files, by its name; what does not exist may be a folder."""
    place = Location(str(path))
    return place.name.endswith(SUFFIXES) or not place.is_file()


def choose_split(path: str | Path) -> str:
    """The split to read if none was asked for: test, or the only one that there is."""
    place = Location(str(path))
    if not place.is_folder() or hdf5_files(place):
        return "test"
    splits = list(find_splits(place))
    return splits[0] if len(splits) == 1 else "test"


@dataclass(frozen=True, eq=False)
class Pair:
    """Frames of a prediction next to those of the truth. Built by `match`.

    Attributes:
        prediction, truth: where the frames come from.
        fields: names of the channels that are compared.
        picks: where these channels are in the prediction and in the truth.
        start: the first frame that is compared.
        lengths: for each trajectory, how many frames are compared.
        notes: what was left out, and why.
    """

    prediction: Frames
    truth: Frames
    fields: tuple[str, ...]
    picks: Picks
    start: int
    lengths: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def num(self) -> int:
        """Number of trajectories."""
        return len(self.lengths)

    @property
    def steps(self) -> int:
        """Number of steps of the longest trajectory."""
        return max(self.lengths)

    def read(self, sample: int, step: int) -> tuple[Tensor, Tensor]:
        """Prediction and truth at a step (from 1), each `(C, *space)`, float64.

        Raises:
            DataError: the truth is not finite.
        """
        frame = self.start + step - 1
        predicted = self.prediction.read(sample, frame)[self.picks[0]]
        true = self.truth.read(sample, frame)[self.picks[1]]
        if not bool(true.isfinite().all()):
            raise DataError(
                f"the truth '{self.truth.name}' holds values that are NaN or infinite in sample "
                f"{sample}, frame {frame}; give one that is finite"
            )
        return predicted, true


def match(prediction: Frames, truth: Frames, *, field: str | None = None) -> Pair:
    """Line up a prediction with its truth.

    Args:
        prediction: what a model made.
        truth: what it should have been.
        field: name of the one field (all its components) or channel to compare; all if None.

    Raises:
        DataError: they differ in what can't be mended, or the prediction is the truth.
    """
    if prediction.shape != truth.shape:
        raise DataError(
            f"the prediction '{prediction.name}' lies on a grid of {prediction.shape} cells, the "
            f"truth '{truth.name}' on {truth.shape}; they must be the same. For arrays, --layout "
            "says which axes are cells"
        )
    if len(prediction.lengths) != len(truth.lengths):
        raise DataError(
            f"the prediction '{prediction.name}' has {len(prediction.lengths)} samples, the truth "
            f"'{truth.name}' has {len(truth.lengths)}; they must be the same ones in the same order"
        )
    notes: list[str] = []
    names, picks = _fields(prediction, truth, notes)
    if field is not None:
        names, picks = _choose(names, picks, field)
    both = list(zip(prediction.lengths, truth.lengths, strict=True))
    lengths = [min(pair) for pair in both]
    for who, index in (("prediction", 0), ("truth", 1)):
        if any(pair[index] < pair[1 - index] for pair in both):
            notes.append(
                f"The {who} is the shorter one: {max(lengths)} frames of "
                f"{max(pair[1 - index] for pair in both)} are compared."
            )
    pair = Pair(prediction, truth, names, picks, 0, tuple(lengths), ())
    start = _first_difference(pair)
    if start:
        notes.append(f"The first {start} frames equal the truth (context) and are left out.")
    lengths = [max(0, length - start) for length in lengths]
    return Pair(prediction, truth, names, picks, start, tuple(lengths), tuple(notes))


def _from_arrays(arrays: Mapping[str, Any], layout: str | None, path: Path) -> Frames:
    arranged = _arrange(arrays, layout, path)
    sizes = {
        tuple(dict(zip(axes, array.shape, strict=True)).get(a, 1) for a in "nt" + space_of(axes))
        for array, axes in arranged.values()
    }
    if len(sizes) > 1 or 0 in next(iter(sizes)):
        raise DataError(
            f"'{path}' holds {_shapes(arrays)}; expected the same samples, frames and cells of "
            "each, and at least one"
        )
    (num, steps, *shape) = sizes.pop()
    counts = {
        name: dict(zip(axes, array.shape, strict=True)).get("c", 1)
        for name, (array, axes) in arranged.items()
    }

    def read(sample: int, step: int) -> Tensor:
        parts = [_frame(array, axes, sample, step) for array, axes in arranged.values()]
        return torch.from_numpy(np.concatenate(parts))

    # The name of an only array says what it is ("pred"), not what its channels are.
    named = len(arranged) > 1
    channels = tuple(
        name if count == 1 else f"{name}_{SPACE[i] if count <= 3 else i}"
        for name, count in counts.items()
        for i in range(count)
    )
    return Frames(
        path.name,
        tuple(shape),
        (steps,) * num,
        len(channels),
        channels if named else (),
        None,
        read,
    )


def _frame(array: Any, axes: str, sample: int, step: int) -> np.ndarray:
    """One frame `(C, *space)` of an array, its space in the order x, y, z."""
    index = tuple({"n": sample, "t": step}.get(axis, slice(None)) for axis in axes)
    values = np.asarray(array[index], dtype=np.float64)
    left = [axis for axis in axes if axis not in "nt"]
    if "c" not in left:
        values, left = values[None], ["c", *left]
    return np.ascontiguousarray(values.transpose([left.index(a) for a in "c" + space_of(axes)]))


def _arrange(
    arrays: Mapping[str, Any], layout: str | None, path: Path
) -> dict[str, tuple[Any, str]]:
    """Each array that holds a field, and the letters of its axes."""
    letters = layout if layout is None else parse_layout(layout)
    # Coordinates, which many files hold next to the fields, have one axis.
    fields = {name: array for name, array in arrays.items() if array.ndim > 1 or len(arrays) == 1}
    found = {}
    fewest = min((array.ndim for array in fields.values()), default=0)
    for name, array in fields.items():
        if np.dtype(array.dtype).kind not in "fiu":
            raise DataError(
                f"'{path}' holds {array.dtype} of shape {array.shape}; expected numbers"
            )
        if letters is None:
            axes = _usual_layout(array.ndim, fewest, len(fields))
        else:
            axes = letters if array.ndim == len(letters) else letters.replace("c", "")
        if axes is None or array.ndim != len(axes):
            expected = (
                f"{len(layout)} axes for the layout '{layout}'"
                if layout
                else ("(n, T, C, *S) with one to three axes S")
            )
            raise DataError(
                f"'{path}' holds {_shapes(arrays)}; expected {expected}. Say what its axes are, "
                "e.g. --layout txy for frames of one field on two axes (n samples, t frames, "
                "c channels, x y z cells)"
            )
        found[name] = (array, axes)
    if not found:
        raise DataError(f"'{path}' holds no array of fields; it has {_shapes(arrays) or 'none'}")
    return found


def _usual_layout(ndim: int, fewest: int, num: int) -> str | None:
    """The letters of an array's axes by the usual order; None if there are no such."""
    if num == 1:
        return f"ntc{SPACE[: ndim - 3]}" if 4 <= ndim <= 6 else None
    if not 3 <= fewest <= 5 or ndim > fewest + 1:
        return None
    return f"nt{SPACE[: fewest - 2]}" + "c" * (ndim - fewest)


def _shapes(arrays: Mapping[str, Any]) -> str:
    return ", ".join(f"{name or 'an array'} {tuple(a.shape)}" for name, a in arrays.items())


def _fields(prediction: Frames, truth: Frames, notes: list[str]) -> tuple[tuple[str, ...], Picks]:
    """Channels that both have, by name where both have names, by position otherwise."""
    if prediction.channels and truth.channels:
        common = tuple(name for name in truth.channels if name in prediction.channels)
        if not common:
            raise DataError(
                f"the prediction '{prediction.name}' has the fields "
                f"{', '.join(prediction.channels)}, the truth '{truth.name}' has "
                f"{', '.join(truth.channels)}; they have none in common"
            )
        alone = {f.name: [n for n in f.channels if n not in common] for f in (prediction, truth)}
        notes += [f"Only '{who}' has {', '.join(n)}: left out." for who, n in alone.items() if n]
        first, second = ([f.channels.index(n) for n in common] for f in (prediction, truth))
        return common, (first, second)
    if prediction.num_channels != truth.num_channels:
        raise DataError(
            f"the prediction '{prediction.name}' has {prediction.num_channels} channels, the truth "
            f"'{truth.name}' has {truth.num_channels}; they must be the same. For arrays, --layout "
            "says which axis holds channels"
        )
    known = prediction.channels or truth.channels
    names = known or tuple(f"channel_{i}" for i in range(truth.num_channels))
    everything = list(range(len(names)))
    return names, (everything, everything)


def _choose(names: tuple[str, ...], picks: Picks, field: str) -> tuple[tuple[str, ...], Picks]:
    chosen = [i for i, name in enumerate(names) if name == field]
    chosen = chosen or [i for i, name in enumerate(names) if name.rpartition("_")[0] == field]
    if not chosen:
        raise DataError(
            f"there is no field '{field}'; there are {', '.join(names)}"
            f"{suggest(field, list(names))}"
        )
    first, second = ([pick[i] for i in chosen] for pick in picks)
    return tuple(names[i] for i in chosen), (first, second)


def _first_difference(pair: Pair) -> int:
    for step in range(1, pair.steps + 1):
        for sample, length in enumerate(pair.lengths):
            if step <= length and not torch.equal(*pair.read(sample, step)):
                return step - 1
    raise DataError(
        f"'{pair.prediction.name}' equals '{pair.truth.name}' in all {pair.steps} frames; give a "
        "prediction and its truth"
    )
