"""The Fourier modes that a patch grid can excite, and the modes to compare them with.

A pattern that repeats every `patch` cells has power at multiples of 1/patch only. On an axis of
`n = s · patch` cells these are every s-th mode. All others are *off the lattice*. The neighbourhood
of a lattice mode is a set of off-lattice modes around it, the same offsets for every lattice mode;
for modes along an axis, where layered flows have a ridge, these lie along the axis, too.
Taking one such offset for all of them gives a shifted lattice of the same size; taking them at
random gives a shuffled one. Both are what a lattice without artifact looks like.

- Axes that the patch does not divide are cropped to whole patches, so lattice modes always exist.
- Axes that do not wrap, or were cropped, are windowed, which widens a line by one mode to each
  side. And the flow modulates what a patch grid leaves: its largest waves put side lines next to
  the lattice. So the modes right beside the lattice are not used, where there are others.
- A mode is a patch's *own* if no finer lattice contains it: 1/16, 3/16, … belong to 16 alone;
  2/16 is also on the lattice of 8. Combs of period 8 and 16 differ in the own modes of 16.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from overtone.domain import per_axis
from overtone.errors import PatchError
from overtone.metrics.artifacts.thresholds import (
    MAX_PERIOD,
    MIN_MODES,
    MIN_NEIGHBOURS,
    MIN_PATCHES,
    MIN_REPEATS,
    NEIGHBOURS,
)
from overtone.metrics.spectrum import RadialProfile, lay_profile, mode_power, wavenumber_norm


@dataclass(frozen=True, eq=False)
class Look:
    """Some modes of a lattice, and what to compare them with.

    Attributes:
        modes: `(M,)`.
        neighbours: `(M, K)`: off-lattice modes around each, column by column a shifted lattice.
        distinct: how many different modes the neighbours are.
    """

    modes: Tensor
    neighbours: Tensor
    distinct: int


@dataclass(frozen=True, eq=False)
class Lattice:
    """Lattice modes of a patch on a grid of whole patches. Built by `lay_lattice`.

    Of each pair k, -k, which have the same power in a real field, one is listed. Indices count
    the modes of the grid, flattened.

    Attributes:
        modes: `(M,)`, without the mean.
        neighbours: `(M, K)`: off-lattice modes around each.
        along: `(M, L)`: off-lattice modes along its axis, for those that lie along one.
        harmonics: `(M, d)`: which multiple of 1/patch it is along each axis.
        own: `(M,)` bool: on no finer lattice.
        axis: `(M,)`: the axis that it lies along, where grid lines put their power, or -1 if
            there is none, or none with enough patches.
        weight: `(M,)`: 2 for a pair, 1 where k and -k are the same mode.
        profile: through the off-lattice modes.
    """

    modes: Tensor
    neighbours: Tensor
    along: Tensor
    harmonics: Tensor
    own: Tensor
    axis: Tensor
    weight: Tensor
    profile: RadialProfile

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        """All modes; those along any axis; those along each axis."""
        return self.looks_at(torch.ones_like(self.own))

    @cached_property
    def own_looks(self) -> tuple[Look, ...]:
        """The same of the own modes.

        Along a single axis patch 4 has one own mode of two. It is judged by both.
        """
        few = int(self.own.sum()) < MIN_MODES <= len(self.own) <= 2 * int(self.own.sum())
        return self.looks_at(torch.ones_like(self.own) if few else self.own)

    def looks_at(self, members: Tensor) -> tuple[Look, ...]:
        """The same of the modes that a mask `(M,)` chooses."""
        choices = [(members, self.neighbours)]
        if bool((self.axis < 0).any()):
            choices.append((members & (self.axis >= 0), self.along))
            axes = self.axis.unique().tolist()
            choices += [(members & (self.axis == a), self.along) for a in axes if a >= 0]
        return tuple(
            Look(self.modes[chosen], around[chosen], around[chosen].unique().numel())
            for chosen, around in choices
            if int(chosen.sum()) >= MIN_MODES
        )

    def flatten(self, log_power: Tensor) -> Tensor:
        """Log-power less its radial profile, both `(..., N)`; NaN at a cliff of the spectrum."""
        return self.profile.flatten(log_power)


def patch_power(
    residual: Tensor, patch: tuple[int, ...], wraps: tuple[bool, ...]
) -> tuple[Tensor, Lattice]:
    """Power of all modes `(..., N)` on the grid cropped to whole patches, and its lattice."""
    shape, periodic = whole_patches(tuple(residual.shape[-len(patch) :]), patch, wraps)
    return cropped_power(residual, shape, periodic), lay_lattice(shape, patch, periodic)


def whole_patches(
    shape: tuple[int, ...], patch: tuple[int, ...], wraps: tuple[bool, ...]
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """The largest grid of whole patches inside a grid, and which of its axes still wrap."""
    cropped = tuple(n // p * p for n, p in zip(shape, patch, strict=True))
    return cropped, tuple(w and m == n for w, m, n in zip(wraps, cropped, shape, strict=True))


def cropped_power(residual: Tensor, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> Tensor:
    """Power of all modes `(..., N)` of the first cells along each axis."""
    ndim = len(shape)
    for axis, n in enumerate(shape):
        residual = residual.narrow(axis - ndim, 0, n)
    return mode_power(residual, ndim=ndim, periodic=periodic).flatten(-ndim)


def check_patch(patch: int | tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """One patch for each axis; an error where it is larger than the grid."""
    patches = per_axis(patch, len(shape), "patch")
    if any(not 1 <= p <= n for p, n in zip(patches, shape, strict=True)):
        raise PatchError(
            f"patch {patch} does not fit a grid of {shape} cells; choose one from 1 to the number "
            "of cells along each axis"
        )
    return patches


def usual_periods(shape: tuple[int, ...], wraps: tuple[bool, ...]) -> list[int]:
    """Periods to try on a grid, those that repeat often enough along every axis.

    Up to `MAX_PERIOD` they are all that fit at least four times; beyond, those that divide a
    periodic axis, up to half of it.
    """
    largest = max(MAX_PERIOD, min(shape) // MIN_PATCHES)
    axes = list(zip(shape, wraps, strict=True))
    return [p for p in range(2, largest + 1) if all(_repeats(p, n, wrap) for n, wrap in axes)]


def _repeats(period: int, n: int, wraps: bool) -> bool:
    if wraps and n % period == 0 and n // period >= MIN_PATCHES:
        return True
    return period <= MAX_PERIOD and n // period >= MIN_REPEATS


@lru_cache(maxsize=256)
def lay_lattice(
    shape: tuple[int, ...], patch: tuple[int, ...], periodic: tuple[bool, ...]
) -> Lattice:
    """The lattice of a patch on a grid that it divides.

    Raises:
        PatchError: there are too few patches to have anything to compare with.
    """
    strides = torch.tensor([n // p for n, p in zip(shape, patch, strict=True)])
    guard = _guard(strides, periodic)
    size = torch.tensor(shape)
    harmonics = torch.cartesian_prod(*(torch.arange(p) for p in patch)).reshape(-1, len(shape))
    coordinates = harmonics * strides
    flat, mirror = _flat(coordinates, size), _flat(-coordinates, size)
    keep = (flat > 0) & (flat <= mirror)
    offsets = _offsets(shape, strides, guard)
    if len(offsets) < MIN_NEIGHBOURS or not bool(keep.any()):
        raise PatchError(
            f"a grid of {shape} cells has too few patches of {patch} to tell their lattice from "
            "other modes; expected at least 2 along a periodic axis and 4 along another"
        )
    grid = torch.cartesian_prod(*(torch.arange(n) for n in shape)).reshape(-1, len(shape))
    clean = ~_near_lattice(grid, strides, guard)
    along = _axial_offsets(shape, strides, guard)
    present = harmonics[keep] > 0
    axis = torch.where(present.sum(dim=1) == 1, present.long().argmax(dim=1), -1)
    axis = torch.where(torch.isin(axis, torch.tensor(list(along))), axis, -1)
    length = min((len(offsets) for offsets in along.values()), default=0)
    lines = torch.zeros(len(axis), length, len(shape), dtype=torch.long)
    for a, steps in along.items():
        lines[axis == a] = steps[:length]
    return Lattice(
        modes=flat[keep],
        neighbours=_one_of_pair(coordinates[keep][:, None] + offsets, size),
        along=_one_of_pair(coordinates[keep][:, None] + lines, size),
        harmonics=harmonics[keep],
        own=_own(harmonics[keep], patch),
        axis=axis,
        weight=torch.where(flat == mirror, 1.0, 2.0)[keep].double(),
        profile=lay_profile(wavenumber_norm(shape).flatten(), clean),
    )


def _guard(strides: Tensor, periodic: tuple[bool, ...]) -> Tensor:
    """How many modes beside the lattice to leave out along each axis."""
    room = ((strides - 2) // 2).clamp(min=0)
    wanted = torch.tensor([1 if wrap else 2 for wrap in periodic])
    least = torch.tensor([0 if wrap else 1 for wrap in periodic])
    return torch.maximum(torch.minimum(wanted, room), least)


def _flat(coordinates: Tensor, size: Tensor) -> Tensor:
    """Indices of modes `(..., d)` in the flattened grid; negative wavenumbers wrap."""
    steps = torch.tensor([math.prod(size[axis + 1 :].tolist()) for axis in range(len(size))])
    return (coordinates.remainder(size) * steps).sum(dim=-1)


def _one_of_pair(coordinates: Tensor, size: Tensor) -> Tensor:
    """The same index for k and -k."""
    return torch.minimum(_flat(coordinates, size), _flat(-coordinates, size))


def _near_lattice(coordinates: Tensor, strides: Tensor, guard: Tensor) -> Tensor:
    beyond = coordinates.remainder(strides)
    return (torch.minimum(beyond, strides - beyond) <= guard).all(dim=-1)


def _offsets(shape: tuple[int, ...], strides: Tensor, guard: Tensor) -> Tensor:
    """Offsets `(K, d)` from a lattice mode to its neighbours, in a box just large enough."""
    offsets = torch.zeros(0, len(shape), dtype=torch.long)
    # Far modes say little about a steep spectrum, so the box stays within a few lattice cells.
    for radius in range(1, 3 * int(strides.max()) + 3):
        reach = [min(radius, (n - 1) // 2) for n in shape]
        box = itertools.product(*(range(-r, r + 1) for r in reach))
        candidates = torch.tensor(list(box))
        offsets = candidates[~_near_lattice(candidates, strides, guard)]
        if len(offsets) >= NEIGHBOURS[len(shape)] or all(
            r == (n - 1) // 2 for r, n in zip(reach, shape, strict=True)
        ):
            break
    return offsets


def _axial_offsets(shape: tuple[int, ...], strides: Tensor, guard: Tensor) -> dict[int, Tensor]:
    """For each axis with enough patches, offsets `(L, d)` along it, the nearest first."""
    result = {}
    for axis, n in enumerate(shape):
        reach = min(3 * int(strides[axis]) + 2, (n - 1) // 2)
        steps = torch.tensor([sign * r for r in range(1, reach + 1) for sign in (1, -1)])
        steps = steps.reshape(-1, 1)
        far = ~_near_lattice(steps, strides[axis : axis + 1], guard[axis : axis + 1])
        steps = steps[far][: NEIGHBOURS[1]]
        if len(steps) >= MIN_NEIGHBOURS:
            result[axis] = steps * torch.eye(len(shape), dtype=torch.long)[axis]
    return result


def _own(harmonics: Tensor, patch: tuple[int, ...]) -> Tensor:
    """Whether the common denominator of the frequencies m/patch is the full one."""
    sizes = torch.tensor(patch)
    denominators = sizes // torch.gcd(harmonics, sizes.expand_as(harmonics))
    common = denominators[:, 0]
    for axis in range(1, len(patch)):
        common = torch.lcm(common, denominators[:, axis])
    return common == math.lcm(*patch)
