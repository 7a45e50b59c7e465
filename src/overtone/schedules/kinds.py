"""The schedules: which patch, and which shift of its grid, at which step."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import RLock

from overtone.domain import MAX_AXES, Domain, entries, is_int, per_axis
from overtone.errors import PatchError
from overtone.grid import PatchGrid

Patch = int | tuple[int, ...]
"""Cells of a token: one int for all axes, or one for each."""

MAX_NUMBER = 10**12
"""Largest patch, offset or count of a schedule; no grid and no rollout is as large."""
MAX_STEPS = 100_000
"""Steps that are gone through at once, for a token budget or to count the uses of a patch; a
rollout asks for one step after the other, and may be longer."""
MAX_LISTED = 4096
"""Largest patch whose offsets are listed and sorted."""


@dataclass(frozen=True)
class Choice:
    """What a schedule answers: a patch, and the shift of its grid in cells.

    A schedule does not know how many axes the domain has, so its shift has `MAX_AXES` entries;
    `on` keeps those that the domain needs.
    """

    patch: Patch
    shift: tuple[int, ...] = (0,) * MAX_AXES

    def on(self, domain: Domain) -> Choice:
        """The same choice with one patch and one shift for each axis of a domain."""
        if len(self.shift) < domain.ndim:
            raise PatchError(
                f"the schedule's offset {self.shift} has {len(self.shift)} entries; the domain "
                f"has {domain.ndim} axes"
            )
        patch = per_axis(self.patch, domain.ndim, "patch")
        return Choice(patch, self.shift[: domain.ndim])


class Schedule:
    """A pure function from rollout step (0, 1, …) to `Choice`."""

    def __call__(self, step: int) -> Choice:
        """The choice at a step."""
        raise NotImplementedError

    def tokens(self, domain: Domain, steps: int) -> int:
        """Token budget: the tokens of one frame, summed over the first `steps` steps."""
        uses = Counter(self(step) for step in range(require_countable(steps)))
        return sum(num * _tokens(choice, domain) for choice, num in uses.items())


@dataclass(frozen=True)
class Constant(Schedule):
    """The same patch at every step."""

    patch: Patch

    def __post_init__(self) -> None:
        _set(self, patch=_patch(self.patch))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patch)

    def __str__(self) -> str:
        return write_patch(self.patch)


@dataclass(frozen=True, init=False)
class Cycle(Schedule):
    """The given patches in turn, for ever: `Cycle(4, 8, 16)`."""

    patches: tuple[Patch, ...]

    def __init__(self, *patches: Patch):
        _set(self, patches=_patches(patches))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patches[step % len(self.patches)])

    def __str__(self) -> str:
        return write_patches(self.patches)


@dataclass(frozen=True)
class Dwell(Schedule):
    """A cycle that stays `each` steps at every patch."""

    patches: tuple[Patch, ...]
    each: int = 2

    def __post_init__(self) -> None:
        _set(self, patches=_patches(self.patches), each=_count(self.each, "each"))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patches[step // self.each % len(self.patches)])

    def __str__(self) -> str:
        return f"dwell:{write_patches(self.patches)}:{self.each}"


@dataclass(frozen=True)
class Warmup(Schedule):
    """The given patches once, then one patch for the rest."""

    patches: tuple[Patch, ...]
    then: Patch

    def __post_init__(self) -> None:
        _set(self, patches=_patches(self.patches), then=_patch(self.then))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patches[step] if step < len(self.patches) else self.then)

    def __str__(self) -> str:
        return f"warmup:{write_patches(self.patches)}:{write_patch(self.then)}"

    def reverse(self, steps: int) -> ReverseWarmup:
        """This schedule's first `steps` steps, backwards."""
        return ReverseWarmup(self.then, tuple(reversed(self.patches)), steps)


@dataclass(frozen=True)
class ReverseWarmup(Schedule):
    """One patch until the given ones fill the end of a rollout of `steps` steps.

    A pure function of the step can't know how long the rollout is, so it is told; beyond `steps`
    the last patch stays.
    """

    first: Patch
    patches: tuple[Patch, ...]
    steps: int

    def __post_init__(self) -> None:
        _set(self, first=_patch(self.first), patches=_patches(self.patches))
        _set(self, steps=_count(self.steps, "steps"))
        if self.steps < len(self.patches):
            raise PatchError(f"{len(self.patches)} patches do not fit into {self.steps} steps")

    def __call__(self, step: int) -> Choice:
        late = step - (self.steps - len(self.patches))
        return Choice(self.first if late < 0 else self.patches[min(late, len(self.patches) - 1)])

    def __str__(self) -> str:
        return f"reverse:{write_patch(self.first)}:{write_patches(self.patches)}:{self.steps}"


@dataclass(frozen=True)
class Bursts(Schedule):
    """A coarse patch, with a fine one at every `every`-th step."""

    coarse: Patch
    fine: Patch
    every: int

    def __post_init__(self) -> None:
        _set(self, coarse=_patch(self.coarse), fine=_patch(self.fine))
        _set(self, every=_count(self.every, "every"))

    def __call__(self, step: int) -> Choice:
        return Choice(self.fine if (step + 1) % self.every == 0 else self.coarse)

    def __str__(self) -> str:
        return f"bursts:{write_patch(self.coarse)}:{write_patch(self.fine)}:{self.every}"


@dataclass(frozen=True)
class RandomChoice(Schedule):
    """A patch drawn uniformly and independently at every step, the same for the same seed."""

    patches: tuple[Patch, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        _set(self, patches=_patches(self.patches), seed=_seed(self.seed))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patches[_draw(len(self.patches), "patch", self.seed, step)])

    def __str__(self) -> str:
        return f"random:{write_patches(self.patches)}:{self.seed}"


@dataclass(frozen=True)
class Explicit(Schedule):
    """One patch for each step, written out. Asking beyond the last is an error."""

    patches: tuple[Patch, ...]

    def __post_init__(self) -> None:
        _set(self, patches=_patches(self.patches))

    def __call__(self, step: int) -> Choice:
        if step >= len(self.patches):
            raise PatchError(
                f"the schedule '{self}' has {len(self.patches)} steps, step {step} was asked for; "
                "write more steps or use Cycle"
            )
        return Choice(self.patches[step])

    def __str__(self) -> str:
        return f"explicit:{write_patches(self.patches)}"


class _Uses:
    """How often the patch of a step was used before it, for one schedule.

    Grown step by step, so that a long rollout counts every step once.
    """

    def __init__(self, schedule: Schedule):
        self._schedule = schedule
        self._counts: dict[Patch, int] = {}
        self._found: list[int] = []

    def before(self, step: int) -> int:
        """Uses before a step."""
        if step - len(self._found) > MAX_STEPS:
            raise PatchError(
                f"step {step} was asked for after {len(self._found)} others; the uses of a patch "
                f"are counted step by step, and at most {MAX_STEPS} at once"
            )
        if step >= len(self._found):
            with _COUNTING:
                for later in range(len(self._found), step + 1):
                    patch = self._schedule(later).patch
                    self._found.append(self._counts.get(patch, 0))
                    self._counts[patch] = self._found[-1] + 1
        return self._found[step]


_COUNTING = RLock()
"""Schedules are shared by threads, and may be within each other."""


@dataclass(frozen=True, init=False)
class Shifted(Schedule):
    """Another schedule, with the patch grid moved at every step.

    Args:
        schedule: where the patches come from.
        kind: `"stratified"`: along each axis, each patch uses every one of its offsets once, in
            random order, before any repeats (in steps of random length, for patches of more than
            `MAX_LISTED` cells). `"random"`: every offset is drawn independently.
        seed: of the random order.
        offsets: explicit offsets (cells, one for each axis), used in turn instead of drawing.
    """

    schedule: Schedule
    kind: str
    seed: int
    offsets: tuple[tuple[int, ...], ...]
    _uses: _Uses = field(repr=False, compare=False)

    def __init__(
        self,
        schedule: Schedule,
        kind: str = "stratified",
        seed: int = 0,
        offsets: Iterable[Iterable[int]] | None = None,
    ):
        kinds = ("stratified", "random")
        if kind not in kinds:
            raise PatchError(f"kind of shift is {kind!r}; expected one of {kinds}, or give offsets")
        fixed = tuple(_offset(offset) for offset in (() if offsets is None else offsets))
        if offsets is not None and not fixed:
            raise PatchError(f"offsets are {offsets!r}; expected at least one, each like (3, 5)")
        _set(self, schedule=schedule, kind=kind, seed=_seed(seed), offsets=fixed)
        _set(self, _uses=_Uses(schedule))

    def __call__(self, step: int) -> Choice:
        patch = self.schedule(step).patch
        return Choice(patch, self.offset(patch, step, self._uses.before))

    def offset(self, patch: Patch, step: int, uses: Callable[[int], int]) -> tuple[int, ...]:
        """How far the grid of a patch is moved at a step, whoever chose the patch.

        Args:
            patch: of the step.
            step: counted from 0.
            uses: tells how often that patch was used before a step.
        """
        if self.offsets:
            return self.offsets[step % len(self.offsets)]
        sizes = (patch,) * MAX_AXES if isinstance(patch, int) else patch
        if self.kind == "random":
            shift = [_draw(size, "shift", self.seed, step, axis) for axis, size in enumerate(sizes)]
        else:
            use = uses(step)
            shift = [self._stratified(use, axis, size) for axis, size in enumerate(sizes)]
        return tuple(shift)

    def _stratified(self, use: int, axis: int, size: int) -> int:
        """The offset of a patch of this size that was used so often before."""
        if size > MAX_LISTED:
            return _stride(size, use % size, self.seed, axis, use // size)
        order = _permutation(size, self.seed, axis, use // size)
        return order[use % size]

    def __str__(self) -> str:
        if self.offsets:
            return f"{self.schedule}+shift:at:{write_patches(self.offsets)}"
        if self.kind == "stratified" and self.seed == 0:
            return f"{self.schedule}+shift"
        return f"{self.schedule}+shift:{self.kind}:{self.seed}"


def write_patch(patch: Patch) -> str:
    """A patch as schedules write it, e.g. `16` or `4x8`."""
    return str(patch) if isinstance(patch, int) else "x".join(map(str, patch))


def write_patches(patches: Iterable[Patch]) -> str:
    """Some patches as schedules write them, e.g. `4-8-16`."""
    return "-".join(map(write_patch, patches))


def require_countable(steps: int) -> int:
    """Refuse more steps than can be gone through one by one."""
    if not is_int(steps) or steps > MAX_STEPS:
        raise PatchError(
            f"steps is {steps}; the choices of at most {MAX_STEPS} steps are counted one by one. "
            "Ask for fewer"
        )
    return int(steps)


def _tokens(choice: Choice, domain: Domain) -> int:
    chosen = choice.on(domain)
    return PatchGrid.lay(domain, chosen.patch, chosen.shift).num_tokens


def _patch(patch: Patch | Sequence[int]) -> Patch:
    if is_int(patch):
        return _within(patch, "patch", least=1)
    sizes = entries(patch)
    if not 1 <= len(sizes) <= MAX_AXES:
        raise PatchError(
            f"patch is {patch!r}; expected a positive int, or one for each of up to {MAX_AXES} axes"
        )
    return tuple(_within(size, "patch", least=1) for size in sizes)


def _offset(offset: Iterable[int]) -> tuple[int, ...]:
    cells = entries(offset)
    if not 1 <= len(cells) <= MAX_AXES:
        raise PatchError(f"an offset is {offset!r}; expected one int for each axis, like (3, 5)")
    return tuple(_within(value, "an offset", least=-MAX_NUMBER) for value in cells)


def _patches(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    read = tuple(_patch(patch) for patch in entries(patches))
    if not read:
        raise PatchError(f"patches is {patches!r}; a schedule needs at least one, e.g. (4, 8, 16)")
    return read


def _count(value: int, name: str) -> int:
    return _within(value, name, least=1)


def _seed(value: int) -> int:
    return _within(value, "seed", least=-(2**64), most=2**64)


def _within(value: object, name: str, *, least: int, most: int = MAX_NUMBER) -> int:
    """The value as an int of Python, if it is a whole number between two others."""
    if not is_int(value):
        raise PatchError(f"{name} is {value!r}; expected an int, at least {least}")
    if not least <= value <= most:
        # Python refuses to write out numbers of thousands of digits.
        given = value if abs(value) < 10**30 else "a number of more than 30 digits"
        raise PatchError(f"{name} is {given}; expected {least} to {most}")
    return int(value)


def _set(schedule: Schedule, /, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(schedule, name, value)


def _draw(limit: int, *key: object) -> int:
    """An integer below `limit` that depends on the key alone: a counter-based random stream."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % limit


def _stride(size: int, use: int, *key: object) -> int:
    """Entry `use` of an order in which each of `size` offsets comes once: equal steps round a ring.

    A step that has no divisor in common with the size visits every place, and needs no list.
    """
    step, tries = size, 0
    while math.gcd(step, size) > 1:
        step, tries = 1 + _draw(size - 1, "stride", *key, size, tries), tries + 1
    return (_draw(size, "start", *key, size) + use * step) % size


@lru_cache(maxsize=4096)
def _permutation(size: int, *key: object) -> tuple[int, ...]:
    return tuple(sorted(range(size), key=lambda i: _draw(2**62, "order", *key, size, i)))
