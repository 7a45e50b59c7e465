"""Lattices of frequencies that patch grids excite.

A grid of period p has its errors at the multiples of 1/p. Frequencies are exact fractions of a
cycle per cell, one for each axis, from 0 to below 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

from overtone.domain import per_axis
from overtone.errors import OvertoneError
from overtone.schedules import Patch

Frequency = tuple[Fraction, ...]
"""Cycles per cell along each axis."""
MAX_FREQUENCIES = 1_000_000
"""Most frequencies of a lattice that are listed."""


def lattice(patch: Patch, *, ndim: int = 1) -> frozenset[Frequency]:
    """Ω: the frequencies that a grid of this period excites, the mean included."""
    sizes = per_axis(patch, ndim, "patch")
    if min(sizes) < 1 or math.prod(sizes) > MAX_FREQUENCIES:
        raise OvertoneError(
            f"a patch of {' x '.join(map(str, sizes))} cells has {math.prod(sizes)} harmonics; "
            f"expected 1 to {MAX_FREQUENCIES}: choose another patch"
        )
    axes = [[Fraction(m, p) for m in range(p)] for p in sizes]
    return frozenset(itertools.product(*axes))


def lattice_union(patches: Iterable[Patch], *, ndim: int = 1) -> frozenset[Frequency]:
    """The frequencies that at least one of the grids excites."""
    return frozenset[Frequency]().union(*(lattice(patch, ndim=ndim) for patch in _some(patches)))


def common_period(patches: Iterable[Patch], *, ndim: int = 1) -> tuple[int, ...]:
    """The period, for each axis, of the lattice that all grids share: the greatest divisor.

    f is a multiple of 1/p and of 1/q exactly if it is a multiple of 1/gcd(p, q). The patches 4, 8
    and 16 share the lattice of 4; 3, 4 and 5 share that of 1, the mean. Moving a grid changes
    phases, not frequencies, so shifts do not matter here.
    """
    sizes = [per_axis(patch, ndim, "patch") for patch in _some(patches)]
    return tuple(math.gcd(*axis) for axis in zip(*sizes, strict=True))


def lattice_intersection(patches: Iterable[Patch], *, ndim: int = 1) -> frozenset[Frequency]:
    """The frequencies that all of the grids excite."""
    return lattice(common_period(patches, ndim=ndim), ndim=ndim)


def is_excited(frequency: Frequency, patch: Patch) -> bool:
    """Whether a frequency is on the lattice of a patch."""
    sizes = per_axis(patch, len(frequency), "patch")
    return all((f * p).denominator == 1 for f, p in zip(frequency, sizes, strict=True))


def mirror(frequency: Frequency) -> Frequency:
    """The frequency -f, which real fields have with f."""
    return tuple(-f % 1 for f in frequency)


def multiplicity(frequency: Frequency) -> int:
    """How many frequencies f and -f are: one or two."""
    return 1 if frequency == mirror(frequency) else 2


def _some(patches: Iterable[Patch]) -> list[Patch]:
    some = list(patches)
    if not some:
        raise OvertoneError("no patches were given; expected at least one")
    return some
