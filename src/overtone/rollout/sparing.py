"""A controller that looks now and then, and spends by how hard a rollout is.

A comparison at every step costs a fourth of a fine step and as much again as the coarsest. What
changes from one trajectory to another changes slowly within one. So steps are compared at every
`every`-th step only, and between these looks a level stays. Level n is the cycle of the patches
from the n-th finest to the coarsest: cycles leave smaller errors than their finest patch does
alone, at less than half of its tokens, where errors of one grid add up.

At a look, a step at patch p has the calibrated error e(p), and with usual errors r a level q of
patches P would have made e(p) · mean of r(P) / r(p). The coarsest level within the tolerance is
taken until the next look; one that is coarser than before must be within `coarsen` of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from overtone.domain import is_int, per_axis
from overtone.errors import PatchError
from overtone.rollout.adaptive import (
    moved,
    read_words,
    require_several,
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
        tolerance: error of one step, VRMSE, mean over fields.
        every: steps from one look to the next; at least as many as there are patches.
        per_sample: whether each sample has patches of its own, or all those of the worst one.
        shift: as for `Adaptive`.
        coarsen: share of the tolerance that a coarser level must keep.
    """

    patches: tuple[Patch, ...] | None = None
    tolerance: float = 0.02
    every: int = 10
    per_sample: bool = True
    shift: bool | Shifted = False
    coarsen: float = 0.7
    _task: Task | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < math.inf or not 0 < self.coarsen <= 1:
            raise PatchError(
                f"tolerance is {self.tolerance!r} and coarsen {self.coarsen!r}; expected numbers "
                "above 0, the second at most 1"
            )
        if not is_int(self.every) or self.every < 1:
            raise PatchError(f"every is {self.every!r}; expected a whole number, at least 1")

    def __str__(self) -> str:
        parts = ["sparing", f"{self.tolerance:g}"]
        parts += [] if self.patches is None else [write_patches(self.patches)]
        parts += [] if self.every == 10 else [f"every={self.every}"]
        parts += [] if self.per_sample else ["batch"]
        return ":".join(parts) + write_shift(self.shift)

    def on(self, task: Task) -> Sparing:
        """The same, for a rollout: of patches that the model knows, from fine to coarse."""
        patches = ordered(task.patches if self.patches is None else self.patches, task.domain.ndim)
        require_several(patches)
        if self.every < len(patches):
            raise PatchError(
                f"every is {self.every} and there are {len(patches)} patches; a look must come "
                f"after all of them, so give every={len(patches)} or more"
            )
        return replace(self, patches=patches, _task=task)

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

    def _level(self, record: Record) -> int:
        if not record:
            return 0
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
        for level in reversed(range(1, len(patches))):
            expected = unit * sum(usual[level:]) / len(usual[level:])
            limit = self.tolerance * (self.coarsen if level > before else 1.0)
            if expected <= limit:
                return level
        return 0

    def _ready(self) -> tuple[Task, tuple[Patch, ...]]:
        if self._task is None or self.patches is None:
            raise PatchError(f"'{self}' was asked without a rollout; call `on` with a Task first")
        return self._task, self.patches


def read_sparing(body: str, shift: str) -> Sparing:
    """Read `sparing:TOLERANCE[:PATCHES][:every=STEPS][:batch]`.

    Args:
        body: up to the shift.
        shift: from `+shift` on; empty for none.
    """
    return Sparing(**read_words(body, shift, "every", "sparing:0.02"))
