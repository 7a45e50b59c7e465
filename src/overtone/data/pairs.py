"""A prediction and its truth, made comparable: the same grid, fields, samples and steps.

Steps are counted from 1, the first frame that differs from the truth: the context frames that a
rollout begins with are no prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.data.frames import Frames
from overtone.data.location import suggest
from overtone.errors import DataError


@dataclass(frozen=True, eq=False)
class Pair:
    """Frames of a prediction next to those of the truth. Built by `match`.

    Attributes:
        prediction, truth: where the frames come from.
        fields: names of the channels that are compared.
        picks: for prediction and truth, which of their channels these are.
        start: the first frame that is compared.
        lengths: for each trajectory, how many frames are compared.
        notes: what was left out, and why.
    """

    prediction: Frames
    truth: Frames
    fields: tuple[str, ...]
    picks: tuple[list[int], list[int]]
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


Picks = tuple[list[int], list[int]]


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
