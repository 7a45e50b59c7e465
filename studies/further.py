"""Further rollouts of models that other studies trained: laws, 100 steps, families."""

from __future__ import annotations

from studies.kinds import BEGINS, LAYER, SHEAR, as_packaged, models, names
from studies.schedules import PAIRS, SCHEDULES
from studies.study import Comparison, Study
from studies.tried import FURTHER

BENARD = "rayleigh-benard-mini"
HUNDRED = ("16", "4-8-16", "4-8-16+shift")
LATE = ("vrmse", "energy", "spectra", "seams")
"""Curves by which rollouts of 100 steps are judged."""
BLASTS = ("supernova-explosion-mini", "turbulence-gravity-cooling-mini")
DRAWN_FAMILIES = ("4-8-16", "dwell:4-8-16:2", "warmup:4-4-8-8:16", "16")
"""The schedules of the paper's figure of families, and constant 16."""


def further_rollouts() -> tuple[Study, ...]:
    """All of them."""
    return hundred(), families(), over_fifty()


def hundred() -> Study:
    """Packaged models for 100 steps, from unseen starts."""
    packaged = {
        SHEAR: as_packaged(models(SHEAR, ("csm", "ckm", "fixed16"))),
        BENARD: as_packaged(models(BENARD, ("csm",))),
        LAYER: as_packaged(models(LAYER, ("csm",))),
    }
    comparisons = tuple(
        Comparison(f"hundred-{recipe.removesuffix('-mini')}", names(own), HUNDRED, steps=100,
                   start=BEGINS[recipe], data=FURTHER, curves=LATE)
        for recipe, own in packaged.items()
    )  # fmt: skip
    own = tuple(training for some in packaged.values() for training in some)
    about = "rollouts of 100 steps of packaged models, on three systems"
    return Study("hundred", about, own, comparisons)


def families() -> Study:
    """Families of schedules on the two systems in 3D, and their spectra on shear flow."""
    blasts = {recipe: models(recipe, ("csm",)) for recipe in BLASTS}
    flow = as_packaged(models(SHEAR, ("csm",)))
    comparisons = tuple(
        Comparison(f"families-{recipe.removesuffix('-mini')}", names(own), SCHEDULES,
                   start=BEGINS[recipe])
        for recipe, own in blasts.items()
    )  # fmt: skip
    spectra = Comparison(
        "families-shear-flow", names(flow), DRAWN_FAMILIES, start=BEGINS[SHEAR],
        curves=("axis_spectra", "seams", "worst_seams"),
    )  # fmt: skip
    own = (*(training for some in blasts.values() for training in some), *flow)
    about = "families of schedules in 3D, and their spectra on shear flow"
    return Study("families", about, own, (*comparisons, spectra))


def over_fifty() -> Study:
    """Laws of physics over the paper's 50 steps, of packaged models."""
    own = as_packaged(models(SHEAR, ("csm", "ckm", "fixed16")))
    comparison = Comparison(
        "physics-shear-flow", names(own), ("4", *PAIRS), steps=50, start=20, curves=("physics",)
    )
    about = "laws of physics over 50 steps, of packaged models of shear flow"
    return Study("physics", about, own, (comparison,))
