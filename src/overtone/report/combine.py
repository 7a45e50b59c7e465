"""Several evaluations of the same data side by side, as one.

They must have predicted the same frames: of the same files and trajectories, from the same start,
for as many steps. Contexts of different lengths begin the predictions elsewhere, which the results
do not say; persistence knows, whose errors are those of the frames alone. What has the same name
in two evaluations is told apart by the names of the evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import torch

from overtone.errors import DataError
from overtone.evaluate.results import ModelResult, Results
from overtone.evaluate.samples import Samples

CLOSE = 1e-3
"""Relative difference of two errors of persistence that rounding explains."""


@dataclass(frozen=True)
class Part:
    """One evaluation.

    Attributes:
        name: by which it is told from the others.
        results: its numbers.
        samples: its frames, if it has any.
    """

    name: str
    results: Results
    samples: Samples | None = None


def side_by_side(parts: Sequence[Part]) -> tuple[Results, Samples | None]:
    """One evaluation with the models of all; a single one is what it is.

    Args:
        parts: evaluations of the same data, with different names.

    Returns:
        The numbers of all models, and the frames of those evaluations that have some.
    """
    first, *others = parts
    if not others:
        return first.results, first.samples
    for one, other in combinations(parts, 2):
        if one.name == other.name:
            raise DataError(f"two evaluations are called '{one.name}'; give them as NAME=FOLDER")
    for part in others:
        _require_same(first, part)
    names = _names(parts)
    models = [
        model.model_copy(update={"name": names[part.name, model.name]})
        for part in parts
        for model in part.results.models
    ]
    changes = {
        "command": " && ".join(dict.fromkeys(p.results.command for p in parts)),
        "machine": _machine(parts),
        "models": tuple(models),
        "yardsticks": next((p.results.yardsticks for p in parts if p.results.yardsticks), ()),
    }
    return first.results.model_copy(update=changes), _samples(parts, names)


def part_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of paths by which they can be told apart."""
    paths = [folder.resolve().parts for folder in folders]
    for length in range(1, max(map(len, paths)) + 1):
        ends = ["/".join(parts[-length:]) for parts in paths]
        if len({*ends}) == len({*paths}):
            return ends
    return [str(folder) for folder in folders]


def _require_same(one: Part, other: Part) -> None:
    """Refuse evaluations whose numbers can't stand in one table, and say in what they differ."""
    a, b = one.results, other.results
    before, now = _facts(a), _facts(b)
    differ = [
        f"{name}: {_short(before.get(name))} and {_short(now.get(name))}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if differ:
        raise DataError(
            f"'{one.name}' and '{other.name}' are not evaluations of the same data and can't stand "
            f"side by side ({'; '.join(differ)}). Evaluate all models on the same data with the "
            "same --split, --start, --trajectories and --steps"
        )
    if not _same_frames(a.yardsticks, b.yardsticks) or not _same_truth(one, other):
        raise DataError(
            f"'{one.name}' and '{other.name}' predict other frames of the same data: their longest "
            "contexts differ. Evaluate the models together, or choose --start for each so that "
            "start + longest context is the same"
        )
    if not _same_windows(a.yardsticks, b.yardsticks):
        raise DataError(
            f"the next-step errors of '{one.name}' and '{other.name}' are of other windows of the "
            "same data; evaluate both with the same --windows"
        )


def _facts(results: Results) -> dict[str, object]:
    """What must be equal, by the names that a message has for it."""
    data = results.data
    return {
        "data": data.name, "split": data.split, "trajectories": data.trajectories,
        "start": data.start, "steps": results.steps, **data.domain,
        "fingerprint": data.fingerprint,
    }  # fmt: skip


def _short(value: object) -> str:
    said = str(value)
    return said if len(said) <= 60 else f"{said[:12]}…"


def _same_frames(one: Sequence[ModelResult], other: Sequence[ModelResult]) -> bool:
    """Whether yardsticks, where both evaluations have them, err alike at every step."""
    known = {model.name: model for model in other}
    for model in one:
        if model.name in known:
            curves = [
                [e.value for run in m.runs for e in run.vrmse] for m in (model, known[model.name])
            ]
            if not _alike(*curves):
                return False
    return True


def _same_windows(one: Sequence[ModelResult], other: Sequence[ModelResult]) -> bool:
    known = {model.name: model for model in other}
    pairs = [(model, known[model.name]) for model in one if model.name in known]
    return all(
        _alike(*([step.vrmse.value for step in m.next_step] for m in pair)) for pair in pairs
    )


def _alike(one: Sequence[float], other: Sequence[float]) -> bool:
    if len(one) != len(other):
        return False
    return all(
        math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(one, other, strict=True)
    )


def _same_truth(one: Part, other: Part) -> bool:
    """Whether the true frames, where both evaluations have them, are the same."""
    a, b = one.samples, other.samples
    if a is None or b is None:
        return True
    same = a.steps == b.steps and a.truth.shape == b.truth.shape
    return same and torch.allclose(a.truth, b.truth, rtol=1e-5, atol=1e-6, equal_nan=True)


def _names(parts: Sequence[Part]) -> dict[tuple[str, str], str]:
    """(evaluation, model) -> the model's name here: its own where no other evaluation has it."""
    owners: dict[str, set[str]] = {}
    for part in parts:
        for model in part.results.models:
            owners.setdefault(model.name, set()).add(part.name)
    wanted = {
        (part, name): f"{name} ({part})" if len(own) > 1 else name
        for name, own in owners.items()
        for part in own
    }
    if len({*wanted.values()}) < len(wanted):
        raise DataError(
            f"the models' names {', '.join(sorted(owners))} can't be told apart by those of the "
            "evaluations; give the evaluations as NAME=FOLDER"
        )
    return wanted


def _machine(parts: Sequence[Part]) -> dict[str, str]:
    """The machine, if it was the same for all; else each one's under its evaluation's name."""
    first, *others = (part.results.machine for part in parts)
    if all(machine == first for machine in others):
        return dict(first)
    return {
        f"{part.name}, {name}": value
        for part in parts
        for name, value in part.results.machine.items()
    }


def _samples(parts: Sequence[Part], names: Mapping[tuple[str, str], str]) -> Samples | None:
    there = [(part, part.samples) for part in parts if part.samples is not None]
    if not there:
        return None
    predictions = {
        (names.get((part.name, model), model), schedule): frames
        for part, samples in there
        for (model, schedule), frames in samples.predictions.items()
    }
    first = there[0][1]
    return Samples(first.domain, first.steps, first.truth, predictions)
