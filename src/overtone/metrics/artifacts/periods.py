"""Finding the period of a grid that left its mark in a residual.

Two statistics are looked at, pooled over all fields, samples and frames:

- *lines*: the residual's power on the lattice of a period (`harmonics.py`);
- *energy*: the same for the residual's envelope (`metrics/spectrum.py`). Errors that are larger at
  the edges of patches, but of random sign, have no lines; their energy does.

1. **Is there an artifact?** Every candidate is judged by its lattice and by its own harmonics,
   those on no finer lattice, in both statistics. The most significant one must stay significant
   after correction for all tests that were made.
2. **What is its period?** The lattice of 16 contains those of 8, 4 and 2. So a candidate is
   replaced by the finest divisor that keeps all that stands out. But where the spectrum is steep,
   the finest harmonics stand out most, and coarser ones may be missed. So the period is the least
   common multiple of all that are significant, and then any multiple of that whose further
   harmonics are, too. Given that there is an artifact, it takes less to believe in these.
3. **Along which axes?** Along an axis the period is finer, or there is none, if the harmonics that
   this would take away are like their neighbours while the others are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from overtone.errors import DomainError, OvertoneError, PatchError
from overtone.metrics.artifacts.harmonics import (
    DECIBEL,
    Patch,
    best_look,
    flatten_power,
    grid_of,
    pool_power,
    upper_tail,
)
from overtone.metrics.artifacts.lattice import (
    Lattice,
    check_patch,
    cropped_power,
    lay_lattice,
    usual_periods,
    whole_patches,
)
from overtone.metrics.artifacts.thresholds import (
    ALPHA,
    LOUD_LINE,
    LOUD_SHARE,
    MIN_REPEATS,
    NEXT_ALPHA,
    NEXT_MARGIN,
    QUIET,
    QUIET_SHARE,
)
from overtone.metrics.spectrum import Periodic, envelope, wrapping

Statistic = Literal["lines", "energy"]
STATISTICS: tuple[Statistic, ...] = ("lines", "energy")

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Period:
    """What `find_period` found.

    Attributes:
        patch: the period, or None if there is no grid artifact.
        excess: dB of the period's lattice; of the most suspicious one if there is no artifact.
        p_value: chance of a false alarm, all candidates considered.
        z: for each candidate, its score, the larger one of both statistics.
        statistic: whether the artifact has lines, or shows in its energy alone.
        sizes: the period along each axis, where they differ; 1 where there is none. Empty if
            there is no artifact.
    """

    patch: Patch | None
    excess: float
    p_value: float
    z: dict[Patch, float]
    statistic: Statistic = "lines"
    sizes: Sizes = ()


@dataclass(frozen=True)
class _Score:
    """One candidate in one statistic: of its lattice, and of its own harmonics alone."""

    excess: float
    z: float
    own: float
    tests: int


class PeriodFinder:
    """`find_period` for residuals that come one by one; keeps spectra only.

    Args:
        candidates: periods to try; by default all from 2 to 64 that fit at least four times along
            each axis, and all that divide it, up to half of a periodic one.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.
        alpha: chance of a false alarm, over all candidates and both statistics together.
    """

    def __init__(
        self,
        candidates: Iterable[Patch] | None = None,
        *,
        ndim: int,
        periodic: Periodic = True,
        alpha: float = ALPHA,
    ):
        self.ndim, self.alpha = ndim, alpha
        self._wraps = wrapping(periodic, ndim)
        self._candidates = None if candidates is None else tuple(dict.fromkeys(candidates))
        self._rare: set[int] = set()
        self._grid: tuple[int, ...] = ()
        self._spectra: dict[tuple[Sizes, tuple[bool, ...]], Tensor] = {}
        self._num = 0

    @property
    def candidates(self) -> tuple[Patch, ...]:
        """The periods that are tried; known once there was a residual."""
        return self._candidates or ()

    def update(self, residual: Tensor) -> None:
        """Take residuals `(..., *space)`; all leading indices have the same weight."""
        grid = grid_of(residual, self.ndim)
        if not self._grid:
            self._begin(grid)
        if grid != self._grid:
            raise DomainError(f"residual on a grid of {grid} cells after ones of {self._grid}")
        rows = residual.reshape(-1, *grid)
        energy = envelope(rows, self._wraps)
        for (shape, periodic), sums in self._spectra.items():
            for total, values in zip(sums, (rows, energy), strict=True):
                total += len(rows) * pool_power(cropped_power(values, shape, periodic))
        self._num += len(rows)

    def result(self) -> Period:
        """The period in what was seen so far."""
        if not self._num:
            raise OvertoneError("no residual was given yet; call update first")
        both = {p: self._scores(p) for p in self.candidates}
        scores = {s: {p: both[p][s] for p in both} for s in STATISTICS}
        tests = sum(score.tests for by_patch in scores.values() for score in by_patch.values())
        z = {p: max(scores[s][p].z for s in STATISTICS) for p in self.candidates}
        p_value = chance(max(z.values()), tests)
        if p_value >= self.alpha:
            best = max(z, key=lambda p: z[p])
            return Period(None, scores["lines"][best].excess, p_value, z)
        # A comb shows in both; its lines say more about it.
        ranking = {s: sorted(z, key=lambda p: -scores[s][p].z) for s in STATISTICS}
        top = scores["lines"][ranking["lines"][0]].z
        statistic: Statistic = "lines" if chance(top, tests) < self.alpha else "energy"
        chosen = scores[statistic]
        best = ranking[statistic][0]
        others = [p for p in ranking[statistic] if chance(chosen[p].own, tests) < self.alpha]
        patch = self._fundamental(best, others, statistic)
        excess, _ = best_look(self._flat(patch, statistic), self._lattice(patch).looks)
        sizes = self._by_axis(patch, statistic)
        return Period(patch, excess.item(), p_value, z, statistic, sizes)

    def _begin(self, grid: Sizes) -> None:
        if self._candidates is None:
            self._candidates = tuple(usual_periods(grid, self._wraps))
            # The flow's own energy may repeat as seldom as that: two shear layers do.
            self._rare = {p for p in self._candidates if min(grid) // p < MIN_REPEATS}
        if not self._candidates:
            raise PatchError(f"no period to try on a grid of {grid} cells; give candidates")
        self._grid = grid
        for patch in self._candidates:
            key = self._key(patch)
            if key not in self._spectra:
                self._spectra[key] = torch.zeros(2, math.prod(key[0]), dtype=torch.float64)

    def _key(self, patch: Patch) -> tuple[Sizes, tuple[bool, ...]]:
        return whole_patches(self._grid, check_patch(patch, self._grid), self._wraps)

    def _lattice(self, patch: Patch) -> Lattice:
        shape, periodic = self._key(patch)
        return lay_lattice(shape, check_patch(patch, self._grid), periodic)

    def _flat_both(self, patch: Patch) -> Tensor:
        """The pooled spectra `(2, N)` that a candidate is judged by, flattened."""
        return flatten_power(self._spectra[self._key(patch)] / self._num, self._lattice(patch))

    def _flat(self, patch: Patch, statistic: Statistic) -> Tensor:
        """One of them, `(1, N)`."""
        index = STATISTICS.index(statistic)
        return self._flat_both(patch)[index : index + 1]

    def _scores(self, patch: Patch) -> dict[Statistic, _Score]:
        """One candidate in both statistics."""
        lattice, flat = self._lattice(patch), self._flat_both(patch)
        excess, z = best_look(flat, lattice.looks)
        own, tests = z, len(lattice.looks)
        if not bool(lattice.own.all()):  # else it is a prime period
            _, own = best_look(flat, lattice.own_looks)
            tests += len(lattice.own_looks)
        scores: dict[Statistic, _Score] = {
            s: _Score(excess[i].item(), max(z[i], own[i]).item(), own[i].item(), tests)
            for i, s in enumerate(STATISTICS)
        }
        if patch in self._rare:
            scores["energy"] = _Score(0.0, 0.0, 0.0, 0)
        return scores

    def _fundamental(self, best: Patch, others: list[Patch], statistic: Statistic) -> Patch:
        """The period of the artifact that a candidate was found by.

        Args:
            best: the candidate.
            others: those whose own harmonics are significant, the most significant one first.
            statistic: what it was found in.
        """
        known = {check_patch(p, self._grid): p for p in self.candidates}
        sizes = self._finest(check_patch(best, self._grid), list(known), statistic)
        for other in others:
            common = tuple(map(math.lcm, sizes, check_patch(other, self._grid)))
            sizes = common if common in known else sizes
        shown = [q for q, p in known.items() if statistic == "lines" or p not in self._rare]
        while (coarser := self._next_multiple(sizes, shown, statistic)) is not None:
            between = [q for q in shown if q != sizes and _is_multiple(q, sizes)]
            sizes = self._finest(coarser, between, statistic)
        return known[sizes]

    def _next_multiple(
        self, sizes: Sizes, known: list[Sizes], statistic: Statistic
    ) -> Sizes | None:
        """The multiple of a period whose further harmonics stand out most, if any's do."""
        scores: dict[Sizes, float] = {}
        tests = 0
        for other in known:
            if other != sizes and _is_multiple(other, sizes):
                lattice = self._lattice(other)
                looks = lattice.looks_at(~_shared(lattice, other, sizes))
                flat = self._flat(other, statistic)
                scores[other] = best_look(flat, looks, margin=NEXT_MARGIN)[1].item()
                tests += len(looks)
        best = max(scores, key=lambda other: scores[other], default=None)
        return best if best and chance(scores[best], tests) < NEXT_ALPHA else None

    def _finest(self, sizes: Sizes, known: list[Sizes], statistic: Statistic) -> Sizes:
        """The finest divisor of a period whose lattice holds all that stands out on its own."""
        lattice, flat = self._lattice(sizes), self._flat(sizes, statistic)
        divisors = [q for q in known if q != sizes and _is_multiple(sizes, q)]
        for finer in sorted(divisors, key=math.prod):
            kept = _shared(lattice, sizes, finer)
            if _are_quiet(flat, lattice, ~kept, kept):
                return finer
        return sizes

    def _by_axis(self, patch: Patch, statistic: Statistic) -> Sizes:
        """The period along each axis: as fine as it can be without losing harmonics."""
        lattice, flat = self._lattice(patch), self._flat(patch, statistic)
        sizes = list(check_patch(patch, self._grid))
        kept = torch.ones_like(lattice.own)
        for axis, size in enumerate(sizes):
            for finer in (d for d in range(1, size) if size % d == 0):
                lost = kept & (lattice.harmonics[:, axis] % (size // finer) > 0)
                if _are_quiet(flat, lattice, lost, kept & ~lost):
                    sizes[axis], kept = finer, kept & ~lost
                    break
        return tuple(sizes)


def find_period(
    residual: Tensor,
    candidates: Iterable[Patch] | None = None,
    *,
    ndim: int,
    periodic: Periodic = True,
    alpha: float = ALPHA,
) -> Period:
    """The period of the grid that left its mark in a residual, if there is one.

    Args:
        residual: `(..., *space)`; the spectra of all leading indices are pooled, each with the
            same weight.
        candidates: periods to try; by default all from 2 to 64 that fit at least four times along
            each axis, and all that divide it, up to half of a periodic one.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.
        alpha: chance of a false alarm, over all candidates and both statistics together.
    """
    finder = PeriodFinder(candidates, ndim=ndim, periodic=periodic, alpha=alpha)
    finder.update(residual)
    return finder.result()


def chance(z: float, tests: int) -> float:
    """That one of so many tests without artifact has such a score."""
    return min(1.0, tests * upper_tail(torch.tensor(z)).item())


def _shared(lattice: Lattice, sizes: Sizes, finer: Sizes) -> Tensor:
    """Which modes `(M,)` of the lattice of `sizes` are on that of a divisor, too."""
    ratio = torch.tensor([p // q for p, q in zip(sizes, finer, strict=True)])
    return (lattice.harmonics % ratio == 0).all(dim=1)


def _are_quiet(flat: Tensor, lattice: Lattice, lost: Tensor, kept: Tensor) -> bool:
    """Whether some harmonics are like their neighbours, and the others are not."""
    looks = lattice.looks_at(lost)
    if not looks or not bool(kept.any()):
        return False
    excess, z = best_look(flat, looks, margin=0.0)
    loud = best_look(flat, lattice.looks_at(kept))[0].item()
    lines = lost & (lattice.axis >= 0)
    height = flat[0, lattice.modes[lines]] - flat[0, lattice.along[lines]].median(dim=-1)[0]
    return (
        chance(z.item(), len(looks)) > QUIET
        and excess.item() < QUIET_SHARE * loud
        and not bool((DECIBEL * height > max(LOUD_SHARE * loud, LOUD_LINE)).any())
    )


def _is_multiple(sizes: Sizes, of: Sizes) -> bool:
    return all(p % q == 0 for p, q in zip(sizes, of, strict=True))
