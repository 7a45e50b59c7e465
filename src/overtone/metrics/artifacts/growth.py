"""Where in the patch the error sits, and how a grid artifact grows over a rollout.

`fold` lays all patches of a residual on top of each other. `HarmonicTracker` takes the residuals
of a rollout one frame at a time and keeps, for each patch, one spectrum, one cell and a few numbers
per step: what it holds does not grow with the rollout but for those. `HarmonicPool` makes one of
many rollouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import DomainError, OvertoneError
from overtone.metrics.artifacts.harmonics import (
    HarmonicExcess,
    Patch,
    grid_of,
    judge_power,
    pool_power,
)
from overtone.metrics.artifacts.lattice import Lattice, check_patch, patch_power
from overtone.metrics.spectrum import Periodic, wrapping
from overtone.ops import listed

AT_ONCE = 16
"""Steps that are judged together."""


@dataclass(frozen=True)
class Fold:
    """A residual folded onto the patch cell.

    Attributes:
        mean: `(..., *patch)`: what all patches have in common.
        mean_square: `(..., *patch)`: where in a patch the error is large, whatever its sign.
        ndim: number of axes of the cell.
    """

    mean: Tensor
    mean_square: Tensor
    ndim: int

    @property
    def contrast(self) -> Tensor:
        """`(...)`: largest over smallest root mean square in the cell, in dB; 0 if all are 0."""
        cells = self.mean_square.flatten(-self.ndim)
        floor = cells.amax(dim=-1) * 1e-20 + 1e-300
        return 10 * ((cells.amax(dim=-1) + floor) / (cells.amin(dim=-1) + floor)).log10()


@dataclass(frozen=True)
class HarmonicGrowth:
    """A patch's artifact over a rollout.

    Attributes:
        patch: the patch, one for each axis.
        excess: for each step, dB of the lattice above its neighbourhood.
        power: for each step, mean square of the artifact.
        exponent: g of the best fit `power ∝ step^g`; NaN with fewer than two steps that have one.
        overall: the verdict on the mean spectrum of all steps.
        fold: all steps' residuals folded onto the patch cell.
    """

    patch: tuple[int, ...]
    excess: tuple[float, ...]
    power: tuple[float, ...]
    exponent: float
    overall: HarmonicExcess
    fold: Fold


def fold(residual: Tensor, patch: Patch, *, ndim: int) -> Fold:
    """Average a residual over all patches, cell by cell.

    Args:
        residual: `(..., *space)`.
        patch: period in cells. Where it does not divide the grid, the last patch is a part of one
            and counts where it is.
        ndim: number of spatial axes.
    """
    patches = check_patch(patch, tuple(residual.shape[-ndim:]))
    residual = residual.double()
    return Fold(_fold(residual, patches), _fold(residual.square(), patches), ndim)


class HarmonicTracker:
    """Harmonic excess of a rollout, one frame at a time.

    Frames of many samples and fields are pooled. For `power` to mean something, give residuals in
    comparable units, e.g. divided by the truth's standard deviation.

    Args:
        patches: periods to follow.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.
    """

    def __init__(self, patches: Sequence[Patch], *, ndim: int, periodic: Periodic = True):
        if not patches:
            raise OvertoneError("no patches to follow; give at least one")
        self.patches = tuple(patches)
        self.ndim = ndim
        self._wraps = wrapping(periodic, ndim)
        self._grid: tuple[int, ...] | None = None
        self._tracks: list[_Track] = []

    @property
    def num_steps(self) -> int:
        """Frames taken so far."""
        return self._tracks[0].num_steps if self._tracks else 0

    def update(self, residual: Tensor | Iterable[Tensor]) -> None:
        """Take the residual of the next step, `(..., *space)`.

        It may come some samples at a time. A step without any does not count.
        """
        for part in [residual] if isinstance(residual, Tensor) else residual:
            grid = grid_of(part, self.ndim)
            if self._grid is None:
                self._grid = grid
                self._tracks = [_Track(check_patch(patch, grid)) for patch in self.patches]
            if grid != self._grid:
                raise DomainError(f"residual on a grid of {grid} cells after ones of {self._grid}")
            for track in self._tracks:
                track.add(part, self._wraps)
        for track in self._tracks:
            track.end_step()

    def results(self) -> dict[Patch, HarmonicGrowth]:
        """What was seen so far, for each patch."""
        if not self._tracks:
            raise OvertoneError("no residual was given yet; call update first")
        return {p: track.result() for p, track in zip(self.patches, self._tracks, strict=True)}


class HarmonicPool:
    """Many rollouts as one, however they were batched: trackers go in one after the other.

    A step's excess and power are the means over the rollouts that got there. The overall verdict
    is on the mean spectrum of all their steps, the fold the mean of all their cells.
    """

    def __init__(self) -> None:
        self._pools: dict[Patch, _Pool] = {}

    def add(self, tracker: HarmonicTracker) -> None:
        """Take a finished rollout, of at least one step."""
        tracks = tracker._tracks  # pyright: ignore[reportPrivateUsage]
        for patch, track in zip(tracker.patches, tracks, strict=True):
            self._pools.setdefault(patch, _Pool(track)).add(track)

    def results(self) -> dict[Patch, HarmonicGrowth]:
        """For each patch, what the rollouts have in common; empty if there were none."""
        return {patch: pool.result() for patch, pool in self._pools.items()}


class _Track:
    """Running sums of one patch.

    Steps are judged some at a time, which costs hardly more than judging one.
    """

    def __init__(self, patch: tuple[int, ...]):
        self.patch = patch
        self.excess: list[float] = []
        self.power: list[float] = []
        self._waiting: list[Tensor] = []
        self._spectrum: Tensor | None = None
        self._step: Tensor | None = None
        self._rows = 0
        self._cells = torch.zeros(2, *patch, dtype=torch.float64)
        self._step_cells = torch.zeros_like(self._cells)
        self._lattice: Lattice | None = None

    def add(self, residual: Tensor, wraps: tuple[bool, ...]) -> None:
        """Take some samples of the current step."""
        power, self._lattice = patch_power(residual, self.patch, wraps)
        power = power.reshape(-1, power.shape[-1])
        pooled = torch.stack([len(power) * pool_power(power), power.sum(dim=0)])
        self._step = pooled if self._step is None else self._step + pooled
        self._rows += len(power)
        cell = fold(residual, self.patch, ndim=len(self.patch))
        for i, values in enumerate((cell.mean, cell.mean_square)):
            self._step_cells[i] += values.reshape(-1, *self.patch).sum(dim=0)

    @property
    def num_steps(self) -> int:
        return len(self.excess) + len(self._waiting)

    def end_step(self) -> None:
        """Close the current step; all its samples and fields have the same weight."""
        if self._step is None:
            return
        pooled = self._step / self._rows
        self._waiting.append(pooled)
        if len(self._waiting) == AT_ONCE:
            self.judge()
        self._spectrum = pooled[0] if self._spectrum is None else self._spectrum + pooled[0]
        self._cells += self._step_cells / self._rows
        self._step, self._rows = None, 0
        self._step_cells.zero_()

    def judge(self) -> None:
        """Give a verdict on the steps that wait for one."""
        if not self._waiting:
            return
        assert self._lattice is not None
        verdict = judge_power(torch.stack(self._waiting), self._lattice, self.patch)
        self.excess += listed(verdict.excess[:, 0])
        self.power += listed(verdict.power[:, 1])
        self._waiting.clear()

    @property
    def sums(self) -> tuple[Tensor, Tensor]:
        """Over all steps: the pooled spectrum, and the cells."""
        assert self._spectrum is not None
        return self._spectrum, self._cells

    def with_sums(self, spectrum: Tensor, cells: Tensor) -> _Track:
        """A track of the same patch and lattice with other sums."""
        other = _Track(self.patch)
        other._lattice = self._lattice
        other._spectrum, other._cells = spectrum, cells
        return other

    def result(self) -> HarmonicGrowth:
        assert self._spectrum is not None
        assert self._lattice is not None
        self.judge()
        num = len(self.excess)
        overall = judge_power(self._spectrum / num, self._lattice, self.patch)
        mean, square = self._cells / num
        exponent = growth_exponent(self.power)
        cell = Fold(mean, square, len(self.patch))
        return HarmonicGrowth(
            self.patch, tuple(self.excess), tuple(self.power), exponent, overall, cell
        )


class _Pool:
    """Sums over the tracks of one patch."""

    def __init__(self, track: _Track):
        self._like = track
        self._steps: list[list[float]] = []  # excess, power and number of rollouts at each step
        self._spectrum, self._cells = torch.zeros(()), torch.zeros(())

    def add(self, track: _Track) -> None:
        spectrum, cells = track.sums
        track.judge()
        for step, seen in enumerate(zip(track.excess, track.power, strict=True)):
            if step == len(self._steps):
                self._steps.append([0.0, 0.0, 0])
            self._steps[step] = [a + b for a, b in zip(self._steps[step], (*seen, 1), strict=True)]
        self._spectrum = self._spectrum + spectrum
        self._cells = self._cells + cells

    def result(self) -> HarmonicGrowth:
        # A track divides its sums by its number of steps.
        share = len(self._steps) / sum(count for *_, count in self._steps)
        joint = self._like.with_sums(share * self._spectrum, share * self._cells)
        joint.excess = [excess / count for excess, _, count in self._steps]
        joint.power = [power / count for _, power, count in self._steps]
        return joint.result()


def growth_exponent(power: Sequence[float]) -> float:
    """The slope of log power against log step, steps counted from 1, by least squares."""
    points = [(math.log(n), math.log(p)) for n, p in enumerate(power, start=1) if p > 0]
    if len(points) < 2:
        return math.nan
    x, y = torch.tensor(points, dtype=torch.float64).unbind(dim=1)
    x = x - x.mean()
    return ((x * y).sum() / x.square().sum()).item()


def _fold(values: Tensor, patch: tuple[int, ...]) -> Tensor:
    ndim = len(patch)
    for axis, p in enumerate(patch):
        n = values.shape[axis - ndim]
        member = torch.arange(n, device=values.device)[None] % p
        average = (member == torch.arange(p, device=values.device)[:, None]).double()
        average = average / average.sum(dim=1, keepdim=True)
        values = torch.movedim(torch.movedim(values, axis - ndim, -1) @ average.T, -1, axis - ndim)
    return values
