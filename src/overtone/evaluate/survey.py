"""What of a prediction and its truth a diagnosis looks at.

Fields that vary in the truth, measured in units of its standard deviation; as many cells as are
needed; the axes that wrap, as told or judged by the truth's ends; and some frames to search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.data.frames import Pair
from overtone.domain import BoundarySpec, Domain
from overtone.errors import DataError
from overtone.evaluate.diagnosis import AXES
from overtone.metrics.artifacts.harmonics import Patch
from overtone.metrics.artifacts.lattice import check_patch
from overtone.metrics.spectrum import envelope

SEARCHED = 48
"""Frames that are searched for a period, at most, spread over samples and steps."""

MOST_CELLS = {1: 2**16, 2: 1024, 3: 96}
"""Cells along an axis that are looked at, at most, by number of axes."""

CONSTANT = 1e-6
"""A field whose standard deviation is less than this share of its size is constant."""

MEETING = 3.0
"""Where the step across the seam is at most so many times a usual one, an axis is periodic."""


@dataclass(frozen=True, eq=False)
class View:
    """A pair as it is looked at: fields that vary, on a box of cells, in the truth's units."""

    pair: Pair
    kept: list[int]
    scale: Tensor
    grid: tuple[int, ...]
    periodic: tuple[bool, ...]
    notes: tuple[str, ...]

    @property
    def ndim(self) -> int:
        """Number of spatial axes."""
        return len(self.grid)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of those that vary."""
        return tuple(self.pair.fields[i] for i in self.kept)

    def residual(self, sample: int, step: int) -> Tensor | None:
        """`(C, *grid)` in units of the truth's standard deviation; None if it is not finite."""
        predicted, true = self.pair.read(sample, step)
        if not bool(predicted.isfinite().all()):
            return None
        box = (..., *(slice(0, n) for n in self.grid))
        return (predicted - true)[self.kept][box] / self.scale

    def envelope(self, residual: Tensor) -> Tensor:
        """Its local energy; see `metrics/spectrum.py`."""
        return envelope(residual, self.periodic)

    def some_frames(self) -> Iterator[Tensor]:
        """Residuals of some frames that are finite and not the truth."""
        num = 0
        for sample, step in _frames_to_search(self.pair):
            residual = self.residual(sample, step)
            if residual is not None and bool(residual.any()):
                num += 1
                yield residual
        if not num:
            raise DataError(
                f"no frame of '{self.pair.prediction.name}' that was looked at is finite and "
                "different from the truth; there is nothing to diagnose"
            )


def _frames_to_search(pair: Pair) -> list[tuple[int, int]]:
    """Samples and steps to search, the last step of each sample among them."""
    num_steps = min(pair.steps, max(8, SEARCHED // pair.num))
    return [
        (sample, step)
        for sample in _evenly(0, pair.num - 1, SEARCHED // num_steps)
        for step in _evenly(1, pair.lengths[sample], num_steps)
    ]


def _evenly(first: int, last: int, count: int) -> list[int]:
    """At most `count` whole numbers from first to last, both included, none twice."""
    count = min(count, last - first + 1)
    return torch.linspace(first, last, max(count, 0)).round().int().tolist()


def survey(pair: Pair, patch: Patch | None, boundaries: BoundarySpec | None) -> View:
    """What to look at: fields that vary, cells, axes that wrap."""
    space = tuple(range(1, 1 + len(pair.truth.shape)))
    variance, square, seams, num = 0.0, 0.0, 0.0, 0
    for sample, step in _frames_to_search(pair):
        _, true = pair.read(sample, step)
        variance = variance + true.var(dim=space, correction=0)
        square = square + true.square().mean(dim=space)
        alike = true / _spread(true, space)
        seams = seams + torch.stack([_seam(alike, axis) for axis in space])
        num += 1
    scale, size = (torch.as_tensor(total / num).sqrt() for total in (variance, square))
    varies = (scale > CONSTANT * size) & (scale > 0)
    kept = varies.nonzero()[:, 0].tolist()
    notes = list(pair.notes)
    if constant := [name for i, name in enumerate(pair.fields) if i not in kept]:
        notes.append(f"Constant in the truth and left out: {', '.join(constant)}.")
    if not kept:
        raise DataError(
            f"the truth '{pair.truth.name}' is constant in space ({', '.join(pair.fields)}); there "
            "is nothing to compare with"
        )
    meets = torch.as_tensor(seams / num < MEETING**2).tolist()
    periodic = _periodic(pair, boundaries, meets, notes)
    grid = _box(pair.truth.shape, patch, notes)
    periodic = tuple(
        wrap and n == whole for wrap, n, whole in zip(periodic, grid, pair.truth.shape, strict=True)
    )
    column = scale[kept].reshape(-1, *(1,) * len(space))
    return View(pair, kept, column, grid, periodic, tuple(notes))


def _spread(frame: Tensor, space: tuple[int, ...]) -> Tensor:
    """Standard deviation of each field, so that units don't weigh; 1 where one is constant."""
    found = frame.std(dim=space, correction=0, keepdim=True)
    return torch.where(found > 0, found, 1.0)


def _seam(frame: Tensor, axis: int) -> Tensor:
    """Mean square step across the two ends of an axis, in units of a usual step's."""
    usual = frame.diff(dim=axis).square().mean()
    across = (frame.narrow(axis, 0, 1) - frame.narrow(axis, -1, 1)).square().mean()
    return across / usual.clamp(min=1e-300)


def _periodic(
    pair: Pair, boundaries: BoundarySpec | None, meets: list[bool], notes: list[str]
) -> tuple[bool, ...]:
    shape = pair.truth.shape
    if boundaries is not None:
        return Domain(shape, (1.0,) * len(shape), boundaries, ("any",)).periodic
    for frames in (pair.truth, pair.prediction):
        if frames.domain is not None:
            return frames.domain.periodic
    kinds = [f"{axis} {'periodic' if m else 'open'}" for axis, m in zip(AXES, meets, strict=False)]
    notes.append(
        f"Boundaries judged by the truth's ends: {', '.join(kinds)} (--boundary sets them)."
    )
    return tuple(meets)


def _box(shape: tuple[int, ...], patch: Patch | None, notes: list[str]) -> tuple[int, ...]:
    """The cells to look at: all, or the first ones along an axis that is very long."""
    patches = (1,) * len(shape) if patch is None else check_patch(patch, shape)
    most = MOST_CELLS[len(shape)]
    box = tuple(min(n, max(most, 6 * p)) for n, p in zip(shape, patches, strict=True))
    if box != shape:
        notes.append(f"Only a box of {box} of {shape} cells is looked at.")
    return box
