"""Rivals at equal minutes: everyone gets the same processor time, data, context and choice of form.

A model's form, which is its learning rate and whether the end of its training is unrolled, is
chosen on the validation split by trainings of a quarter of the shortest budget (`tune`); longer
budgets take it over. Models with patches are trained with shifts in half of their updates, the
flexible ones with coarse patches more often, which are cheaper (`tried`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from overtone.train.recipes import DEVELOPED, recipe
from studies.study import Comparison, Study, Training, Untrained

BUDGETS = (2, 12)
"""Minutes of processor time."""
CONTEXT = 8


@dataclass(frozen=True)
class System:
    """What differs between the systems.

    Attributes:
        recipe: whose data and sizes are used.
        start: first frame of a rollout's context.
    """

    recipe: str
    start: int


SYSTEMS = (
    System("shear-flow-mini", DEVELOPED - CONTEXT),
    System("rayleigh-benard-mini", 12),
    System("turbulent-radiative-layer-2d-mini", 12),
    System("kuramoto-sivashinsky-mini", 40),
    System("supernova-explosion-mini", 4),
)
BASELINES = ("fno", "tfno", "ffno", "unet", "cnext_unet", "sinenet")
NOT_IN_1D = ("sinenet",)
OFTEN = {"train.patch_weights": [1, 1, 2]}


def _fixed(patch: int) -> dict[str, Any]:
    return {"model.tokenizer": "fixed", "model.patches": [patch]}


PATCHED: dict[str, dict[str, Any]] = {
    "csm": {"model.tokenizer": "csm", **OFTEN},
    "ckm": {"model.tokenizer": "ckm", **OFTEN},
    "csm, attending": {"model.tokenizer": "csm", "model.time": "attend", "model.context": 4},
    "ckm, attending": {"model.tokenizer": "ckm", "model.time": "attend", "model.context": 4},
    **{f"fixed{patch}": _fixed(patch) for patch in (4, 8, 16)},
    "afno fixed8": {"model.name": "afno", **_fixed(8)},
    "afno ckm": {"model.name": "afno", "model.tokenizer": "ckm", **OFTEN},
}
"""Models with patches, each with one budget however many it has."""
SCHEDULES = ("4", "8", "16", "4-8-16", "4+shift", "8+shift", "16+shift", "4-8-16+shift")


BEST = {"shear-flow-mini": ("sinenet", "tfno")}
"""Recipe -> the rivals of other kinds that were best at two minutes, over 10 and over all steps."""
SEEDS = (0, 1, 2)


def rivals(system: System, minutes: int) -> Study:
    """The study of one system and budget."""
    every = _models(system)
    own = tuple(_training(system, label, changes, minutes) for label, changes in every.items())
    # Whose trials choose the forms; they are not trained themselves unless they are compared.
    shortest = tuple(_training(system, label, made, BUDGETS[0]) for label, made in every.items())
    trainings = own if minutes == BUDGETS[0] else own + shortest
    name = f"{system.recipe}-rivals-{minutes}"
    about = f"everyone with {minutes} minutes of one core, on {system.recipe.removesuffix('-mini')}"
    return Study(name, about, trainings, (_comparison(name, system, own),))


def best_rivals(system: System) -> Study:
    """The flexible model, the fixed one of its finest patch and the best rivals; three seeds."""
    every, minutes = _models(system), BUDGETS[0]
    own = tuple(
        _training(system, label, every[label], minutes, seed)
        for label in ("csm", "fixed4", *BEST[system.recipe])
        for seed in SEEDS
    )
    name = f"{system.recipe}-best-{minutes}"
    about = f"ours and the two best rivals with {minutes} minutes of one core, three seeds, on "
    about += system.recipe.removesuffix("-mini")
    return Study(name, about, own, (_comparison(name, system, own),))


def _models(system: System) -> dict[str, dict[str, Any]]:
    """Label -> what is special about it."""
    made = recipe(system.recipe).data.generate
    assert made is not None
    ndim = 1 if made.grid is not None and len(made.grid) == 1 else 2
    plain = {name: {"model.name": name, "model.size": "mini"} for name in BASELINES
             if ndim > 1 or name not in NOT_IN_1D}  # fmt: skip
    return {**PATCHED, **plain}


def _comparison(name: str, system: System, own: tuple[Training, ...]) -> Comparison:
    members = tuple(training.name for training in own)
    untrained = (Untrained("persistence", "persistence"),)
    return Comparison(name, members, SCHEDULES, start=system.start, untrained=untrained)


def _training(
    system: System, label: str, changes: Mapping[str, Any], minutes: int, seed: int = 0
) -> Training:
    budget = {
        "model.context": CONTEXT,
        "train.updates": 1_000_000,
        "train.max_cpu_minutes": float(minutes),
        "train.shift": 0.5,
        "valid.rollout_steps": 40,
        "valid.every": 1_000_000,
        "save.every": 1_000_000,
        "data.workers": 0,
    }
    if seed:
        budget["train.seed"] = seed
    start = f"{system.recipe}-{label.replace(', ', '-').replace(' ', '-')}-minutes"
    form_of = f"{start}-{BUDGETS[0]}"
    name = f"{start}-{minutes}" + (f"-seed{seed}" if seed else "")
    return Training(name, system.recipe, {**budget, **changes}, form_of, label)
