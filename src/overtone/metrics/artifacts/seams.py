"""Seams: does a residual jump at the borders of patches more than within them?

A model whose patches disagree leaves a step at every border. If the steps follow the flow, so that
their size and sign differ from patch to patch, the residual has no lines at the patch grid's
harmonics (`harmonics.py` sees nothing), but anyone who looks at a picture sees the grid. With d the
difference of neighbouring cells along an axis,

    seam = 10 log10( mean of d² across borders / mean of d² within patches )

in dB, mean over the axes: 0 without seams, also for steep residuals, since fronts of the flow cross
borders as often as other places.

Finding the period of patches by the seams between them.

Where patches disagree, a residual jumps at their borders. The jumps follow the flow, with its size
and sign, so that neither lines nor energy need show (`periods.py`); the mean square jump does, as a
comb along each axis. With J(x) the mean square difference of the cells x - 1 and x, over all else,

    c(x) = log J(x) - median of log J around x

is about 0 everywhere without seams, and stands out at x = 0, p, 2p, … with seams of period p. Most
borders must stand out, so one front that lies on a border is no comb.

1. **Are there seams?** Every period along every axis is judged by its borders against all other
   places. The most significant one must stay so after correction for all tests.
2. **What is their period?** The borders of 16 are borders of 8 and of 4. So a period is replaced by
   its finest divisor whose further borders stand out, too, and then by a multiple of that whose
   borders stand out of the others. Given that there are seams, it takes less to believe in these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import DomainError, OvertoneError, PatchError
from overtone.metrics.artifacts.harmonics import Patch, grid_of, normal_score
from overtone.metrics.artifacts.lattice import check_patch
from overtone.metrics.artifacts.periods import ALPHA, MAX_PERIOD, NEXT_ALPHA, chance
from overtone.metrics.spectrum import Periodic, wrapping

LARGEST = 60.0
"""dB at which a ratio is cut, as of a residual that is constant within every patch."""


def seams(residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True) -> Tensor:
    """How much more a residual jumps across the borders of patches than within patches.

    Args:
        residual: prediction minus truth, `(..., *space)`.
        patch: period of the grid in cells, one for all axes or one for each; the grid begins at
            the first cell. An axis with patches of one cell has no cells within.
        ndim: number of spatial axes.
        periodic: whether each axis wraps, so that its ends meet at a border.

    Returns:
        `(...)` dB, mean over the axes that have borders.
    """
    return seam_height(*jumps(residual, patch, ndim=ndim, periodic=periodic))


def seam_height(across: Tensor, within: Tensor) -> Tensor:
    """What `seams` returns, from what `jumps` returns."""
    ratio = torch.where(across + within > 0, across / within.clamp(min=1e-300), 1.0)
    return (10 * ratio.clamp(min=1e-300).log10()).clamp(-LARGEST, LARGEST).mean(dim=0)


def jumps(
    residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True
) -> tuple[Tensor, Tensor]:
    """Mean square jumps across the borders of patches and within patches.

    Args:
        residual, patch, ndim, periodic: as for `seams`.

    Returns:
        Two tensors `(A, ...)`, for each of the A axes that have borders.
    """
    patches = check_patch(patch, grid_of(residual, ndim))
    axes = zip(range(-ndim, 0), patches, wrapping(periodic, ndim), strict=True)
    found = [
        _along(residual.double(), axis, size, wraps, ndim)
        for axis, size, wraps in axes
        if 1 < size < residual.shape[axis]
    ]
    if not found:
        raise PatchError(f"patch {patch} has no borders on a grid {tuple(residual.shape[-ndim:])}")
    across, within = zip(*found, strict=True)
    return torch.stack(across), torch.stack(within)


def _along(
    residual: Tensor, axis: int, patch: int, wraps: bool, ndim: int
) -> tuple[Tensor, Tensor]:
    """Along one axis, two of `(...)`."""
    squares = (residual - residual.roll(1, dims=axis)).square()
    place = torch.arange(residual.shape[axis], device=residual.device)
    if not wraps:
        squares, place = squares.narrow(axis, 1, len(place) - 1), place[1:]
    border = place % patch == 0
    space = tuple(range(-ndim, 0))
    across = squares.index_select(axis, border.nonzero()[:, 0]).mean(dim=space)
    within = squares.index_select(axis, (~border).nonzero()[:, 0]).mean(dim=space)
    return across, within


MIN_BORDERS = 4
"""Fewer are no comb."""

LEAST = 0.1
"""e-folds that borders must stand out by (0.4 dB): less may be a property of the grid's cells."""

SPREAD_OF_MEDIAN = math.sqrt(math.pi / 2)
"""Of many normal variables, relative to that of their mean."""


@dataclass(frozen=True)
class Seams:
    """What `find_seams` found.

    Attributes:
        sizes: distance between seams along each axis, 1 where there are none; empty if there are
            none at all.
        p_value: chance of a false alarm, all distances and axes considered.
    """

    sizes: tuple[int, ...]
    p_value: float


class SeamFinder:
    """`find_seams` for residuals that come one by one; keeps one number for each place on an axis.

    Args:
        candidates: distances to try; all from 2 to 64 that fit at least four times by default.
        ndim: number of spatial axes.
        periodic: whether each axis wraps, so that its ends meet at a border.
        alpha: chance of a false alarm, over all candidates and axes together.
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
        self._candidates = None if candidates is None else tuple(candidates)
        self._grid: tuple[int, ...] = ()
        self._jumps: list[Tensor] = []

    def update(self, residual: Tensor) -> None:
        """Take residuals `(..., *space)`; all leading indices have the same weight."""
        grid = grid_of(residual, self.ndim)
        if not self._grid:
            self._grid = grid
            self._jumps = [torch.zeros(n, dtype=torch.float64) for n in grid]
        if grid != self._grid:
            raise DomainError(f"residual on a grid of {grid} cells after ones of {self._grid}")
        rows = residual.reshape(-1, *grid).double()
        for axis, total in enumerate(self._jumps):
            total += _profile(rows, axis, self._wraps[axis]).sum(dim=0)

    def result(self) -> Seams:
        """The seams in what was seen so far."""
        if not self._grid:
            raise OvertoneError("no residual was given yet; call update first")
        combs = [
            _Comb(jumps, self._wraps[axis], self._sizes(axis))
            for axis, jumps in enumerate(self._jumps)
        ]
        tests = max(1, sum(len(comb.sizes) for comb in combs))
        chances = [chance(comb.score, tests) for comb in combs]
        if min(chances) >= self.alpha:
            return Seams((), min(chances))
        # Given seams along one axis, it takes less to believe in those along another.
        found = zip(combs, chances, strict=True)
        return Seams(
            tuple(comb.period() if p < NEXT_ALPHA else 1 for comb, p in found), min(chances)
        )

    def _sizes(self, axis: int) -> list[int]:
        """Distances to try along an axis."""
        n = self._grid[axis]
        if self._candidates is None:
            return list(range(2, min(MAX_PERIOD, n // MIN_BORDERS) + 1))
        sizes = {check_patch(patch, self._grid)[axis] for patch in self._candidates}
        return sorted(size for size in sizes if size > 1 and n // size >= MIN_BORDERS)


def find_seams(
    residual: Tensor,
    candidates: Iterable[Patch] | None = None,
    *,
    ndim: int,
    periodic: Periodic = True,
    alpha: float = ALPHA,
) -> Seams:
    """The distances between the seams of a residual `(..., *space)`, if it has any.

    Seams are looked for from the first cell on. Arguments are those of `SeamFinder`.
    """
    finder = SeamFinder(candidates, ndim=ndim, periodic=periodic, alpha=alpha)
    finder.update(residual)
    return finder.result()


class _Comb:
    """Jumps along one axis, as they stand out of their surroundings.

    Args:
        jumps: J `(n,)`.
        wraps: whether the axis is periodic.
        sizes: distances to try.
    """

    def __init__(self, jumps: Tensor, wraps: bool, sizes: list[int]):
        self.wraps, self.sizes = wraps, sizes
        self.place = torch.arange(len(jumps))
        self.inside = self.place >= (0 if wraps else 1)  # nothing jumps before the first cell
        self.log = (jumps + 1e-12 * jumps.mean() + 1e-300).log()
        self.scores = {size: self._stand_out(size, self._borders(size)) for size in sizes}

    @property
    def score(self) -> float:
        """The z of the most significant distance."""
        return max(self.scores.values(), default=0.0)

    def period(self) -> int:
        """The distance between the seams, given that there are any."""
        best = max(self.scores, key=lambda size: self.scores[size])
        return self._coarsest(self._finest(best))

    def _finest(self, size: int) -> int:
        """The finest divisor whose further borders stand out, too."""
        for finer in (q for q in self.sizes if q < size and size % q == 0):
            further = self._borders(finer) & ~self._borders(size)
            if chance(self._stand_out(finer, further), 1) < NEXT_ALPHA:
                return finer
        return size

    def _coarsest(self, size: int) -> int:
        """A multiple whose borders stand out of the other borders."""
        own = self._borders(size)
        scores = {
            q: median_score(self.log[self._borders(q)], self.log[own & ~self._borders(q)])
            for q in self.sizes
            if q > size and q % size == 0
        }
        best = max(scores, key=lambda q: scores[q], default=size)
        stands_out = best != size and chance(scores[best], len(scores)) < NEXT_ALPHA
        return best if stands_out else size

    def _borders(self, size: int) -> Tensor:
        return self.inside & (self.place % size == 0)

    def _stand_out(self, size: int, chosen: Tensor) -> float:
        """The z of some borders of a period among the places that are none."""
        contrast = self._contrast(size)
        return median_score(contrast[chosen], contrast[self.inside & ~self._borders(size)])

    def _contrast(self, size: int) -> Tensor:
        """c(x), by the places that are less than a period away."""
        n = len(self.log)
        around = self.place[:, None] + torch.tensor([o for o in range(1 - size, size) if o])
        known = self.inside[around % n] & (self.wraps | ((around >= 0) & (around < n)))
        values = torch.where(known, self.log[around % n], torch.nan)
        return self.log - values.nanmedian(dim=1)[0]


def median_score(chosen: Tensor, others: Tensor) -> float:
    """The z of the median of some values, if they were like the others; 0 if it hardly differs."""
    if min(len(chosen), len(others)) < 2:
        return 0.0
    gap = chosen.median() - others.median()
    if gap < LEAST:
        return 0.0
    noise = (
        SPREAD_OF_MEDIAN
        * others.std().clamp(min=1e-12)
        * math.sqrt(1 / len(chosen) + 1 / len(others))
    )
    freedom = torch.tensor(len(others) - 1.0)
    return normal_score(gap / noise, freedom).item()


def _profile(rows: Tensor, axis: int, wraps: bool) -> Tensor:
    """Mean square jump before each cell `(B, n)` of `(B, *space)`, in units of its mean."""
    along = 1 + axis
    squares = (rows - rows.roll(1, dims=along)).square()
    others = tuple(dim for dim in range(1, rows.dim()) if dim != along)
    profile = squares.mean(dim=others) if others else squares
    if not wraps:
        profile[:, 0] = 0
    return profile / profile.mean(dim=1, keepdim=True).clamp(min=1e-300)
