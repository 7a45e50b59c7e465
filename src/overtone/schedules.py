"""Which patch, and which shift of the patch grid, at which rollout step.

A schedule is a pure function of the step: the same step always gets the same `Choice`. Every
schedule has a short string form that `parse_schedule` reads back, so that a command line, a
results file and a figure's legend all say the same thing:

| schedule                                  | string form                |
|-------------------------------------------|----------------------------|
| `Constant(16)`                            | `16`                       |
| `Cycle(4, 8, 16)`                         | `4-8-16`                   |
| `Dwell((4, 8, 16), each=2)`               | `dwell:4-8-16:2`           |
| `Warmup((4, 4, 8, 8), then=16)`           | `warmup:4-4-8-8:16`        |
| `ReverseWarmup(16, (8, 8, 4, 4), steps=10)` | `reverse:16:8-8-4-4:10`  |
| `Bursts(coarse=16, fine=4, every=5)`      | `bursts:16:4:5`            |
| `RandomChoice((4, 8, 16), seed=0)`        | `random:4-8-16:0`          |
| `Explicit([4, 4, 16])`                    | `explicit:4-4-16`          |
| `Shifted(s, kind="stratified", seed=0)`   | `s+shift`                  |
| `Shifted(s, kind="random", seed=7)`       | `s+shift:random:7`         |
| `Shifted(s, offsets=[(3, 5), (0, 8)])`    | `s+shift:at:3x5-0x8`       |

A patch with one int for each axis is written `4x8`.

The schedules are those of the paper's section on inference-time schedules and its appendix on
schedule families; shifts are our own addition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from overtone.domain import MAX_AXES, Domain, per_axis
from overtone.errors import PatchError
from overtone.grid import PatchGrid

Patch = int | tuple[int, ...]
"""Cells of a token: one int for all axes, or one for each."""


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
        choices = (self(step).on(domain) for step in range(steps))
        return sum(PatchGrid.lay(domain, c.patch, c.shift).num_tokens for c in choices)


@dataclass(frozen=True)
class Constant(Schedule):
    """The same patch at every step."""

    patch: Patch

    def __post_init__(self) -> None:
        _set(self, patch=_patch(self.patch))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patch)

    def __str__(self) -> str:
        return _write(self.patch)


@dataclass(frozen=True, init=False)
class Cycle(Schedule):
    """The given patches in turn, for ever: `Cycle(4, 8, 16)`."""

    patches: tuple[Patch, ...]

    def __init__(self, *patches: Patch):
        _set(self, patches=_patches(patches))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patches[step % len(self.patches)])

    def __str__(self) -> str:
        return _join(self.patches)


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
        return f"dwell:{_join(self.patches)}:{self.each}"


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
        return f"warmup:{_join(self.patches)}:{_write(self.then)}"

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
        if _count(self.steps, "steps") < len(self.patches):
            raise PatchError(f"{len(self.patches)} patches do not fit into {self.steps} steps")

    def __call__(self, step: int) -> Choice:
        late = step - (self.steps - len(self.patches))
        return Choice(self.first if late < 0 else self.patches[min(late, len(self.patches) - 1)])

    def __str__(self) -> str:
        return f"reverse:{_write(self.first)}:{_join(self.patches)}:{self.steps}"


@dataclass(frozen=True)
class Bursts(Schedule):
    """A coarse patch, with a fine one at every `every`-th step."""

    coarse: Patch
    fine: Patch
    every: int

    def __post_init__(self) -> None:
        _set(self, coarse=_patch(self.coarse), fine=_patch(self.fine))
        _count(self.every, "every")

    def __call__(self, step: int) -> Choice:
        return Choice(self.fine if (step + 1) % self.every == 0 else self.coarse)

    def __str__(self) -> str:
        return f"bursts:{_write(self.coarse)}:{_write(self.fine)}:{self.every}"


@dataclass(frozen=True)
class RandomChoice(Schedule):
    """A patch drawn uniformly and independently at every step, the same for the same seed."""

    patches: tuple[Patch, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        _set(self, patches=_patches(self.patches))

    def __call__(self, step: int) -> Choice:
        return Choice(self.patches[_draw(len(self.patches), "patch", self.seed, step)])

    def __str__(self) -> str:
        return f"random:{_join(self.patches)}:{self.seed}"


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
        return f"explicit:{_join(self.patches)}"


@dataclass(frozen=True, init=False)
class Shifted(Schedule):
    """Another schedule, with the patch grid moved at every step.

    Args:
        schedule: where the patches come from.
        kind: `"stratified"`: along each axis, each patch uses every one of its offsets once, in
            random order, before any repeats. `"random"`: every offset is drawn independently.
        seed: of the random order.
        offsets: explicit offsets (cells, one for each axis), used in turn instead of drawing.
    """

    schedule: Schedule
    kind: str
    seed: int
    offsets: tuple[tuple[int, ...], ...]

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
        fixed = tuple(tuple(int(v) for v in offset) for offset in offsets or ())
        if offsets is not None and not (fixed and all(fixed)):
            raise PatchError(f"offsets are {offsets!r}; expected at least one, each like (3, 5)")
        _set(self, schedule=schedule, kind=kind, seed=int(seed), offsets=fixed)

    def __call__(self, step: int) -> Choice:
        patch = self.schedule(step).patch
        if self.offsets:
            return Choice(patch, self.offsets[step % len(self.offsets)])
        sizes = (patch,) * MAX_AXES if isinstance(patch, int) else patch
        return Choice(patch, tuple(self._offset(step, axis, p) for axis, p in enumerate(sizes)))

    def _offset(self, step: int, axis: int, size: int) -> int:
        if self.kind == "random":
            return _draw(size, "shift", self.seed, step, axis)
        use = _earlier_uses(self.schedule, step)
        order = _permutation(size, self.seed, axis, use // size)
        return order[use % size]

    def __str__(self) -> str:
        if self.offsets:
            return f"{self.schedule}+shift:at:{_join(self.offsets)}"
        if self.kind == "stratified" and self.seed == 0:
            return f"{self.schedule}+shift"
        return f"{self.schedule}+shift:{self.kind}:{self.seed}"


def parse_schedule(text: str) -> Schedule:
    """Read a schedule's string form; the module's docstring lists them."""
    try:
        body, shift, rest = text.strip().partition("+shift")
        schedule = _parse_patches(body)
        return _parse_shift(schedule, rest) if shift else schedule
    except PatchError as error:
        raise PatchError(f"schedule {text!r}: {error}") from None
    except (TypeError, ValueError):
        raise PatchError(
            f"schedule {text!r} can't be read; expected forms such as 16, 4-8-16, "
            "dwell:4-8-16:2, warmup:4-4-8-8:16, reverse:16:8-8-4-4:10, bursts:16:4:5, "
            "random:4-8-16:0, explicit:4-8-16, each with +shift or +shift:random:0 behind it"
        ) from None


_FORMS: dict[str, Callable[..., Schedule]] = {
    "dwell": lambda patches, each="2": Dwell(_read_all(patches), int(each)),
    "warmup": lambda patches, then: Warmup(_read_all(patches), _read(then)),
    "reverse": lambda first, patches, n: ReverseWarmup(_read(first), _read_all(patches), int(n)),
    "bursts": lambda coarse, fine, every: Bursts(_read(coarse), _read(fine), int(every)),
    "random": lambda patches, seed="0": RandomChoice(_read_all(patches), int(seed)),
    "explicit": lambda patches: Explicit(_read_all(patches)),
}


def _parse_patches(text: str) -> Schedule:
    name, *arguments = text.split(":")
    if name in _FORMS:
        return _FORMS[name](*arguments)
    patches = _read_all(text)
    return Constant(patches[0]) if len(patches) == 1 else Cycle(*patches)


def _parse_shift(schedule: Schedule, text: str) -> Schedule:
    head, *arguments = text.split(":")
    if head:
        raise ValueError(text)
    if arguments[:1] == ["at"]:
        (text,) = arguments[1:]
        return Shifted(schedule, offsets=[map(int, part.split("x")) for part in text.split("-")])
    kind, seed = (*arguments, *("stratified", "0")[len(arguments) :])
    return Shifted(schedule, kind=kind, seed=int(seed))


def _read(text: str) -> Patch:
    sizes = tuple(int(size) for size in text.split("x"))
    return sizes[0] if len(sizes) == 1 else sizes


def _read_all(text: str) -> tuple[Patch, ...]:
    return tuple(_read(part) for part in text.split("-"))


def _write(patch: Patch) -> str:
    return str(patch) if isinstance(patch, int) else "x".join(map(str, patch))


def _join(patches: Iterable[Patch]) -> str:
    return "-".join(map(_write, patches))


def _patch(patch: Patch | Sequence[int]) -> Patch:
    sizes = (patch,) if isinstance(patch, int) else tuple(patch)
    if not sizes or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise PatchError(f"patch is {patch!r}; expected a positive int, or one for each axis")
    return sizes[0] if isinstance(patch, int) else sizes


def _patches(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    read = tuple(_patch(patch) for patch in patches)
    if not read:
        raise PatchError("a schedule needs at least one patch")
    return read


def _count(value: int, name: str) -> int:
    if value < 1:
        raise PatchError(f"{name} is {value}; expected at least 1")
    return value


def _set(schedule: Schedule, /, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(schedule, name, value)


def _draw(limit: int, *key: object) -> int:
    """An integer below `limit` that depends on the key alone: a counter-based random stream."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % limit


@lru_cache(maxsize=4096)
def _permutation(size: int, *key: object) -> tuple[int, ...]:
    return tuple(sorted(range(size), key=lambda i: _draw(2**62, "order", *key, size, i)))


def _earlier_uses(schedule: Schedule, step: int) -> int:
    """How often the patch of `step` was used before it."""
    counts, uses = _use_table(schedule)
    for later in range(len(uses), step + 1):
        patch = schedule(later).patch
        uses.append(counts.get(patch, 0))
        counts[patch] = uses[-1] + 1
    return uses[step]


@lru_cache(maxsize=64)
def _use_table(schedule: Schedule) -> tuple[dict[Patch, int], list[int]]:
    """Grown step by step, so that a long rollout counts every step once."""
    return {}, []
