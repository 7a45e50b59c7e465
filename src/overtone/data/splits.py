"""How many trajectories go into train, valid and test."""

from __future__ import annotations

import math
from collections.abc import Sequence

from overtone.data.location import SPLITS
from overtone.errors import DataError


def split_counts(num: int, fractions: Sequence[float]) -> dict[str, int]:
    """Numbers of trajectories that add up to `num`.

    Every split with a fraction above zero gets at least one while there are enough; the rest are
    shared by largest remainder.

    Args:
        num: trajectories in all.
        fractions: of train, valid and test; they add up to 1.
    """
    if len(fractions) != len(SPLITS) or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise DataError(
            f"splits are {tuple(fractions)}; expected three fractions for {', '.join(SPLITS)} that "
            "add up to 1"
        )
    wanted = [i for i, fraction in enumerate(fractions) if fraction > 0]
    if num < len(wanted):
        raise DataError(
            f"{num} trajectories can't fill {len(wanted)} splits; use more, or give a split the "
            "fraction 0"
        )
    counts = [max(int(fraction > 0), math.floor(num * fraction)) for fraction in fractions]
    while sum(counts) > num:
        counts[counts.index(max(counts))] -= 1
    while sum(counts) < num:
        short = [num * fraction - n for fraction, n in zip(fractions, counts, strict=True)]
        counts[short.index(max(short))] += 1
    return dict(zip(SPLITS, counts, strict=True))
