"""A controller that keeps a tolerance, as the step-size controllers of ODE solvers do.

Every step is made at some patch and compared with a cheaper one on the same window. Their
disagreement, calibrated, is the estimated error e(p) of the step. With usual errors r(p) of the
patches, another patch q would have made

    e(q) = e(p) · r(q) / r(p).

- *Accept* a step if e(p) ≤ tolerance, or if no finer patch is left or affordable; else redo it at
  the coarsest finer patch q with e(q) ≤ safety · tolerance, or at the finest.
- *Go coarser* by one patch at a time, and only if the coarser patch would have been below
  `coarsen` · tolerance at each of the last `patience` steps. Between that and the tolerance nothing
  changes: so constant difficulty ends at a constant patch.
- *Learn*: where a step was made at two patches, because one was refused, the ratio of their errors
  is known, and takes the place of r(q) / r(p) from then on.
- *Stay within the budget*: no step is made, or redone, that would leave less than what the rest of
  the rollout costs at the cheapest patch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from overtone.domain import entries, is_int, per_axis
from overtone.errors import PatchError
from overtone.rollout.controllers import Controller, Made, Record, Task
from overtone.rollout.estimates import next_coarser, ordered
from overtone.schedules import (
    Choice,
    Constant,
    Cycle,
    Patch,
    Shifted,
    parse_schedule,
    read_patches,
    write_patches,
)

ORDER = 1.0
"""How errors are thought to grow with the patch where no calibration tells: as its power."""


@dataclass(frozen=True)
class Adaptive(Controller):
    """The coarsest patch that keeps the estimated error of every step below a tolerance.

    Args:
        patches: to choose from; all that the model knows if None.
        tolerance: largest error of one step, VRMSE, mean over fields.
        budget: tokens for one sample, of all steps, comparisons and redone steps; None for no
            limit.
        per_sample: whether each sample has patches of its own, or all those of the worst one.
        shift: move the patch grid at every step; a `Shifted` says how: its offsets count, not its
            schedule.
        redoes: whether a step that is not good enough is made again; if not, the next is finer.
        safety: share of the tolerance that a finer patch is chosen by.
        coarsen: share of the tolerance below which a coarser patch is tried.
        patience: steps in a row for which that must hold.
    """

    patches: tuple[Patch, ...] | None = None
    tolerance: float = 0.02
    budget: int | None = None
    per_sample: bool = True
    shift: bool | Shifted = False
    redoes: bool = True
    safety: float = 0.9
    coarsen: float = 0.7
    patience: int = 2
    _task: Task | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.patches is not None:
            _set(self, patches=tuple(dict.fromkeys(Cycle(*entries(self.patches)).patches)))
            require_several(self.patches or ())
        require_positive("tolerance", self.tolerance)
        require_positive("safety", self.safety, most=1.0)
        require_positive("coarsen", self.coarsen, most=1.0)
        require_whole("budget", self.budget, none=True)
        require_whole("patience", self.patience)

    def __str__(self) -> str:
        """Its string form; settings that have none are left out."""
        parts = ["adaptive", f"{self.tolerance:g}"]
        parts += [] if self.patches is None else [write_patches(self.patches)]
        parts += [] if self.budget is None else [f"budget={self.budget}"]
        parts += [] if self.per_sample else ["batch"]
        return ":".join(parts) + write_shift(self.shift)

    def on(self, task: Task) -> Adaptive:
        """The same, for a rollout: of patches that the model knows, from fine to coarse.

        Raises:
            PatchError: there is one patch only, or the budget is below the cheapest rollout.
        """
        wanted = task.patches if self.patches is None else self.patches
        patches = ordered(wanted, task.domain.ndim)
        require_several(patches)
        ready = replace(self, patches=patches, _task=task)
        cheapest = task.steps * ready._cost(patches[-1])
        if self.budget is not None and self.budget < cheapest:
            raise PatchError(
                f"budget is {self.budget} tokens; {task.steps} steps at patch "
                f"{write_patches(patches[-1:])}, each with its comparison, take {cheapest}. Give "
                "at least that, or make fewer steps"
            )
        return ready

    def __call__(self, record: Record) -> Choice:
        """The patch for the next step: as before, finer by need or coarser by patience."""
        patches = self._ready()[1]
        level = len(patches) - 1 if self.redoes else 0
        if record:
            level = self._next_level(record)
        return self._affordable(record, level, spent=0)

    def probe(self, choice: Choice) -> Choice:
        """The next coarser patch; at the coarsest, its grid moved by half a patch."""
        task, patches = self._ready()
        return next_coarser(choice, patches, task.domain.ndim)

    def redo(self, record: Record, attempt: Made) -> Choice | None:
        """A finer patch for a step whose error is beyond the tolerance, if it can be paid for."""
        level = self._level(attempt)
        if not self.redoes or attempt.error <= self.tolerance or level == 0:
            return None
        wanted = self._fitting(record, attempt)
        choice = self._affordable(record, wanted, spent=attempt.tokens)
        finer = self._level(Made(choice)) < level
        return choice if finer and self._can_pay(record, choice.patch, attempt.tokens) else None

    def _next_level(self, record: Record) -> int:
        last = record[-1]
        level = self._level(last)
        if last.error > self.tolerance:  # it could not be redone
            return self._fitting(record, last)
        coarser = level + 1
        recent = record[-self.patience :]
        steady = len(recent) == self.patience and all(self._level(m) == level for m in recent)
        if coarser == len(self._ready()[1]) or not steady:
            return level
        limit = self.coarsen * self.tolerance
        ratio = self._ratio(record, coarser, level)
        return coarser if all(made.error * ratio <= limit for made in recent) else level

    def _fitting(self, record: Record, made: Made) -> int:
        """The coarsest finer level that should keep the tolerance, or else the finest."""
        level = self._level(made)
        for finer in range(level - 1, 0, -1):
            if made.error * self._ratio(record, finer, level) <= self.safety * self.tolerance:
                return finer
        return 0

    def _ratio(self, record: Record, one: int, other: int) -> float:
        """How the error of a level compares with that of another: as last seen, or as usual."""
        for made in reversed(record):
            seen = {self._level(Made(choice)): error for choice, error in made.refused}
            seen[self._level(made)] = made.error
            if one in seen and other in seen and 0 < seen[other] < math.inf:
                return seen[one] / seen[other]
        task, patches = self._ready()
        return usual_error(task, patches[one]) / usual_error(task, patches[other])

    def _affordable(self, record: Record, level: int, *, spent: int) -> Choice:
        """The choice of a level, or of the finest coarser one that can be paid for."""
        task, patches = self._ready()
        ndim = task.domain.ndim
        while level < len(patches) - 1 and not self._can_pay(record, patches[level], spent):
            level += 1
        return Choice(patches[level], moved(self.shift, patches[level], record, ndim))

    def _can_pay(self, record: Record, patch: Patch, spent: int) -> bool:
        """Whether a step still leaves enough for the rest at the coarsest patch.

        Args:
            record: the steps before.
            patch: of the step.
            spent: on earlier attempts at it.
        """
        if self.budget is None:
            return True
        task, patches = self._ready()
        before = sum(made.tokens for made in record) + spent
        rest = (task.steps - len(record) - 1) * self._cost(patches[-1])
        return before + self._cost(patch) + rest <= self.budget

    def _cost(self, patch: Patch) -> int:
        """Tokens of a step and of its comparison, with the grid where it has the most."""
        task, patches = self._ready()
        probe = next_coarser(Choice(patch), patches, task.domain.ndim).patch
        return most_tokens(task, patch) + most_tokens(task, probe)

    def _level(self, made: Made) -> int:
        """Place of a step's patch, 0 for the finest."""
        task, patches = self._ready()
        sizes = [per_axis(patch, task.domain.ndim, "patch") for patch in patches]
        return sizes.index(per_axis(made.choice.patch, task.domain.ndim, "patch"))

    def _ready(self) -> tuple[Task, tuple[Patch, ...]]:
        if self._task is None or self.patches is None:
            raise PatchError(f"'{self}' was asked without a rollout; call `on` with a Task first")
        return self._task, self.patches


def usual_error(task: Task, patch: Patch) -> float:
    """The usual error of a step; without calibration a power of the patch. Only ratios matter."""
    if all(task.errors.get(known) for known in (*task.patches, patch)):
        return task.errors[patch]
    size = math.prod(per_axis(patch, task.domain.ndim, "patch"))
    return size ** (ORDER / task.domain.ndim)


def most_tokens(task: Task, patch: Patch) -> int:
    """Tokens of a frame with the patch grid where it has the most: off the walls' corners."""
    return task.tokens(patch, [size // 2 for size in per_axis(patch, task.domain.ndim, "patch")])


def moved(shift: bool | Shifted, patch: Patch, record: Record, ndim: int) -> tuple[int, ...]:
    """How far the grid of the next step's patch is moved.

    Args:
        shift: of a controller: not at all, as usual, or as another schedule's shifts.
        patch: of the step.
        record: the steps before.
        ndim: number of axes.
    """
    if shift is False:
        return Choice(patch).shift
    shifts = shift if isinstance(shift, Shifted) else Shifted(Constant(1))
    own = per_axis(patch, ndim, "patch")
    return shifts.offset(
        patch,
        len(record),
        lambda _: sum(per_axis(m.choice.patch, ndim, "patch") == own for m in record),
    )


def write_shift(shift: bool | Shifted) -> str:
    """What stands behind a controller's string form for its shifts."""
    if not isinstance(shift, Shifted):
        return "+shift" if shift else ""
    plainest = Shifted(Constant(1), kind=shift.kind, seed=shift.seed, offsets=shift.offsets or None)
    return str(plainest).removeprefix("1")


def read_adaptive(body: str, shift: str) -> Adaptive:
    """Read `adaptive:TOLERANCE[:PATCHES][:budget=TOKENS][:batch]`.

    Args:
        body: up to the shift.
        shift: from `+shift` on; empty for none.
    """
    return Adaptive(**read_words(body, shift, ("budget",), needed="adaptive:0.02"))


def read_words(
    body: str, shift: str, numbers: tuple[str, ...], *, needed: str = ""
) -> dict[str, Any]:
    """Settings of a controller from `NAME[:TOLERANCE][:PATCHES][:NUMBER=…][:batch]`.

    Args:
        body: up to the shift.
        shift: from `+shift` on; empty for none.
        numbers: names of the whole numbers that may be given.
        needed: an example, for the error, where there must be a tolerance; empty where not.
    """
    own, *words = body.split(":")
    given: dict[str, Any] = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        try:
            if word == "batch":
                given["per_sample"] = False
            elif equals and name in numbers:
                given[name] = int(value)
            elif place == 0 and _is_number(word):
                given["tolerance"] = float(word)
            elif "patches" not in given:
                given["patches"] = read_patches(word)
            else:
                raise ValueError(word)
        except ValueError:
            known = ", ".join(f"{number}=NUMBER" for number in numbers)
            raise PatchError(
                f"'{word}' can't be read; expected {own}:TOLERANCE, then patches such as "
                f"4-8-16, {known} or batch, with : between them"
            ) from None
    if needed and "tolerance" not in given:
        raise PatchError(f"there is no tolerance; expected a form such as {needed}")
    if shift:
        if shift.partition(":")[0].strip() != "+shift":
            raise PatchError(
                f"'{shift}' can't be read; expected +shift or a form such as +shift:random:0"
            )
        found = parse_schedule(f"1{shift}")
        assert isinstance(found, Shifted)
        given["shift"] = True if found == Shifted(Constant(1)) else found
    return given


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def require_several(patches: tuple[Patch, ...]) -> None:
    """Refuse fewer than two patches."""
    if len(patches) < 2:
        known = write_patches(patches) or "none"
        raise PatchError(
            f"patches are {known}; a controller needs two or more to choose from. Use a model of "
            "several patches, or a schedule"
        )


def require_positive(
    name: str, value: object, *, most: float = math.inf, none: bool = False
) -> None:
    """Refuse a setting that is no positive number.

    Args:
        name, value: of the setting.
        most: the largest that it may be.
        none: whether it may be None.
    """
    if none and value is None:
        return
    limit = "above 0" if math.isinf(most) else "above 0, at most 1"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PatchError(f"{name} is {value!r}; expected a number {limit}")
    if not 0 < value <= most or math.isinf(value):
        raise PatchError(f"{name} is {value!r}; expected a number {limit}")


def require_whole(name: str, value: object, *, none: bool = False) -> None:
    """Refuse a setting that is no positive whole number; None may be one."""
    if not (none and value is None) and not (is_int(value) and value >= 1):
        raise PatchError(f"{name} is {value!r}; expected a whole number, at least 1")


def _set(controller: Adaptive, /, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(controller, name, value)
