"""Windows of trajectories, as a PyTorch dataset, whatever the trajectories are read from.

A window of a trajectory is `context` frames and the `horizon` frames after them, `stride` frames
apart. A dataset's items are all windows of all trajectories, in that order.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from overtone.domain import Domain, Window
from overtone.errors import DataError

Item = tuple[Window, Tensor]
"""A window `(T, C, *space)` and its target `(horizon, C, *space)`."""
SAME = 1e-3
"""Relative difference up to which dt and extent are equal but for rounding, as for models."""
Run = TypeVar("Run")


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


class Windows(Dataset[Item]):
    """The windows of some trajectories. What trajectories are, and how they are read, is below.

    Args:
        path, split: where the trajectories come from, for errors.
        context: frames of a window.
        horizon: frames of its target.
        stride: how many stored frames apart the frames of a window are.
        whole: one item for each trajectory: its first `context` frames, and all that follow as
            the target.
    """

    def __init__(self, path: str, split: str, context: int, horizon: int, stride: int, whole: bool):
        for name, value in {"context": context, "horizon": horizon, "stride": stride}.items():
            if value < 1:
                raise DataError(f"{name} is {value}; expected at least 1")
        self.path, self.split = path, split
        self.context, self.horizon, self.stride, self.whole = context, horizon, stride, whole
        self._offsets = [0]

    @property
    @abstractmethod
    def num_trajectories(self) -> int:
        """Trajectories in use."""

    @abstractmethod
    def domain_of(self, trajectory: int) -> Domain:
        """What one of the trajectories in use lives on; files may differ in extent and dt."""

    @abstractmethod
    def where(self, index: int) -> Place:
        """File, trajectory and first frame of an item."""

    @abstractmethod
    def _stored_frames(self, trajectory: int) -> int:
        """Frames of one of the trajectories in use, as they are stored."""

    @abstractmethod
    def _read(self, trajectory: int, steps: slice) -> Tensor:
        """Stored frames `(T, C, *space)` of one of the trajectories in use."""

    def _count_windows(self) -> None:
        """Find out where the items of each trajectory begin, once these are known."""
        counts = map(self._num_windows, range(self.num_trajectories))
        self._offsets = list(accumulate(counts, initial=0))

    @property
    def domain(self) -> Domain:
        """What the windows of the first trajectory live on; `dt` is the time between frames."""
        return self.domain_of(0)

    def __len__(self) -> int:
        return self._offsets[-1]

    def __getitem__(self, index: int) -> Item:
        trajectory, step = self._locate(index)
        frames = self._read(trajectory, self._steps(trajectory, step))
        window = Window(frames[: self.context], self.domain_of(trajectory))
        return window, frames[self.context :]

    def first_item(self, trajectory: int) -> int:
        """Index of the first item of one of the trajectories in use."""
        return self._offsets[trajectory]

    def num_frames(self, trajectory: int) -> int:
        """Frames of one of the trajectories in use, `stride` stored ones apart."""
        return math.ceil(self._stored_frames(trajectory) / self.stride)

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
        first, last = start * self.stride, (start + count - 1) * self.stride
        steps = slice(first, last + 1, self.stride)
        return Window(self._read(trajectory, steps), self.domain_of(trajectory))

    def close(self) -> None:
        """Let go of what is open; reading opens it again."""

    def _locate(self, index: int) -> tuple[int, int]:
        """Trajectory and first frame of an item."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of a dataset of {len(self)}")
        index %= len(self)
        trajectory = bisect_right(self._offsets, index) - 1
        return trajectory, index - self._offsets[trajectory]

    def _steps(self, trajectory: int, step: int) -> slice:
        """The frames of an item."""
        if self.whole:
            return slice(0, self._stored_frames(trajectory), self.stride)
        count = self.context + self.horizon
        return slice(step, step + (count - 1) * self.stride + 1, self.stride)

    def _num_windows(self, trajectory: int) -> int:
        frames = self._stored_frames(trajectory)
        horizon = 1 if self.whole else self.horizon
        windows = frames - (self.context + horizon - 1) * self.stride
        if windows < 1:
            raise DataError(
                f"{self._name(trajectory)} has {frames} frames; context {self.context} and "
                f"horizon {horizon} at stride {self.stride} need "
                f"{(self.context + horizon - 1) * self.stride + 1}. Ask for fewer"
            )
        return 1 if self.whole else windows

    def _name(self, trajectory: int) -> str:
        """What to call a trajectory in an error."""
        return f"trajectory {trajectory} of '{self.path}'"

    def _chosen(self, runs: Sequence[Run], trajectories: slice | Sequence[int] | None) -> list[Run]:
        """Some of all trajectories, by their numbers."""
        if trajectories is None:
            return list(runs)
        try:
            if isinstance(trajectories, slice):
                chosen = list(runs[trajectories])
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


def collate(items: Sequence[Item]) -> Item:
    """Make a batch: window `(B, T, C, *space)` and target `(B, horizon, C, *space)`.

    All windows must live on the same domain, up to rounding of extent and dt.
    """
    windows, targets = zip(*items, strict=True)
    domain = windows[0].domain
    for window in windows:
        if window.domain is not domain:
            _require_same_domain(window.domain, domain)
    if len({target.shape for target in targets}) > 1:
        raise DataError(
            f"targets have {sorted({len(target) for target in targets})} frames; trajectories of "
            "different length can't be in one batch. Use batches of one"
        )
    return Window(default_collate([w.fields for w in windows]), domain), default_collate([*targets])


def _require_same_domain(given: Domain, expected: Domain) -> None:
    for what in ("shape", "fields", "boundaries"):
        if getattr(given, what) != getattr(expected, what):
            raise DataError(f"a batch can't hold both {expected} and {given}; batch them apart")
    for what in ("dt", "extent"):
        own, first = getattr(given, what), getattr(expected, what)
        if not np.allclose(own, first, rtol=SAME, atol=0):
            raise DataError(
                f"a batch has windows whose {what} is {own}; that of the first is {first}, and a "
                f"model is called with one {what} for all of them. Use one {what} at a time, e.g. "
                "a folder for each; `overtone data check` lists the files that differ"
            )
