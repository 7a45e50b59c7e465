"""`stats.yaml`: mean, std and rms of each field and component, and of its change between frames.

One streaming pass over the training split in float64, a block of frames at a time, so that files
may be of any size and values of any unit (squares of 1e30 overflow in float32). Two sets of values
with counts n, means m and sums of squared deviations M2 are merged by (Chan, Golub and LeVeque,
1979)

    m = m_a + δ n_b / n,    M2 = M2_a + M2_b + δ² n_a n_b / n,    δ = m_b - m_a,  n = n_a + n_b,

which does not cancel when the mean is large. Variances are divided by n, as in The Well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
import yaml
from torch import Tensor

from overtone.data.handles import OpenFile
from overtone.data.layout import FieldSpec
from overtone.data.location import MAX_STATS_BYTES, STATS, Location, find_files
from overtone.data.writer import writing
from overtone.errors import DataError
from overtone.files import replacing
from overtone.ops import listed

NAMES = ("mean", "std", "rms")
ALL_NAMES = (*NAMES, *(f"{name}_delta" for name in NAMES))
BLOCK_BYTES = 32_000_000
"""Size of what is read at a time."""


@dataclass
class Moments:
    """Running mean and spread of several components.

    Attributes:
        count: values of each component so far.
        mean: `(components,)`, float64.
        spread: sums of squared deviations from the mean, `(components,)`, float64.
    """

    count: int = 0
    mean: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.float64))
    spread: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.float64))

    def add(self, values: Tensor) -> None:
        """Take in values `(components, …)`, float64."""
        flat = values.flatten(1)
        if not flat.shape[1]:
            return
        mean = flat.mean(1)
        spread = (flat - mean[:, None]).square_().sum(1)
        total = self.count + flat.shape[1]
        change = mean - self.mean
        self.spread = self.spread + spread + change**2 * (self.count * flat.shape[1] / total)
        self.mean = self.mean + change * (flat.shape[1] / total)
        self.count = total

    def summary(self) -> dict[str, Tensor]:
        """Mean, biased standard deviation and root mean square, each `(components,)`."""
        variance = self.spread / self.count
        return {
            "mean": self.mean,
            "std": variance.sqrt(),
            "rms": (variance + self.mean**2).sqrt(),
        }


def compute_stats(
    path: str | Path, split: str = "train", *, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Statistics of a split: statistic -> field -> number (scalar), list (vector) or lists.

    Args:
        path: as for `WellFolder`.
        split: the one to describe; only the training split should be.
        progress: called with the number of files done and of all files.
    """
    moments: dict[str, tuple[FieldSpec, int, Moments, Moments]] = {}
    files = find_files(path, split)
    for number, place in enumerate(files):
        opened = OpenFile(place, place.layout())
        try:
            for spec in opened.layout.fields:
                entry = (spec, len(opened.layout.shape), Moments(), Moments())
                _, ndim, values, changes = moments.setdefault(spec.name, entry)
                if ndim != len(opened.layout.shape):
                    raise DataError(f"'{place.path}' has another number of axes than the others")
                _add_field(opened, spec, values, changes)
        finally:
            opened.close()
        if progress:
            progress(number + 1, len(files))
    result: dict[str, Any] = {name: {} for name in ALL_NAMES}
    for name, (spec, ndim, values, changes) in moments.items():
        for suffix, collected in (("", values), ("_delta", changes)):
            if collected.count:
                for statistic, value in collected.summary().items():
                    shape = (ndim,) * spec.order
                    result[statistic + suffix][name] = listed(value.reshape(shape))
    return result


def write_stats(
    path: str | Path, split: str = "train", *, progress: Callable[[int, int], None] | None = None
) -> Path:
    """Compute the statistics of a split and write `stats.yaml` into a local Well folder."""
    if "://" in str(path):
        raise DataError(f"'{path}' is remote; copy the dataset here to write its {STATS}")
    content = compute_stats(path, split, progress=progress)
    place = Path(path)
    target = (place.parent if place.is_file() else place) / STATS
    with writing(target), replacing(target) as scratch:
        scratch.write_text(yaml.safe_dump(content, sort_keys=False))
    return target


def load_stats(place: Location) -> dict[str, Any]:
    """Read and verify a `stats.yaml`."""
    content = place.read(MAX_STATS_BYTES + 1)
    if len(content) > MAX_STATS_BYTES:
        raise DataError(f"'{place.path}' is too large for a {STATS}")
    try:
        stats = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"'{place.path}' can't be read: {error}") from error
    known = cast("dict[str, Any]", stats) if isinstance(stats, dict) else {}
    if not all(isinstance(known.get(name), dict) for name in NAMES[:2]):
        raise DataError(
            f"'{place.path}' is not a {STATS} of The Well: expected {', '.join(ALL_NAMES)}, each "
            "with one entry for each field. `overtone data stats` writes it"
        )
    return known


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
            opened.require_unchanged()
            yield Block(trajectory, start, values)


def _add_field(opened: OpenFile, spec: FieldSpec, values: Moments, changes: Moments) -> None:
    previous, trajectory = None, -1
    for block in scan(opened, spec):
        if not bool(block.values.isfinite().all()):
            raise DataError(
                f"'{opened.place.path}': field '{spec.name}' of trajectory {block.trajectory} has "
                "values that are NaN or infinite; `overtone data check` says where"
            )
        values.add(block.values)
        if spec.time_varying:
            joined = block.values
            if block.trajectory == trajectory and previous is not None:
                joined = torch.cat([previous, joined], dim=1)
            changes.add(joined.diff(dim=1))
            previous, trajectory = block.values[:, -1:], block.trajectory
