"""Controllers: who decides on a step by what happened so far.

A schedule is a pure function of the step. A controller is a pure function of the record of the
rollout: what was chosen at each step, how large its error is thought to be, and what it cost. So a
rollout that is resumed with its record goes on as it would have. A *rule* is either of the two;
`parse_rule` reads both from their string forms.

| controller                                      | string form                         |
|-------------------------------------------------|-------------------------------------|
| `Adaptive(tolerance=0.02)`                      | `adaptive:0.02`                     |
| `Adaptive((4, 8, 16), tolerance=0.02)`          | `adaptive:0.02:4-8-16`              |
| `Adaptive(tolerance=0.02, budget=4000)`         | `adaptive:0.02:budget=4000`         |
| `Adaptive(tolerance=0.02, per_sample=False)`    | `adaptive:0.02:batch`               |
| `Adaptive(tolerance=0.02, shift=True)`          | `adaptive:0.02+shift`               |
| `Sparing()`                                     | `sparing`                           |
| `Sparing(tolerance=0.02, every=5)`              | `sparing:0.02:every=5`              |
| `Sparing(budget=4000)`                          | `sparing:budget=4000`               |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module

from overtone.domain import Domain
from overtone.errors import PatchError
from overtone.grid import PatchGrid
from overtone.guard.names import shown
from overtone.schedules import Choice, Patch, Schedule, parse_schedule
from overtone.schedules.forms import MAX_TEXT


@dataclass(frozen=True)
class Made:
    """One step of one sample, as it was made.

    Attributes:
        choice: patch and shift, one int for each axis.
        error: VRMSE that this step alone is thought to have added, mean over fields, by its own
            comparison or by the last one that was made; NaN where nobody estimated it.
        tokens: of all that was computed for it: the frame, what it was compared with, and what was
            refused.
        refused: choices that were tried before and redone, with their errors.
        fields: the error of each field, where it was estimated.
    """

    choice: Choice
    error: float = math.nan
    tokens: int = 0
    refused: tuple[tuple[Choice, float], ...] = ()
    fields: tuple[float, ...] = ()


Record = Sequence[Made]
"""The steps of one sample so far."""


def worst(steps: Sequence[Made]) -> Made:
    """One step of several samples that share their choices, with the largest errors of any.

    Args:
        steps: one for each sample.
    """
    first = steps[0]
    if any(made.choice != first.choice for made in steps):
        raise PatchError(
            "the records of samples that are steered together differ in their choices; resume with "
            "those of one rollout"
        )
    pairs = zip(*(made.refused for made in steps), strict=True)
    refused = tuple((tries[0][0], max(error for _, error in tries)) for tries in pairs)
    return replace(first, error=max(made.error for made in steps), refused=refused)


@dataclass(frozen=True)
class Task:
    """What a controller is asked to steer.

    Attributes:
        domain: what the rollout lies on.
        steps: of the whole rollout.
        patches: those that the model knows, the finest first.
        errors: patch -> its usual error of one step, where the model's calibration tells; only
            ratios matter.
    """

    domain: Domain
    steps: int
    patches: tuple[Patch, ...]
    errors: Mapping[Patch, float] = field(default_factory=dict[Patch, float])

    def tokens(self, patch: Patch, shift: int | Sequence[int] = 0) -> int:
        """Tokens of one frame of one sample."""
        return PatchGrid.lay(self.domain, patch, shift).num_tokens


class Controller(ABC):
    """Decides on patch and shift of each step by the record of the rollout.

    `rollout` calls `on` once and then, for each step, `__call__`, makes the frame and what `probe`
    names, and asks `redo` until it answers None.
    """

    per_sample: bool = True
    """Whether each sample is steered by its own record, or all by the worst of them."""

    @abstractmethod
    def on(self, task: Task) -> Controller:
        """The same controller, made ready for a rollout; refuses what it can't steer."""

    @abstractmethod
    def __call__(self, record: Record) -> Choice:
        """What to make the next step with."""

    @abstractmethod
    def probe(self, choice: Choice) -> Choice:
        """What to compare a step of this choice with, on the same window."""

    def looks(self, record: Record) -> bool:
        """Whether the next step is compared; the first one always is.

        What is not has the error of the last one that was, by the usual errors of their patches.
        """
        return True

    def redo(self, record: Record, attempt: Made) -> Choice | None:
        """What to make the step with instead of an attempt; None to go on with it.

        Args:
            record: the steps before.
            attempt: how the step came out.
        """
        return None


Rule = Schedule | Controller
"""What decides on the patch and the shift of every step."""

CONTROLLERS = {
    "adaptive": ("overtone.rollout.adaptive", "read_adaptive"),
    "sparing": ("overtone.rollout.sparing", "read_sparing"),
}
"""First word of a string form -> module and function that reads the rest of it."""


def parse_rule(text: Rule | str | int) -> Rule:
    """Read the string form of a schedule or of a controller; either is itself."""
    if isinstance(text, Controller):
        return text
    name = text.strip().partition(":")[0].partition("+")[0] if isinstance(text, str) else ""
    if not isinstance(text, str) or name not in CONTROLLERS:
        return parse_schedule(text)
    given = f"schedule '{shown(text if len(text) <= 60 else text[:60] + '…')}'"
    if len(text) > MAX_TEXT:
        raise PatchError(f"{given} has {len(text)} characters; expected at most {MAX_TEXT}")
    module, function = CONTROLLERS[name]
    body, shift, rest = text.strip().partition("+shift")
    try:
        return getattr(import_module(module), function)(body, f"+shift{rest}" if shift else "")
    except PatchError as error:
        raise PatchError(f"{given}: {error}") from None


def require_schedule(rule: Rule, what: str) -> Schedule:
    """Refuse a controller where the choices of all steps must be known beforehand.

    Args:
        rule: as parsed.
        what: who needs them, for the error.
    """
    if isinstance(rule, Schedule):
        return rule
    raise PatchError(
        f"'{rule}' decides as the rollout goes on; {what} needs a schedule, such as 4-8-16+shift"
    )
