"""Windows of trajectories that are in memory: what `WellFolder` is for files.

Trajectories are `(T, C, *space)` in physical units, fields in the order of the domain; all of them
in one array are `(n, T, C, *space)`. Items are all windows of all trajectories, in that order.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset

from overtone.data.batches import Item
from overtone.domain import Domain, Window
from overtone.errors import DataError

Arrays = np.ndarray | Tensor | Sequence[np.ndarray | Tensor]
"""`(n, T, C, *space)`, or `(T, C, *space)` for each trajectory."""

HELD_OUT = 0.1
"""Share of the trajectories that validate, unless others do."""
HELD_BACK = 0.2
"""Share of the frames that do, where there is one trajectory."""


class ArrayWindows(Dataset[Item]):
    """The windows of trajectories in memory.

    Args:
        arrays: `(n, T, C, *space)`, or a list of trajectories `(T, C, *space)`, which may differ in
            length; NumPy's or torch's, of floating-point numbers. They are kept as float32.
        domain: what they live on.
        context: frames of a window.
        horizon: frames of its target.
    """

    def __init__(self, arrays: Arrays, domain: Domain, context: int = 6, horizon: int = 1):
        for name, value in {"context": context, "horizon": horizon}.items():
            if value < 1:
                raise DataError(f"{name} is {value}; expected at least 1")
        self.domain, self.context, self.horizon = domain, context, horizon
        self.trajectories = [_frames(array, domain, i) for i, array in enumerate(arrays)]
        if not self.trajectories:
            raise DataError("arrays is empty; expected at least one trajectory")
        counts = [len(frames) - context - horizon + 1 for frames in self.trajectories]
        for i, (frames, count) in enumerate(zip(self.trajectories, counts, strict=True)):
            if count < 1:
                raise DataError(
                    f"trajectory {i} has {len(frames)} frames; context {context} and horizon "
                    f"{horizon} need {context + horizon}. Give longer ones, or ask for fewer"
                )
        self._offsets = list(accumulate(counts, initial=0))

    def __repr__(self) -> str:
        """What is in it, in a line."""
        return f"ArrayWindows({self}; {self.domain})"

    def __str__(self) -> str:
        """How much is in it."""
        lengths = sorted({len(frames) for frames in self.trajectories})
        frames = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
        return (
            f"{len(self.trajectories)} trajectories of {frames} frames, {len(self):,} windows of "
            f"{self.context} + {self.horizon} frames"
        )

    def __len__(self) -> int:
        return self._offsets[-1]

    def __getitem__(self, index: int) -> Item:
        trajectory, step = self.where(index)
        frames = self.trajectories[trajectory][step : step + self.context + self.horizon].clone()
        return Window(frames[: self.context], self.domain), frames[self.context :]

    def where(self, index: int) -> tuple[int, int]:
        """Trajectory and first frame of an item."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of a dataset of {len(self)}")
        index %= len(self)
        trajectory = bisect_right(self._offsets, index) - 1
        return trajectory, index - self._offsets[trajectory]

    def again(self, *, context: int, horizon: int) -> ArrayWindows:
        """The same data cut into other windows."""
        return ArrayWindows(self.trajectories, self.domain, context, horizon)

    def hold_out(self) -> tuple[ArrayWindows, ArrayWindows]:
        """Two parts: what to train on, and a tenth of the trajectories, spread over all.

        Of a single trajectory the last fifth of its frames is held out; no window has both.
        """
        num = len(self.trajectories)
        held = max(1, round(HELD_OUT * num))
        chosen = {int((i + 0.5) * num / held) for i in range(held)}
        if num > 1:
            parts: list[list[Tensor]] = [[], []]
            for i, frames in enumerate(self.trajectories):
                parts[i in chosen].append(frames)
        else:
            (frames,) = self.trajectories
            least = self.context + self.horizon
            cut = len(frames) - max(least, round(HELD_BACK * len(frames)))
            if cut < least:
                raise DataError(
                    f"there is one trajectory of {len(frames)} frames, too few to hold some of "
                    f"them out for validation ({least} for training and {least} for that); give "
                    "more, or valid=..."
                )
            parts = [[frames[:cut]], [frames[cut:]]]
        first, second = (ArrayWindows(p, self.domain, self.context, self.horizon) for p in parts)
        return first, second

    def fingerprint(self) -> str:
        """SHA-256 of all values, in hexadecimal."""
        total = hashlib.sha256(str(self.domain.to_dict()).encode())
        for frames in self.trajectories:
            total.update(f"{tuple(frames.shape)}".encode())
            total.update(frames.contiguous().numpy().data)
        return total.hexdigest()


def _frames(array: Any, domain: Domain, number: int) -> Tensor:
    """A trajectory `(T, C, *space)` as float32, if that is what it is."""
    wanted = (len(domain.fields), *domain.shape)
    shape = tuple(getattr(array, "shape", ()))
    if len(shape) != domain.ndim + 2 or shape[1:] != wanted:
        raise DataError(
            f"trajectory {number} has the shape {shape}; expected (T, {', '.join(map(str, wanted))}"
            f"), time, then the fields {', '.join(domain.fields)}, then space, of all trajectories "
            "(n, T, C, *space). A single field needs its axis, too: array[:, :, None]"
        )
    frames = Window(array, domain).fields.detach().cpu().float()
    if not bool(frames.isfinite().all()):
        step, channel, *cell = (int(i) for i in (~frames.isfinite()).nonzero()[0])
        raise DataError(
            f"trajectory {number} has values that are NaN or infinite, as float32, the first in "
            f"frame {step}, field '{domain.fields[channel]}', cell {tuple(cell)}; leave it out"
        )
    return frames
