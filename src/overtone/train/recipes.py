"""Named training configurations: functions that return a `RunConfig`.

Those of the paper are in `train.paper`. `DATASET-SIZE-fold` trains a model of the paper's size on
its data in our way: folded, by the data's pace, with shifts and short rollouts. `DATASET-mini` does
so with a tiny model on a built-in solver's data, in minutes to an hour on two cores. `mine` suits
any data (`for_data`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from overtone.errors import ConfigError, suggest
from overtone.train import paper
from overtone.train.config import (
    DataConfig,
    GenerateConfig,
    ModelConfig,
    RunConfig,
    SaveConfig,
    TrainConfig,
    ValidConfig,
)
from overtone.train.suit import KEPT, MINUTES, UNROLL_FROM, muon, suit, survey_folder

Recipe = Callable[[], RunConfig]

DEVELOPED = 36
"""Frame of `shear-flow-mini` at which the layers have rolled up: the first that is predicted."""
MINE = "mine"
"""The recipe for any data, which is chosen by it."""


@dataclass(frozen=True)
class Miniature:
    """Data of a `mini` recipe, beyond the defaults of the solver.

    Attributes:
        system: name of the built-in system.
        grid: cells to solve on.
        coarsen: of which so many are averaged into one along each axis.
        settings: physical parameters.
        trajectories, steps: how many, and frames of each.
        updates_per_patch: length of the training.
        patches: what the model is trained for.
        size: of the model.
        context: number of frames that it reads.
        unit: of the changes that it predicts.
        shift: share of the updates whose patch grid is shifted.
        unroll: steps of an update in the last two fifths of the budget.

    The last four were chosen on the validation splits of shear flow and Rayleigh-Benard.
    """

    system: str
    grid: tuple[int, ...] | None = None
    coarsen: int = 1
    settings: tuple[tuple[str, float], ...] = ()
    trajectories: int = 32
    steps: int = 60
    updates_per_patch: int = 2000
    patches: tuple[int, ...] = (4, 8, 16)
    size: str = "tiny"
    context: int = 8
    unit: Literal["pace", "context"] = "pace"
    shift: float = 0.5
    unroll: int = 4


MINIATURES = {
    "shear-flow": Miniature(
        "shear_flow", (128, 128), 2, (("reynolds", 5e3),), trajectories=48, steps=80
    ),
    "rayleigh-benard": Miniature(
        "rayleigh_benard",
        (128, 32),
        steps=100,
        trajectories=40,
        updates_per_patch=1000,
    ),
    "active-matter": Miniature("active_matter", (64, 64), steps=81, updates_per_patch=1000),
    "turbulent-radiative-layer-2d": Miniature(
        "turbulent_radiative_layer_2D", steps=101, updates_per_patch=1000
    ),
    "supernova-explosion": Miniature(
        "supernova_explosion", steps=59, trajectories=24, updates_per_patch=300, size="nano"
    ),
    "turbulence-gravity-cooling": Miniature(
        "turbulence_gravity_cooling", steps=50, trajectories=24, updates_per_patch=300, size="nano"
    ),
    "kolmogorov-flow": Miniature("kolmogorov_flow", patches=(3, 4, 5), steps=100),
    "gray-scott": Miniature("gray_scott", patches=(3, 4, 5), steps=100),
    "kuramoto-sivashinsky": Miniature(
        "kuramoto_sivashinsky", (128,), steps=200, updates_per_patch=500
    ),
}


def folded(name: str, dataset: str, size: str) -> RunConfig:
    """A folded model of the paper's size on its data, with its batch and number of updates.

    The form is that of `mini`; the learning rate was not tuned at these sizes.

    Args:
        name: of the recipe.
        dataset: a key of `paper.DATASETS`.
        size: of the model.
    """
    theirs = paper.emulator(name, dataset, size)
    return RunConfig(
        recipe=name,
        data=theirs.data,
        model=ModelConfig(name=theirs.model.name, size=size, context=8),
        optimizer=muon(2e-3),
        train=TrainConfig(
            batch=theirs.train.batch,
            updates_per_patch=theirs.train.updates_per_patch,
            shift=0.5,
            unroll=4,
            unroll_from=UNROLL_FROM,
        ),
        valid=theirs.valid,
        save=theirs.save,
    )


def mini(name: str, dataset: str) -> RunConfig:
    """A tiny model on generated data.

    Args:
        name: of the recipe.
        dataset: a key of `MINIATURES`.
    """
    m = MINIATURES[dataset]
    data = GenerateConfig(
        system=m.system,
        grid=m.grid,
        settings=dict(m.settings),
        trajectories=m.trajectories,
        steps=m.steps,
        splits=(0.625, 0.125, 0.25),
    )
    return RunConfig(
        recipe=name,
        data=DataConfig(generate=data, coarsen=m.coarsen, workers=1),
        model=ModelConfig(size=m.size, unit=m.unit, context=m.context, patches=m.patches),
        optimizer=muon(8e-3),
        train=TrainConfig(
            batch=4,
            updates_per_patch=m.updates_per_patch,
            shift=m.shift,
            unroll=m.unroll,
            unroll_from=UNROLL_FROM if m.unroll > 1 else 0.0,
        ),
        valid=ValidConfig(every=500, windows=48, rollouts=12),
        save=SaveConfig(every=250),
    )


def for_data(folder: str | Path, *, minutes: float | None = MINUTES) -> RunConfig:
    """Settings that suit a dataset and this machine; `suit` has the rules.

    Args:
        folder: a Well folder with the splits `train` and `valid`.
        minutes: the budget; None for one of updates, which the caller sets.
    """
    facts = survey_folder(folder)
    # Frames that stay in memory need no process that reads them again.
    workers = 0 if facts.gigabytes <= KEPT else min(2, facts.cores - 1)
    data = DataConfig(path=str(folder), workers=workers, memory=KEPT)
    return suit(facts, data, recipe=MINE, minutes=minutes)


RECIPES: dict[str, Recipe] = {
    **paper.RECIPES,
    **{
        f"{d}-{s}-fold": partial(folded, f"{d}-{s}-fold", d, s)
        for d in paper.DATASETS
        for s in paper.SIZES
    },
    **{f"{d}-mini": partial(mini, f"{d}-mini", d) for d in MINIATURES},
}
"""Recipes by name, each a function that makes its configuration (`overtone train list`)."""


def recipe(name: str) -> RunConfig:
    """The configuration of a recipe."""
    if name == MINE:
        raise ConfigError(
            f"the recipe '{MINE}' is chosen by the data: give --data FOLDER, or call "
            "ot.recipes.for_data(folder)"
        )
    if name not in RECIPES:
        raise ConfigError(
            f"no recipe '{name}'{suggest(name, [MINE, *RECIPES])}; `overtone train list` shows "
            f"all, and {MINE} is for your own data"
        )
    return RECIPES[name]()


__all__ = ["RECIPES", "folded", "for_data", "mini", "recipe"]
