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
| what `overtone plan` chose, from its file | `plan:FILE`                |

A patch with one int for each axis is written `4x8`.

The schedules are those of the paper's section on inference-time schedules and its appendix on
schedule families; shifts are our own addition.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import RLock

from overtone.domain import MAX_AXES, Domain, entries, is_int, per_axis
from overtone.errors import PatchError
from overtone.grid import PatchGrid
from overtone.guard.names import shown

Patch = int | tuple[int, ...]
"""Cells of a token: one int for all axes, or one for each."""

MAX_NUMBER = 10**12
"""Largest patch, offset or count of a schedule; no grid and no rollout is as large."""
MAX_TEXT = 100_000
"""Longest string form, in characters."""
MAX_STEPS = 100_000
"""Steps that are gone through at once, for a token budget or to count the uses of a patch; a
rollout asks for one step after the other, and may be longer."""
MAX_LISTED = 4096
"""Largest patch whose offsets are listed and sorted."""
PLAN = "plan:"
"""What stands before the name of a plan's file."""
PLAN_FORMAT = "overtone-plan-1"
MAX_PLAN_BYTES = 64_000_000
"""Largest plan that is read."""


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


@dataclass(frozen=True)
class Planned(Schedule):
    """A schedule that was chosen for one model on one grid, as `plan:FILE` reads it.

    It chooses, and is written, as the schedule that was chosen. `rollout` follows it with that
    model alone, and on that grid.

    Attributes:
        schedule: what was chosen.
        model: fingerprint of the model, see `overtone.models.storage.fingerprint`.
        domain: what it was chosen on.
        source: the file, for messages.
    """

    schedule: Schedule
    model: str
    domain: Domain
    source: str

    def __call__(self, step: int) -> Choice:
        return self.schedule(step)

    def __str__(self) -> str:
        return str(self.schedule)

    def objection(self, model: str, domain: Domain) -> str | None:
        """Why it can't be followed by a model of some fingerprint on a domain; None if it can."""
        again = "make a plan for this one with `overtone plan`"
        if model != self.model:
            return (
                f"the plan '{shown(self.source)}' was made for another model (its weights begin "
                f"with {shown(self.model[:8])}, this one's with {model[:8]}); {again}"
            )
        if domain.shape != self.domain.shape or not self.domain.steps_by(domain.dt):
            own = f"{self.domain.shape} cells and dt {self.domain.dt:g}"
            return (
                f"the plan '{shown(self.source)}' was made for a grid of {own}, this one has "
                f"{domain.shape} and dt {domain.dt:g}; {again}"
            )
        return None


def parse_schedule(text: str | int | Schedule) -> Schedule:
    """Read a schedule's string form; the module's docstring lists them.

    An int is the schedule of this one patch, and a schedule is itself.
    """
    if isinstance(text, Schedule):
        return text
    if is_int(text):
        return Constant(text)
    if not isinstance(text, str):
        raise PatchError(
            f"schedule is {text!r}; expected a patch such as 16, or a text such as '4-8-16+shift'"
        )
    given = f"schedule '{shown(text if len(text) <= 60 else text[:60] + '…')}'"
    if len(text) > MAX_TEXT:
        raise PatchError(f"{given} has {len(text)} characters; expected at most {MAX_TEXT}")
    if text.strip().startswith(PLAN):
        return _read_plan(text.strip().removeprefix(PLAN))
    try:
        body, shift, rest = text.strip().partition("+shift")
        schedule = _parse_patches(body)
        return _parse_shift(schedule, rest) if shift else schedule
    except PatchError as error:
        raise PatchError(f"{given}: {error}") from None
    except (TypeError, ValueError):
        raise PatchError(
            f"{given} can't be read; expected forms such as 16, 4-8-16, "
            "dwell:4-8-16:2, warmup:4-4-8-8:16, reverse:16:8-8-4-4:10, bursts:16:4:5, "
            "random:4-8-16:0, explicit:4-8-16, each with +shift or +shift:random:0 behind it, or "
            "plan:FILE (what decides as it goes, such as adaptive:0.02, is read where a rollout is "
            "made)"
        ) from None


def _read_plan(path: str) -> Planned:
    """The schedule of a plan's file; all else that is in it is read by `overtone.assess.plan`."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_PLAN_BYTES + 1)
        if len(text) > MAX_PLAN_BYTES:
            raise ValueError(f"it has more than {MAX_PLAN_BYTES} bytes")
        content = json.loads(text)
        if content["format"] != PLAN_FORMAT:
            raise ValueError(f"its format is not '{PLAN_FORMAT}'")
        chosen, model = content["schedule"], content["model"]["fingerprint"]
        if not isinstance(model, str) or not isinstance(chosen, str) or chosen.startswith(PLAN):
            raise ValueError("its schedule or its model's fingerprint is no text of that kind")
        domain = Domain(**content["data"]["domain"])
        return Planned(parse_schedule(chosen), model, domain, path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = shown(f"{type(error).__name__}: {error}")[:300]
        raise PatchError(
            f"'{shown(path)}' can't be read as a plan of `overtone plan` ({reason}); give the "
            "JSON file that it wrote, or make the plan again"
        ) from error


def _dwell(patches: str, each: str = "2") -> Schedule:
    return Dwell(read_patches(patches), int(each))


def _warmup(patches: str, then: str) -> Schedule:
    return Warmup(read_patches(patches), _read(then))


def _reverse(first: str, patches: str, steps: str) -> Schedule:
    return ReverseWarmup(_read(first), read_patches(patches), int(steps))


def _bursts(coarse: str, fine: str, every: str) -> Schedule:
    return Bursts(_read(coarse), _read(fine), int(every))


def _random(patches: str, seed: str = "0") -> Schedule:
    return RandomChoice(read_patches(patches), int(seed))


def _explicit(patches: str) -> Schedule:
    return Explicit(read_patches(patches))


_FORMS: dict[str, Callable[..., Schedule]] = {
    "dwell": _dwell,
    "warmup": _warmup,
    "reverse": _reverse,
    "bursts": _bursts,
    "random": _random,
    "explicit": _explicit,
}


def _parse_patches(text: str) -> Schedule:
    name, *arguments = text.split(":")
    if name in _FORMS:
        return _FORMS[name](*arguments)
    patches = read_patches(text)
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


def read_patches(text: str) -> tuple[Patch, ...]:
    """The patches of a text such as `4-8-16`."""
    return tuple(_read(part) for part in text.split("-"))


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
