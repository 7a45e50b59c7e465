"""What is evaluated: a model, how it was trained, and which schedules it can follow."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from torch import nn

from overtone.baselines.base import Baseline
from overtone.baselines.untrained import Yardstick
from overtone.domain import Domain, is_int, per_axis
from overtone.errors import DomainError, OvertoneError, PatchError
from overtone.files import typed
from overtone.grid import PatchGrid
from overtone.models.base import Model
from overtone.models.flops import call_flops
from overtone.models.storage import load_with_config, locate_model
from overtone.rollout import (
    Adaptive,
    Rule,
    Sparing,
    Stepper,
    parse_rule,
    plan_objection,
)
from overtone.rollout.loop import task_of
from overtone.schedules import (
    Constant,
    Cycle,
    Patch,
    Schedule,
    Shifted,
    require_countable,
)

Note = Callable[[str], None]
"""Takes a sentence for the user."""


class Evaluable(Stepper, Protocol):
    """A stepper that says what it was built for."""

    @property
    def domain(self) -> Domain:
        """What it was built for; its fields are read from the data."""
        ...

    @property
    def patches(self) -> tuple[Patch, ...]:
        """The patches it knows."""
        ...

    @property
    def num_parameters(self) -> int:
        """Number of trainable numbers."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A model to evaluate.

    Attributes:
        name: for tables and legends. Models that differ in their seed alone may share one.
        model: what predicts.
        training: how it was trained, plain data.
        allow_untrained: whether it may be asked for patches that it was not trained for.
    """

    name: str
    model: Evaluable
    training: Mapping[str, Any] = field(default_factory=dict[str, Any])
    allow_untrained: bool = False
    _flops: dict[tuple[Domain, Patch], int] = field(
        default_factory=dict[tuple[Domain, Patch], int], init=False, repr=False, compare=False
    )

    @property
    def seed(self) -> int | None:
        """Seed of its training, where known."""
        seed = self.training.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def config(self) -> dict[str, Any]:
        """What it was built from, with its kind."""
        if isinstance(self.model, Model):
            return {"kind": self.model.kind, **self.model.config}
        if isinstance(self.model, Yardstick):
            return {"kind": Baseline.kind, "name": self.model.name}
        return {"kind": type(self.model).__name__}

    def trained_on(self, what: str) -> Any:
        """How data was read in its training: `"stride"` or `"coarsen"`; 1 where unknown."""
        data = self.training.get("data")
        mapped = isinstance(data, Mapping)
        value: Any = cast("Mapping[str, Any]", data).get(what, 1) if mapped else 1
        several = isinstance(value, list | tuple)
        entries = tuple(cast("Sequence[Any]", value)) if several else (value,)
        found = entries if several else value
        if not all(map(is_int, entries)):
            raise OvertoneError(
                f"the folder of model '{self.name}' says that {what} was {found!r} in its "
                f"training; expected an int, or one for each axis: give --{what}"
            )
        return found

    @property
    def patched(self) -> bool:
        """Whether schedules mean anything to it."""
        return not isinstance(self.model, Model) or self.model.patched

    def sizes(self, patch: Patch) -> tuple[int, ...]:
        """A patch with one int for each axis of the model."""
        return per_axis(patch, self.model.domain.ndim, "patch")

    def knows(self, patch: Patch) -> bool:
        """Whether the model was trained for a patch."""
        return self.sizes(patch) in {self.sizes(known) for known in self.model.patches}

    def objection(self, patches: Sequence[Patch], domain: Domain) -> str | None:
        """Why the model can't follow a schedule of some patches on a domain; None if it can."""
        unknown = [patch for patch in patches if not self.knows(patch)]
        if unknown and not (self.allow_untrained and isinstance(self.model, Model)):
            return f"which does not know patch {_listed(unknown)}"
        try:
            for patch in unknown:
                self.flops(domain, patch)  # calls the model, without computing anything
        except PatchError as error:
            return f"for which {error}"
        return None

    def patches_of(self, rule: Rule, steps: int) -> tuple[Patch, ...]:
        """The patches that a rollout uses, or may use, each once."""
        if isinstance(rule, Schedule):
            return used_patches(rule, steps)
        own = rule.patches if isinstance(rule, (Adaptive, Sparing)) else None
        return own or self.model.patches

    def refusal(self, rule: Rule, domain: Domain, steps: int) -> str | None:
        """Why a controller can't steer the model; None if it can, and for schedules."""
        if isinstance(rule, Schedule):
            return None
        try:
            rule.on(task_of(self.model, domain, steps))
        except PatchError as error:
            return str(error)
        return None

    def prepare(self, device: str) -> None:
        """Put the model on a device, in evaluation mode."""
        if not isinstance(self.model, nn.Module):
            return
        try:
            self.model.to(device).eval()
        except (RuntimeError, AssertionError) as error:
            raise OvertoneError(
                f"device {device!r} can't be used here: {error}. `overtone info` lists what there "
                "is"
            ) from error

    def twin(self) -> Candidate:
        """The same with a model of its own, which another thread may use."""
        other = replace(self, model=copy.deepcopy(self.model))
        other._flops.update(self._flops)
        return other

    def flops(self, domain: Domain, patch: Patch) -> int:
        """FLOPs of one prediction of one sample; 0 for what is no network, such as a solver.

        They are counted for a grid that is not shifted, once for each patch.
        """
        if not isinstance(self.model, nn.Module) or not any(True for _ in self.model.parameters()):
            return 0
        if (domain, patch) not in self._flops:
            options = {} if self.knows(patch) else {"allow_untrained": self.allow_untrained}
            count = call_flops(self.model, domain, patch, frames=self.model.context, **options)
            self._flops[domain, patch] = count
        return self._flops[domain, patch]


def load_candidate(
    path: str | Path,
    name: str | None = None,
    *,
    allow_untrained: bool = False,
    note: Note | None = None,
) -> Candidate:
    """Read a model and what its folder says about its training.

    Args:
        path: as for `load_model`.
        name: what to call it; the folder's name by default, of a run's `best` the run's.
        allow_untrained: whether it may be asked for patches that it was not trained for.
        note: told what the path or name was taken for.
    """
    located = locate_model(path)
    if note is not None:
        note(f"model {path} is {located.said}")
    model, config = load_with_config(located.folder)
    full = Path(path).resolve()
    own = full.parent.name if full.name in ("best", "last") else full.name
    training = config.get("training")
    about = dict(cast("Mapping[str, Any]", training)) if isinstance(training, Mapping) else {}
    return Candidate(name or own, model, about | _course(located.folder), allow_untrained)


def _course(folder: Path) -> dict[str, Any]:
    """How the validations of a training went, and how to go on with it, where that is known."""
    from overtone.train.journal import METRICS, history, longer_run

    run = folder.parent if folder.name in ("best", "last") else folder
    if not (run / METRICS).is_file():
        return {}
    found: dict[str, Any] = {"history": history(run / METRICS)}
    command = longer_run(Path(typed(run)))
    return found | ({"longer": command} if command else {})


def as_candidates(
    models: Evaluable | Mapping[str, Evaluable] | Sequence[Candidate],
) -> tuple[Candidate, ...]:
    """Candidates that can be told apart and predict the same fields."""
    if isinstance(models, Mapping):
        candidates = tuple(Candidate(name, model) for name, model in models.items())
    elif isinstance(models, Sequence):
        candidates = tuple(models)
    else:
        candidates = (Candidate("model", models),)
    if not candidates:
        raise OvertoneError("no models were given; expected at least one")
    seen = [(candidate.name, candidate.seed) for candidate in candidates]
    for name, seed in seen:
        if seen.count((name, seed)) > 1:
            raise OvertoneError(
                f"two models are called '{name}' and do not differ in the seed of their training; "
                "give them different names"
            )
    first = candidates[0]
    for other in candidates[1:]:
        if other.model.domain.fields != first.model.domain.fields:
            raise DomainError(
                f"model '{other.name}' predicts the fields {other.model.domain.fields}, "
                f"'{first.name}' {first.model.domain.fields}; evaluate them apart"
            )
    return candidates


def choose_schedules(
    candidate: Candidate,
    wanted: Sequence[Rule | str] | None,
    domain: Domain,
    steps: int,
    note: Note,
) -> tuple[Rule, ...]:
    """The schedules and controllers that a model can follow, of those that are wanted.

    Args:
        candidate: the model.
        wanted: schedules, controllers or their string forms; None for the usual ones: each patch
            alone and, with several patches, their cycle from fine to coarse, with and without
            shifts. A model without patches is rolled out once, whatever is wanted.
        domain: what the rollouts lie on.
        steps: their length.
        note: told about every schedule that is left out, and of patches it was not trained for.

    Raises:
        PatchError: nothing is left, or a schedule is shorter than the rollout.
    """
    if wanted is None or not candidate.patched:
        chosen: list[Rule] = [*usual_schedules(candidate)]
    else:
        chosen = [parse_rule(s) for s in wanted]
    chosen = list({str(schedule): schedule for schedule in chosen}.values())
    kept: list[Rule] = []
    for schedule in chosen:
        if reason := plan_objection(schedule, candidate.model, domain):
            if len(chosen) == 1:
                raise PatchError(reason)
            note(f"schedule {schedule} is left out for model '{candidate.name}': {reason}")
            continue
        patches = candidate.patches_of(schedule, steps)
        if reason := candidate.objection(patches, domain):
            note(f"schedule {schedule} is left out for model '{candidate.name}', {reason}")
            continue
        if reason := candidate.refusal(schedule, domain, steps):
            note(f"schedule {schedule} is left out for model '{candidate.name}': {reason}")
            continue
        for patch in patches:
            PatchGrid.lay(domain, patch)  # refuses what the grid can't hold
        kept.append(schedule)
    asked = dict.fromkeys(patch for s in kept for patch in candidate.patches_of(s, steps))
    if untrained := [patch for patch in asked if not candidate.knows(patch)]:
        note(f"model '{candidate.name}' was not trained for patch {_listed(untrained)}")
    if not kept:
        raise PatchError(
            f"model '{candidate.name}' knows patch {_listed(candidate.model.patches)} and can "
            f"follow none of the schedules {', '.join(map(str, chosen))}; give one of its patches"
        )
    return tuple(kept)


def _listed(patches: Sequence[Patch]) -> str:
    return ", ".join(map(str, patches))


def usual_schedules(candidate: Candidate) -> list[Schedule]:
    """Each patch alone, and the cycle of all from fine to coarse, with and without shifts."""
    order = sorted(candidate.model.patches, key=lambda p: math.prod(candidate.sizes(p)))
    schedules: list[Schedule] = [Constant(patch) for patch in order]
    if len(order) > 1:
        cycle = Cycle(*order)
        schedules += [cycle, Shifted(cycle)]
    return schedules


def used_patches(schedule: Schedule, steps: int) -> tuple[Patch, ...]:
    """The patches of a rollout, each once, in order of their first use."""
    countable = range(require_countable(steps))
    return tuple(dict.fromkeys(schedule(step).patch for step in countable))
