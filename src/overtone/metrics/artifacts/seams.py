"""Seams: does a residual jump at the borders of patches more than within them?

A model whose patches disagree leaves a step at every border. If the steps follow the flow, so that
their size and sign differ from patch to patch, the residual has neither lines nor energy at the
patch grid's harmonics (`harmonics.py` and `periods.py` see nothing), but anyone who looks at a
picture sees the grid. All that is said here comes from one profile along each axis: J(x), the mean
square difference of the cells x - 1 and x, over all other axes.

**How high are the seams of a known patch?** (`seams`)

    seam = 10 log10( mean of J across borders / mean of J within patches )

in dB, mean over the axes: 0 without seams, also for steep residuals, since fronts of the flow cross
borders as often as other places. Borders are those of the patch grid of one model call, which may
be shifted (`grid.py`). Where nobody knows the shift, or the residual has gone through many of them,
`worst_seams` takes the shift with the highest seams along each axis. By chance the highest of many
is above 0, so compare it with `worst_seams` of something without a grid.

**Are there seams, and how far apart?** (`find_seams`) Seams are a comb in J. With

    c(x) = log J(x) - median of log J around x

c is about 0 everywhere without seams, and stands out at x = 0, p, 2p, … with seams of period p.
Most borders must stand out, so one front that lies on a border is no comb.

1. Every period along every axis is judged by its borders against all other places. The most
   significant one must stay so after correction for all tests.
2. The borders of 16 are borders of 8 and of 4. So a period is replaced by its finest divisor whose
   further borders stand out, too, and then by a multiple of that whose borders stand out of the
   others: the stages of a decoder leave blocks within patches. Given that there are seams, it takes
   less to believe in these, and axes whose finest seams are alike share the coarser ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.domain import per_axis
from overtone.errors import DomainError, OvertoneError, PatchError
from overtone.metrics.artifacts.harmonics import Patch, grid_of, normal_score
from overtone.metrics.artifacts.lattice import check_patch, usual_periods
from overtone.metrics.artifacts.periods import chance
from overtone.metrics.artifacts.thresholds import (
    ALPHA,
    COARSER_ALPHA,
    MIN_BORDERS,
    MIN_SEAM,
    NEXT_ALPHA,
    SEAM_REACH,
)
from overtone.metrics.spectrum import Periodic, wrapping

LARGEST = 60.0
"""dB at which a ratio is cut, as of a residual that is constant within every patch."""


def seams(
    residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True, shift: Patch = 0
) -> Tensor:
    """How much more a residual jumps across the borders of patches than within patches.

    Args:
        residual: prediction minus truth, `(..., *space)`.
        patch: period of the grid in cells, one for all axes or one for each. An axis with patches
            of one cell has no cells within.
        ndim: number of spatial axes.
        periodic: whether each axis wraps, so that its ends may meet at a border.
        shift: cells by which the grid is moved up, one for all axes or one for each, as in a
            model call.

    Returns:
        `(...)` dB, mean over the axes that have borders.
    """
    found = jumps(residual, patch, ndim=ndim, periodic=periodic, shift=shift)
    return seam_height(*found).mean(dim=0)


def worst_seams(residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True) -> Tensor:
    """The highest that `seams` gets along each axis when the grid is shifted.

    Args:
        residual, patch, ndim, periodic: as for `seams`.

    Returns:
        `(...)` dB, mean over the axes that have borders, each at its own worst shift.
    """
    heights = offset_seams(residual, patch, ndim=ndim, periodic=periodic)
    return torch.stack([height.amax(dim=-1) for height in heights]).mean(dim=0)


def offset_seams(
    residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True
) -> list[Tensor]:
    """What `seams` would be at every offset of the grid, axis by axis.

    Args:
        residual, patch, ndim, periodic: as for `seams`.

    Returns:
        For each axis that has borders, dB of its own `(..., patch)` at the shifts 0 to patch - 1.
    """
    return [
        seam_height(*_split(profile, size, range(size), wraps))
        for profile, size, wraps, _ in _profiles(residual, patch, ndim, periodic)
    ]


def seam_height(across: Tensor, within: Tensor) -> Tensor:
    """Ratio of two mean square jumps in dB, of any one shape; 0 if there are none at all."""
    ratio = torch.where(across + within > 0, across / within.clamp(min=1e-300), 1.0)
    return (10 * ratio.clamp(min=1e-300).log10()).clamp(-LARGEST, LARGEST)


def jumps(
    residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True, shift: Patch = 0
) -> tuple[Tensor, Tensor]:
    """Mean square jumps across the borders of patches and within patches.

    Args:
        residual, patch, ndim, periodic, shift: as for `seams`.

    Returns:
        Two tensors `(A, ...)`, for each of the A axes that have borders.
    """
    shifts = per_axis(shift, ndim, "shift")
    found = [
        _split(profile, size, [shifts[axis]], wraps)
        for profile, size, wraps, axis in _profiles(residual, patch, ndim, periodic)
    ]
    across, within = zip(*found, strict=True)
    return torch.stack(across)[..., 0], torch.stack(within)[..., 0]


def _profiles(
    residual: Tensor, patch: Patch, ndim: int, periodic: Periodic
) -> Iterator[tuple[Tensor, int, bool, int]]:
    """J `(..., n)`, patch, whether it wraps, and number of each axis that has borders."""
    patches = check_patch(patch, grid_of(residual, ndim))
    wraps = wrapping(periodic, ndim)
    grid = residual.shape[-ndim:]
    with_borders = [axis for axis in range(ndim) if 1 < patches[axis] < grid[axis]]
    if not with_borders:
        raise PatchError(f"patch {patch} has no borders on a grid {tuple(grid)}")
    residual = residual.double()
    for axis in with_borders:
        yield jump_profile(residual, axis, ndim), patches[axis], wraps[axis], axis


def jump_profile(residual: Tensor, axis: int, ndim: int) -> Tensor:
    """J, the mean square jump before each cell along an axis.

    Args:
        residual: `(..., *space)`.
        axis: from 0 to `ndim - 1`.
        ndim: number of spatial axes.

    Returns:
        `(..., n)`; before the first cell it is the jump from the last one.
    """
    residual = torch.movedim(residual, axis - ndim, -1)
    squares = (residual - residual.roll(1, dims=-1)).square()
    return squares.mean(dim=tuple(range(-ndim, -1))) if ndim > 1 else squares


def _split(
    profile: Tensor, patch: int, shifts: Sequence[int], wraps: bool
) -> tuple[Tensor, Tensor]:
    """Means of J across borders and within patches, for several shifts of a grid.

    Args:
        profile: J, `(..., n)`.
        patch: period of the grid.
        shifts: S of them.
        wraps: whether the axis is periodic. On one that is not, nothing jumps before cell 0.

    Returns:
        Two tensors `(..., S)`.
    """
    first = 0 if wraps else 1
    border = grid_borders(profile.shape[-1], patch, shifts, wraps)[:, first:]
    masks = [chosen.to(profile) for chosen in (border, ~border)]
    shares = [mask / mask.sum(dim=1, keepdim=True) for mask in masks]
    across, within = (profile[..., first:] @ share.T for share in shares)
    return across, within


def grid_borders(n: int, patch: int, shifts: Sequence[int], wraps: bool) -> Tensor:
    """Before which cells patches begin, as `PatchGrid.lay` puts them; `(S, n)` for S shifts."""
    beyond = torch.arange(n) - torch.tensor([shift % patch for shift in shifts])[:, None]
    # A grid that wraps is laid from its start on; what is left of the last patch ends there.
    return (beyond % n if wraps else beyond) % patch == 0


SPREAD_OF_MEDIAN = math.sqrt(math.pi / 2)
"""Spread of the median of many normal variables, relative to that of their mean."""


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
        candidates: distances to try; by default all from 2 to 64 that fit at least four times, and
            all that divide an axis, up to half of a periodic one.
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
            profile = jump_profile(rows, axis, self.ndim)
            if not self._wraps[axis]:
                profile[:, 0] = 0
            # In units of its mean, so that all residuals have the same weight.
            total += (profile / profile.mean(dim=1, keepdim=True).clamp(min=1e-300)).sum(dim=0)

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
        there = [comb for comb, p in zip(combs, chances, strict=True) if p < NEXT_ALPHA]
        periods = _agree(there)
        return Seams(tuple(periods.get(comb, 1) for comb in combs), min(chances))

    def _sizes(self, axis: int) -> list[int]:
        """Distances to try along an axis."""
        n, wraps = self._grid[axis], self._wraps[axis]
        if self._candidates is None:
            sizes = usual_periods((n,), (wraps,))
        else:
            sizes = sorted({check_patch(patch, self._grid)[axis] for patch in self._candidates})
        first = 0 if wraps else 1
        return [
            p
            for p in sizes
            if p > 1 and len(range(first, n)[p * first - first :: p]) >= MIN_BORDERS
        ]


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


def _agree(combs: list[_Comb]) -> dict[_Comb, int]:
    """The distance between the borders of patches along each axis that has seams.

    Where seams lie within seams along one axis, and the finer ones are those of another axis, the
    coarser ones are the borders of patches along both, unless they are lower than the others there.
    """
    stages = {comb: comb.stages() for comb in combs}
    periods = {comb: own[-1] for comb, own in stages.items()}
    for comb, own in stages.items():
        for other in stages.values():
            if own[-1] in other[:-1] and comb.allows(other[-1], own[-1]):
                periods[comb] = max(periods[comb], other[-1])
    return periods


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

    def stages(self) -> list[int]:
        """Distances of seams within seams, from that between all seams to that between patches."""
        found = [self._finest()]
        while (coarser := self._coarser(found[-1])) is not None:
            found.append(coarser)
        return found

    def _finest(self) -> int:
        """The distance between all seams: the finest divisor whose further borders stand out."""
        size = max(self.scores, key=lambda size: self.scores[size])
        for finer in (q for q in self.sizes if q < size and size % q == 0):
            further = self._borders(finer) & ~self._borders(size)
            if chance(self._stand_out(finer, further), 1) < NEXT_ALPHA:
                return finer
        return size

    def _coarser(self, size: int) -> int | None:
        """A multiple of a distance whose borders stand out of the other borders, if one does."""
        own = self._borders(size)
        # Seams may all be alike, or follow the flow as what is around them does.
        views = self.log, self._contrast(size)
        scores = {
            q: max(
                median_score(view[self._borders(q)], view[own & ~self._borders(q)])
                for view in views
            )
            for q in self.sizes
            if q > size and q % size == 0
        }
        best = max(scores, key=lambda q: scores[q], default=None)
        tests = len(views) * len(scores)
        return best if best and chance(scores[best], tests) < COARSER_ALPHA else None

    def allows(self, size: int, within: int) -> bool:
        """Whether the borders of a multiple are no lower than the others of a distance."""
        contrast, chosen = self._contrast(within), self._borders(size)
        others = self._borders(within) & ~chosen
        return size in self.sizes and bool(contrast[chosen].mean() >= contrast[others].mean())

    def _borders(self, size: int) -> Tensor:
        return self.inside & grid_borders(len(self.place), size, [0], self.wraps)[0]

    def _stand_out(self, size: int, chosen: Tensor) -> float:
        """The z of some borders of a period among the places that are none."""
        contrast = self._contrast(size)
        return median_score(contrast[chosen], contrast[self.inside & ~self._borders(size)])

    def _contrast(self, size: int) -> Tensor:
        """c(x), by the places that are less than a period away, and not too far."""
        n, reach = len(self.log), min(size - 1, SEAM_REACH)
        around = self.place[:, None] + torch.tensor([o for o in range(-reach, reach + 1) if o])
        known = self.inside[around % n] & (self.wraps | ((around >= 0) & (around < n)))
        values = torch.where(known, self.log[around % n], torch.nan)
        return self.log - values.nanmedian(dim=1)[0]


def median_score(chosen: Tensor, others: Tensor) -> float:
    """The z of the median of some values, if they were like the others; 0 if it hardly differs."""
    if min(len(chosen), len(others)) < 2:
        return 0.0
    gap = chosen.median() - others.median()
    if gap < MIN_SEAM:
        return 0.0
    noise = (
        SPREAD_OF_MEDIAN
        * others.std().clamp(min=1e-12)
        * math.sqrt(1 / len(chosen) + 1 / len(others))
    )
    freedom = torch.tensor(len(others) - 1.0)
    return normal_score(gap / noise, freedom).item()
