"""Reading everything, a little at a time: for statistics and checks of files of any size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.data.handles import OpenFile
from overtone.data.layout import FieldSpec

BLOCK_BYTES = 32_000_000


@dataclass(frozen=True)
class Block:
    """Consecutive frames of one field.

    Attributes:
        trajectory: which trajectory of the file.
        start: its first frame.
        values: `(components, T, *space)`, float64.
    """

    trajectory: int
    start: int
    values: Tensor


def scan(opened: OpenFile, spec: FieldSpec) -> Iterator[Block]:
    """Yield all values of a field once; a field without a sample or time axis is shorter."""
    layout = opened.layout
    components = spec.components(len(layout.shape))
    trajectories = layout.num_trajectories if spec.sample_varying else 1
    frames = layout.num_steps if spec.time_varying else 1
    length = max(1, BLOCK_BYTES // (8 * components * math.prod(layout.shape)))
    for trajectory in range(trajectories):
        for start in range(0, frames, length):
            steps = slice(start, min(frames, start + length), 1)
            count = steps.stop - steps.start
            values = torch.empty(components, count, *layout.shape, dtype=torch.float64)
            opened.read(spec, trajectory, steps, values)
            yield Block(trajectory, start, values)
