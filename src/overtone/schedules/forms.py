"""String forms of schedules, and a plan's file: read here, written by the schedules themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from overtone.domain import Domain, is_int
from overtone.errors import PatchError
from overtone.guard.names import shown
from overtone.schedules.kinds import (
    Bursts,
    Choice,
    Constant,
    Cycle,
    Dwell,
    Explicit,
    Patch,
    RandomChoice,
    ReverseWarmup,
    Schedule,
    Shifted,
    Warmup,
)

MAX_TEXT = 100_000
"""Longest string form, in characters."""
PLAN = "plan:"
"""What stands before the name of a plan's file."""
PLAN_FORMAT = "overtone-plan-1"
MAX_PLAN_BYTES = 64_000_000
"""Largest plan that is read."""


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
