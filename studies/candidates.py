"""Controllers that were tried and did not stay: what `python -m studies assess --tried` compares.

All look now and then, as `Sparing` does, and differ in what they make of the look. `signals` asks
before any controller: which cheap number tells the trajectories that finer patches help?
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from overtone.domain import per_axis
from overtone.metrics import vrmse
from overtone.models.base import Model
from overtone.rollout import Rule, Sparing, rollout
from overtone.rollout.adaptive import moved, usual_error
from overtone.rollout.controllers import Record
from overtone.schedules import Choice, Constant, Patch
from studies.control import Set
from studies.instrument import correlation


@dataclass(frozen=True)
class Accumulated(Sparing):
    """Goes by the error so far: a step may add a share of what all steps before have added.

    Early, where little is wrong, that asks for fine steps; late, what a coarse one adds is lost in
    what is there.

    Args:
        share: of the accumulated error.
        finest: whether the finest patch alone is a level, before the cycles.
    """

    share: float = 0.3
    finest: bool = False

    def __str__(self) -> str:
        return f"accumulated:{self.share:g}{':finest' * self.finest}+shift"

    def __call__(self, record: Record) -> Choice:
        """The next patch of the level that the error so far asks for."""
        task, _ = self._ready()
        cycle = self._chosen(record)
        patch = cycle[len(record) % len(cycle)]
        return Choice(patch, moved(self.shift, patch, record, task.domain.ndim))

    def _chosen(self, record: Record) -> Sequence[Patch]:
        task, patches = self._ready()
        levels = [patches[:1]] * self.finest + [patches[start:] for start in range(len(patches))]
        if not record:
            return levels[0]
        sizes = [per_axis(patch, task.domain.ndim, "patch") for patch in patches]
        look = (len(record) - 1) // self.every * self.every
        place = sizes.index(per_axis(record[look].choice.patch, task.domain.ndim, "patch"))
        usual = {patch: usual_error(task, patch) for patch in patches}
        unit = record[look].error / usual[patches[place]]
        so_far = math.sqrt(sum(made.error**2 for made in record[: look + 1]))
        assert self.tolerance is not None
        limit = max(self.tolerance, self.share * so_far)
        for level in reversed(levels):
            if unit * sum(usual[patch] for patch in level) / len(level) <= limit:
                return level
        return levels[0]


@dataclass(frozen=True)
class Contrary(Sparing):
    """Spends on trajectories that disagree least, as `Sparing` does on those that disagree most.

    On flows of a low Reynolds number, which training never saw, errors are largest where patches
    disagree least.
    """

    def __str__(self) -> str:
        return "contrary+shift"

    def _level(self, record: Record) -> int:
        _, patches = self._ready()
        if not record:
            return 0
        return len(patches) - 1 - super()._level(record)


CANDIDATES: Mapping[str, Rule | str] = {
    "accumulated": Accumulated(shift=True),
    "accumulated finest": Accumulated(shift=True, finest=True),
    "contrary": Contrary(shift=True),
    "sparing every 5": "sparing:every=5+shift",
    "sparing every 20": "sparing:every=20+shift",
}
"""What is tried beside the rules of every comparison."""


def signals(
    model: Model, own: Set, coarse: Sequence[float], fine: Sequence[float]
) -> dict[str, float]:
    """How well cheap numbers of a first step tell what fine patches gain over a whole rollout.

    Args:
        model: that was rolled out.
        own: N trajectories.
        coarse, fine: errors of each over all steps, of a coarse schedule and of a fine one.

    Returns:
        Signal -> correlation over trajectories of its logarithm with that of coarse over fine.
    """
    first = Constant(model.patches[0])
    frames = rollout(model, own.window, steps=1, schedule=first, estimate="patch")
    next(frames)
    assert frames.estimate is not None
    fields, ndim = own.window.fields, own.window.domain.ndim
    apart = frames.estimate.local.log()
    change = vrmse(fields[:, -2], fields[:, -1], ndim=ndim).double().mean(dim=1).log()
    gain = torch.tensor([*coarse]).log() - torch.tensor([*fine]).log()
    found = {"disagreement": apart, "own change": change,
             "disagreement / own change": apart - change}  # fmt: skip
    return {name: correlation(signal, gain) for name, signal in found.items()}
