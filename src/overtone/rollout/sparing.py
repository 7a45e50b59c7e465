"""A controller that looks now and then, and spends by how hard a rollout is.

A comparison at every step costs a fourth of a fine step and as much again as the coarsest. What
changes from one trajectory to another changes slowly within one. So steps are compared at every
`every`-th step only, and between these looks a level stays. Level n is the cycle of the patches
from the n-th finest to the coarsest: cycles leave smaller errors than their finest patch does
alone, at less than half of its tokens, where errors of one grid add up.

At a look, a step at patch p has the calibrated error e(p), and with usual errors r a level q of
patches P would have made e(p) · mean of r(P) / r(p). The coarsest level within the tolerance is
taken until the next look; one that is coarser than before must be within `coarsen` of it. Where no
tolerance is given, it is what a step of the finest cycle usually errs by: a rollout of usual
difficulty is made with it, an easier one more coarsely.

A budget is a limit on all steps and looks of a sample. At each look, no level is taken that the
rest of the budget could not pay for to the end; so what easy stretches save is there for hard ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from overtone.domain import per_axis
from overtone.errors import PatchError
from overtone.rollout.adaptive import (
    most_tokens,
    moved,
    read_words,
    require_positive,
    require_several,
    require_whole,
    usual_error,
    write_shift,
)
from overtone.rollout.controllers import Controller, Record, Task
from overtone.rollout.estimates import next_coarser, ordered
from overtone.schedules import Choice, Patch, Shifted, write_patches


@dataclass(frozen=True)
class Sparing(Controller):
    """The coarsest cycle of patches whose steps keep a tolerance, by a look now and then.

    Args:
        patches: to choose from; all that the model knows if None.
        tolerance: error of one step, VRMSE, mean over fields; None for what the model's calibration
            tells of a usual step of the finest cycle.
        budget: tokens for one sample, of all steps and comparisons; None for no limit.
        every: steps from one look to the next; at least as many as there are patches.
        per_sample: whether each sample has patches of its own, or all those of the worst one.
        shift: as for `Adaptive`.
        coarsen: share of the tolerance that a coarser level must keep.
    """

    patches: tuple[Patch, ...] | None = None
    tolerance: float | None = None
    budget: int | None = None
    every: int = 10
    per_sample: bool = True
    shift: bool | Shifted = False
    coarsen: float = 0.7
    _task: Task | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_positive("tolerance", self.tolerance, none=True)
        require_positive("coarsen", self.coarsen, most=1.0)
        require_whole("every", self.every)
        require_whole("budget", self.budget, none=True)

    def __str__(self) -> str:
        """Its string form; settings that have none are left out."""
        parts = ["sparing"]
        parts += [] if self.tolerance is None else [f"{self.tolerance:g}"]
        parts += [] if self.patches is None else [write_patches(self.patches)]
        parts += [] if self.budget is None else [f"budget={self.budget}"]
        parts += [] if self.every == 10 else [f"every={self.every}"]
        parts += [] if self.per_sample else ["batch"]
        return ":".join(parts) + write_shift(self.shift)

    def on(self, task: Task) -> Sparing:
        """The same, for a rollout: of patches that the model knows, from fine to coarse.

        Raises:
            PatchError: there is one patch only, looks are too frequent, the budget is below the
                cheapest rollout, or neither a tolerance nor a calibration is there.
        """
        patches = ordered(task.patches if self.patches is None else self.patches, task.domain.ndim)
        require_several(patches)
        if self.every < len(patches):
            raise PatchError(
                f"every is {self.every} and there are {len(patches)} patches; a look must come "
                f"after all of them, so give every={len(patches)} or more"
            )
        ready = replace(self, patches=patches, _task=task, tolerance=self._limit(task, patches))
        cheapest = ready._rest(len(patches) - 1, 0)
        if self.budget is not None and self.budget < cheapest:
            raise PatchError(
                f"budget is {self.budget} tokens; {task.steps} steps at patch "
                f"{write_patches(patches[-1:])}, and a look at every {self.every}th, take "
                f"{cheapest}. Give at least that, or make fewer steps"
            )
        return ready

    def __call__(self, record: Record) -> Choice:
        """The next patch of the cycle that the last look chose; the whole cycle at first."""
        task, patches = self._ready()
        cycle = patches[self._level(record) :]
        patch = cycle[len(record) % len(cycle)]
        return Choice(patch, moved(self.shift, patch, record, task.domain.ndim))

    def looks(self, record: Record) -> bool:
        """Whether the next step is compared."""
        return len(record) % self.every == 0

    def probe(self, choice: Choice) -> Choice:
        """The next coarser patch; at the coarsest, its grid moved by half a patch."""
        task, patches = self._ready()
        return next_coarser(choice, patches, task.domain.ndim)

    def _limit(self, task: Task, patches: tuple[Patch, ...]) -> float:
        """The tolerance, or what a step of the cycle of all patches usually errs by."""
        if self.tolerance is not None:
            return self.tolerance
        if not all(task.errors.get(patch) for patch in patches):
            raise PatchError(
                f"'{self}' has no tolerance, and the model is not calibrated on this grid, so its "
                "usual error is not known; give one such as sparing:0.02, or run `overtone "
                "calibrate MODEL DATA`"
            )
        return sum(task.errors[patch] for patch in patches) / len(patches)

    def _rest(self, level: int, first: int) -> int:
        """Tokens of the steps from one on at a level, and of their looks, at most."""
        task, patches = self._ready()
        cycle, total = patches[level:], 0
        for step in range(first, task.steps):
            choice = Choice(cycle[step % len(cycle)])
            total += most_tokens(task, choice.patch)
            if step % self.every == 0:
                total += most_tokens(task, self.probe(choice).patch)
        return total

    def _affordable(self, level: int, record: Record) -> int:
        """The level, or the finest coarser one that the rest of the budget pays for."""
        _, patches = self._ready()
        if self.budget is not None:
            left = self.budget - sum(made.tokens for made in record)
            while level < len(patches) - 1 and self._rest(level, len(record)) > left:
                level += 1
        return level

    def _level(self, record: Record) -> int:
        if not record:
            return self._affordable(0, ())
        task, patches = self._ready()
        sizes = [per_axis(patch, task.domain.ndim, "patch") for patch in patches]
        places = [
            sizes.index(per_axis(made.choice.patch, task.domain.ndim, "patch")) for made in record
        ]
        look = (len(record) - 1) // self.every * self.every
        # A level stays from the step after a look to the next look, and uses all its patches.
        before = min(places[max(look + 1 - self.every, 0) : look + 1])
        usual = [usual_error(task, patch) for patch in patches]
        unit = record[look].error / usual[places[look]]
        assert self.tolerance is not None
        chosen = 0
        for level in reversed(range(1, len(patches))):
            expected = unit * sum(usual[level:]) / len(usual[level:])
            limit = self.tolerance * (self.coarsen if level > before else 1.0)
            if expected <= limit:
                chosen = level
                break
        return self._affordable(chosen, record[: look + 1])

    def _ready(self) -> tuple[Task, tuple[Patch, ...]]:
        if self._task is None or self.patches is None:
            raise PatchError(f"'{self}' was asked without a rollout; call `on` with a Task first")
        return self._task, self.patches


def read_sparing(body: str, shift: str) -> Sparing:
    """Read `sparing[:TOLERANCE][:PATCHES][:budget=TOKENS][:every=STEPS][:batch]`.

    Args:
        body: up to the shift.
        shift: from `+shift` on; empty for none.
    """
    return Sparing(**read_words(body, shift, ("budget", "every")))
