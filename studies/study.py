"""The parts of a study: what is trained, and what is compared with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from overtone.train.config import RunConfig
from overtone.train.recipes import recipe
from overtone.train.settings import change

QUICK_TRAINING = {
    "data.generate.trajectories": 8,
    "valid.windows": 4,
    "valid.rollouts": 2,
    "valid.rollout_steps": 4,
}
"""Changes for a smoke run: little data and short validations."""
QUICK_UPDATES = 8
"""Updates of each patch in a smoke run."""


@dataclass(frozen=True)
class Training:
    """One model of a study.

    Attributes:
        name: its run's folder; one name, one configuration, in all studies.
        recipe: what to start from.
        changes: dotted settings.
        form_of: name of the training whose trials choose its form (see `tune`), often its own; None
            for the recipe's.
        label: its name in tables; models that differ in their seed alone share one.
        packaged: whether it is the model of that name that comes with the package, trained before.
    """

    name: str
    recipe: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    form_of: str | None = None
    label: str = ""
    packaged: bool = False

    def config(self) -> RunConfig:
        """All of its settings."""
        return change(recipe(self.recipe), {"log.tensorboard": False, **self.changes})

    def quick(self) -> Training:
        """The same with hardly any training, however its length was given."""
        updates = {"train.updates_per_patch": QUICK_UPDATES}
        if "train.updates" in self.changes:
            updates["train.updates"] = QUICK_UPDATES
        return self.renamed(self.name, {**QUICK_TRAINING, **updates})

    def renamed(self, name: str, changes: Mapping[str, Any]) -> Training:
        """The same under another name and with further changes."""
        return replace(self, name=name, changes={**self.changes, **changes})


@dataclass(frozen=True)
class Untrained:
    """A model without weights.

    Attributes:
        label: its name in tables.
        baseline: as in `overtone.baselines.BASELINES`.
        options: of the baseline.
        context: frames that it looks back on.
    """

    label: str
    baseline: str
    options: Mapping[str, Any] = field(default_factory=dict)
    context: int = 1


@dataclass(frozen=True)
class Comparison:
    """One evaluation.

    Attributes:
        name: of its results.
        models: names of trainings.
        schedules: of the rollouts; each model follows those that it can.
        steps: their length.
        start: first frame of their context.
        untrained: further models.
        data: dotted settings of other data than the models were trained on.
        split: what it is evaluated on; `"valid"` for what decides on a default.
        allow_untrained: whether models also follow schedules of patches that were left out of
            their training.
        planned: a schedule whose tokens `overtone plan` may spend on the first model, on the
            validation split; its plan is followed beside the schedules.
        curves: what the study's archive keeps of its rollouts beside totals: fields of `Run` and
            `Harmonics` that are long, because they have a value for each step or wavenumber.
    """

    name: str
    models: tuple[str, ...]
    schedules: tuple[str, ...] = ()
    steps: int = 40
    start: int = 0
    untrained: tuple[Untrained, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    split: str = "test"
    allow_untrained: bool = False
    planned: str = ""
    curves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """A question.

    Attributes:
        name: of the command.
        about: the question, in a line.
        trainings: its models, the longest first, so that cores are busy to the end.
        comparisons: its evaluations.
    """

    name: str
    about: str
    trainings: tuple[Training, ...]
    comparisons: tuple[Comparison, ...]

    def quick(self) -> Study:
        """The same as a smoke run."""
        return replace(
            self,
            trainings=tuple(training.quick() for training in self.trainings),
            comparisons=tuple(replace(c, steps=min(c.steps, 12)) for c in self.comparisons),
        )
