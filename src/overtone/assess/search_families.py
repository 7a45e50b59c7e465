"""Which schedules are tried: the families, and sequences in the shortest words for them.

Families are constants, cycles in all orders, dwells, bursts, warm-ups and reverse warm-ups. Where a
budget is given, there are warm-ups and bursts that use it up. Each is tried on a grid at rest and
with shifts; where some sides of the domain are joined and others are not, also with shifts along
the joined ones alone, which cost no tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations

from overtone.domain import Domain, per_axis
from overtone.schedules import (
    Bursts,
    Choice,
    Constant,
    Cycle,
    Dwell,
    Explicit,
    Patch,
    ReverseWarmup,
    Schedule,
    Shifted,
    Warmup,
)

LONGEST = 3
"""Cycles of up to so many patches are tried in every order; longer ones up and down."""
DWELLS = (2, 4)
PERIODS = (3, 4, 5, 8)
"""Steps from one burst to the next; 2 is a cycle."""
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Parts of a rollout that a warm-up lasts."""
KINDS = (Constant, Cycle, Bursts, Dwell, Warmup, ReverseWarmup, Explicit)
"""Kinds of schedules, the simplest first."""


def families(
    patches: Sequence[Patch], steps: int, shares: Sequence[float] = ()
) -> Iterator[Schedule]:
    """Schedules on a grid at rest.

    Args:
        patches: from fine to coarse.
        steps: of the rollouts.
        shares: parts of a rollout that a budget pays for at a finer patch; warm-ups that last as
            long, and bursts that come as often, are among the schedules.
    """
    yield from map(Constant, patches)
    for size in range(2, len(patches) + 1):
        for chosen in combinations(patches, size):
            orders = permutations(chosen) if size <= LONGEST else (chosen, chosen[::-1])
            yield from (Cycle(*order) for order in orders)
            yield from (
                Dwell(order, each)
                for order in (chosen, chosen[::-1])
                for each in DWELLS
                if size * each <= steps
            )
    for fine, coarse in combinations(patches, 2):
        yield from _bursts(fine, coarse, steps, shares)
        lengths = {math.floor(share * steps + 1e-9) for share in (*SHARES, *shares)}
        for length in sorted(n for n in lengths if 0 < n < steps):
            yield Warmup((fine,) * length, coarse)
            yield ReverseWarmup(coarse, (fine,) * length, steps)
    yield from _ramps(patches, steps)


def _bursts(fine: Patch, coarse: Patch, steps: int, shares: Sequence[float]) -> Iterator[Schedule]:
    """Now and then another patch: the fine one, and the coarse one."""
    fits = {math.ceil(1 / share - 1e-9) for share in shares if 0 < share < 1}
    fits |= {math.floor(1 / (1 - share) + 1e-9) for share in shares if 0 < share < 1}
    for every in sorted({*PERIODS, *fits}):
        if 2 < every <= steps:
            yield Bursts(coarse, fine, every)
            yield Bursts(fine, coarse, every)


def _ramps(patches: Sequence[Patch], steps: int) -> Iterator[Schedule]:
    """Warm-ups through all patches, finest first, and the same backwards."""
    if len(patches) < 3:
        return
    for share in SHARES:
        each = math.floor(share * steps / (len(patches) - 1))
        if each >= 1:
            ramp = Warmup(tuple(p for p in patches[:-1] for _ in range(each)), patches[-1])
            yield ramp
            yield ramp.reverse(steps)


def shift_kinds(domain: Domain) -> tuple[str, ...]:
    """`"still"`, `"shifted"` and, if some axes are joined and some are not, `"along"` these."""
    mixed = any(domain.periodic) and not all(domain.periodic)
    return ("still", "shifted", *(("along",) if mixed else ()))


def shifted(schedule: Schedule, kind: str, domain: Domain, coarsest: Patch) -> Schedule:
    """A schedule with one of the `shift_kinds` of a domain.

    Shifts along the joined axes are offsets that are used in turn: as many as the coarsest patch
    has cells there, each once. So they are offsets of the finer patches, too.
    """
    if kind == "still":
        return schedule
    if kind == "shifted":
        return Shifted(schedule)
    sizes, joined = per_axis(coarsest, domain.ndim, "patch"), domain.periodic
    drawn = Shifted(Constant(coarsest))
    count = max(size for size, own in zip(sizes, joined, strict=True) if own)
    moves = [drawn(n).on(domain).shift for n in range(count)]
    offsets = [[s if own else 0 for s, own in zip(m, joined, strict=True)] for m in moves]
    return Shifted(schedule, offsets=offsets)


def distinct(schedules: Iterable[Schedule], domain: Domain, steps: int) -> list[Schedule]:
    """Schedules that differ in what they choose; of equal ones the simplest stays."""
    found: dict[tuple[Choice, ...], Schedule] = {}
    for schedule in schedules:
        choices = tuple(_effective(schedule(step), domain) for step in range(steps))
        if choices not in found or complexity(schedule) < complexity(found[choices]):
            found[choices] = schedule
    return list(found.values())


def _effective(choice: Choice, domain: Domain) -> Choice:
    """A choice whose shift is less than its patch."""
    own = choice.on(domain)
    sizes = per_axis(own.patch, domain.ndim, "patch")
    return Choice(own.patch, tuple(s % p for s, p in zip(own.shift, sizes, strict=True)))


def complexity(schedule: Schedule) -> tuple[int, int, int]:
    """How much there is to say about a schedule: its kind, whether it is shifted, its changes."""
    inner = schedule.schedule if isinstance(schedule, Shifted) else schedule
    kind = KINDS.index(type(inner)) if type(inner) in KINDS else len(KINDS)
    listed = getattr(inner, "patches", ())
    changes = sum(a != b for a, b in pairwise(listed))
    return kind, int(inner is not schedule), changes


def sequence(patches: Sequence[Patch]) -> Schedule:
    """The simplest schedule that chooses these patches: one patch, a cycle, a warm-up, or all."""
    own = tuple(patches)
    for period in range(1, len(own) // 2 + 1):
        if all(own[i] == own[i % period] for i in range(len(own))):
            return Constant(own[0]) if period == 1 else Cycle(*own[:period])
    tail = 1
    while tail < len(own) and own[-tail - 1] == own[-1]:
        tail += 1
    if tail == len(own):
        return Constant(own[0])
    return Warmup(own[:-tail], own[-1]) if tail > 1 else Explicit(own)
