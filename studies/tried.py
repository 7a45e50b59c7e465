"""What was tried to make folded models better: short trainings, judged on the validation split.

Every row is one training of the same minutes of a processor, with one thing changed. What pays is
what the recipes do; the page of results shows the whole table, also what did not pay.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from studies.study import Comparison, Study, Training
from studies.tune import UNROLLED

MINUTES = 2.0
BUDGET: dict[str, Any] = {
    "train.updates": 1_000_000,
    "train.max_cpu_minutes": MINUTES,
    "valid.rollout_steps": 40,
    "valid.every": 1_000_000,
    "save.every": 1_000_000,
    "data.workers": 0,
}
ADAMW: dict[str, Any] = {
    "optimizer.kind": "adamw",
    "optimizer.lr": 4e-3,
    "optimizer.weight_decay": 1e-4,
}
BASE: dict[str, Any] = {
    "model.time": "fold",
    "model.context": 8,
    "model.skip": False,
    "model.unit": "pace",
    "model.scale": "context",
    **ADAMW,
    "train.shift": 0.5,
    "train.unroll": 1,
    "train.unroll_from": 0.0,
    "train.patch_weights": None,
    **BUDGET,
}
"""Where the changes start from."""
FNO = {"model.name": "fno", "model.size": "mini"}
STABILITY: dict[str, dict[str, Any]] = {
    "as it was": {},
    "unit: the context's change": {"model.unit": "context"},
    "unrolled": UNROLLED,
    "details between stages": {"model.skip": True},
    "details between stages, unrolled": {"model.skip": True, **UNROLLED},
    "refined by convolutions": {"model.refine": 32},
    "refined by convolutions, unrolled": {"model.refine": 32, **UNROLLED},
    "fno": FNO,
    "fno, unrolled": {**FNO, **UNROLLED},
}
"""What is changed -> settings: for each system, as rollouts depend on it."""
LEARNING: dict[str, dict[str, Any]] = {
    "attending, 4 frames": {"model.time": "attend", "model.context": 4},
    "4 frames": {"model.context": 4},
    "12 frames": {"model.context": 12},
    "rate 0.008": {"optimizer.lr": 8e-3},
    "3 blocks": {"model.blocks": 3},
    "coarse patches more often": {"train.patch_weights": [1, 1, 2]},
    "no shifts": {"train.shift": 0.0},
    "all shifted": {"train.shift": 1.0},
}
"""How fast a model learns: for shear flow alone."""
OF_EMULATORS = ("model.time", "model.skip")
SCHEDULES = ("4", "16", "4-8-16", "4+shift", "16+shift", "4-8-16+shift")
STARTS = {"shear-flow-mini": (12, 24), "rayleigh-benard-mini": (12, 32)}
"""Recipe -> first frames of the longest context."""
TRIED = {"shear-flow-mini": {**STABILITY, **LEARNING}, "rayleigh-benard-mini": STABILITY}
"""Recipe -> what is changed -> settings."""


FURTHER: dict[str, Any] = {
    "data.generate.steps": 240,
    "data.generate.trajectories": 16,
    "data.generate.seed": 1,
    "data.generate.splits": [0.25, 0.25, 0.5],
}
"""Data from unseen starts, for rollouts five times as long as others."""
SCALES: dict[str, dict[str, Any]] = {
    "own scale": {**ADAMW, "model.scale": "context"},
    "typical scale": {**ADAMW, "model.scale": "typical"},
}
MUON: dict[str, Any] = {"optimizer.kind": "muon", "optimizer.lr": 8e-3}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "Muon": {**MUON, "optimizer.weight_decay": 1e-4},
    "Muon, decay 0.1": {**MUON, "optimizer.weight_decay": 0.1},
}
SEEDS = (0, 1, 2)


def scales(recipe: str) -> Study:
    """What a typical scale of each field does to short and to long rollouts; the recipe's form."""
    about = "windows by their own scale, and by the data's, too, on the validation split of "
    return _near_and_far(f"{recipe}-scale", about, recipe, _seeds(recipe, "scale", SCALES))


def optimizers(recipe: str) -> Study:
    """What orthogonal steps do in the recipe's form, over short and long rollouts."""
    before = _seeds(recipe, "scale", {"typical scale": SCALES["typical scale"]})
    own = tuple(replace(training, label="AdamW") for training in before)
    own += _seeds(recipe, "optimizer", OPTIMIZERS)
    about = "steps of AdamW and of Muon, on the validation split of "
    return _near_and_far(f"{recipe}-optimizer", about, recipe, own)


def _seeds(recipe: str, what: str, choices: dict[str, dict[str, Any]]) -> tuple[Training, ...]:
    """Trainings of what deserves more than one seed."""
    return tuple(
        Training(f"{recipe}-{what}-{_slug(label)}-{seed}", recipe,
                 {**BUDGET, **changes, "train.seed": seed}, label=label)
        for label, changes in choices.items() for seed in SEEDS
    )  # fmt: skip


def _near_and_far(name: str, about: str, recipe: str, own: tuple[Training, ...]) -> Study:
    """Rollouts of 40 steps, and of 200 steps from unseen starts."""
    members = tuple(training.name for training in own)
    start = STARTS[recipe][0]
    near = Comparison(name, members, SCHEDULES, start=start, split="valid", curves=("vrmse",))
    far = Comparison(
        f"{name}-far", members, ("4-8-16", "4-8-16+shift"), start=start, split="valid", steps=200,
        data=FURTHER, curves=("vrmse", "energy"),
    )  # fmt: skip
    return Study(name, about + recipe.removesuffix("-mini"), own, (near, far))


def tried(recipe: str) -> Study:
    """The study of one system."""
    name = f"{recipe}-tried"
    own = tuple(
        Training(f"{name}-{_slug(label)}", recipe, _settings(changes), label=label)
        for label, changes in TRIED[recipe].items()
    )
    comparisons = tuple(
        Comparison(f"{name}-{start}", tuple(t.name for t in own), SCHEDULES, start=start,
                   split="valid")
        for start in STARTS[recipe]
    )  # fmt: skip
    about = "what was tried, one thing at a time, on the validation split of "
    return Study(name, about + recipe.removesuffix("-mini"), own, comparisons)


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label)


def _settings(changes: dict[str, Any]) -> dict[str, Any]:
    settings = {**BASE, **changes}
    if "model.name" in changes:
        return {key: value for key, value in settings.items() if key not in OF_EMULATORS}
    return settings
