"""Trainings by kind: the flexible models and their fixed rivals, by one recipe each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from overtone.train.recipes import DEVELOPED
from studies.study import Training

KINDS: dict[str, dict[str, Any]] = {
    "csm": {"model.tokenizer": "csm"},
    "ckm": {"model.tokenizer": "ckm"},
    **{
        f"fixed{patch}": {"model.tokenizer": "fixed", "model.patches": [patch]}
        for patch in (4, 8, 16)
    },
}
"""The flexible models and their fixed rivals."""
FIXED = ("fixed4", "fixed8", "fixed16")
SHEAR = "shear-flow-mini"
LAYER = "turbulent-radiative-layer-2d-mini"
BEGINS = {
    SHEAR: DEVELOPED - 8,
    "rayleigh-benard-mini": 12,
    LAYER: 12,
    "active-matter-mini": 12,
    "supernova-explosion-mini": 4,
    "turbulence-gravity-cooling-mini": 0,
}
"""The paper's six systems -> first frame of a context of eight frames."""
START = BEGINS[SHEAR]
"""Where a folded model's context begins on shear flow."""


def models(
    recipe_name: str,
    kinds: Iterable[str],
    *,
    suffix: str = "",
    **changes: Any,
) -> tuple[Training, ...]:
    """Trainings of several kinds by one recipe.

    Args:
        recipe_name: of the recipe, which their names begin with.
        kinds: keys of `KINDS`.
        suffix: end of their names.
        changes: dotted settings, with `__` for the dot.
    """
    settings = {key.replace("__", "."): value for key, value in changes.items()}
    return tuple(
        Training(
            name=f"{recipe_name}-{kind}{suffix}",
            recipe=recipe_name,
            changes={**KINDS[kind], **settings},
            label=kind,
        )
        for kind in kinds
    )


def labelled(trainings: Iterable[Training], what: str) -> tuple[Training, ...]:
    """The same, with what is special about them behind their labels."""
    return tuple(replace(t, label=f"{t.label} ({what})") for t in trainings)


def as_packaged(trainings: Iterable[Training]) -> tuple[Training, ...]:
    """The models of these names that come with the package, in place of trainings."""
    return tuple(replace(t, packaged=True) for t in trainings)


def names(trainings: Iterable[Training]) -> tuple[str, ...]:
    """Names of trainings."""
    return tuple(training.name for training in trainings)
