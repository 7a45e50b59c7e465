"""Other architectures than the main studies': axial attention, CKM everywhere, Swin, AFNO, CViT.

What a system's main study trained is shared, not trained again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from studies.kinds import BEGINS, FIXED, KINDS, LAYER, SHEAR, models, names
from studies.schedules import PAIRS, STILL
from studies.study import Comparison, Study, Training, Untrained

AXIAL_UPDATES = {
    SHEAR: 1000,
    "rayleigh-benard-mini": 500,
    LAYER: 1000,
    "active-matter-mini": 500,
    "supernova-explosion-mini": 150,
    "turbulence-gravity-cooling-mini": 150,
}
"""Recipe -> updates of each patch: half of the recipe's where that is long, all on the layer."""
SHOWN = ("4", "8", *PAIRS)
PERSISTENCE = Untrained("persistence", "persistence")
SEEN = ("vrmse", "seams", "worst_seams", "excess", "axis_spectra")
"""Curves of the studies of artifacts."""
COARSE: dict[str, dict[str, Any]] = {
    "vit": {},
    "axial": {"model__name": "axial"},
    "swin": {"model__name": "swin", "model__window": 2},
    "afno": {"model__name": "afno"},
}
"""Spatial mixing of the models whose grid artifacts are compared -> settings."""
RATES = (2e-3, 4e-3, 16e-3)
"""Learning rates beside the recipe's, 8e-3."""
CVIT: dict[str, Any] = {
    "model__name": "cvit",
    "model__size": "mini",
    "model__context": 4,
    "train__updates_per_patch": 1000,
    "train__shift": 0.0,
    "train__unroll": 1,
    "train__unroll_from": 0.0,
    "optimizer__kind": "adamw",
    "optimizer__weight_decay": 1e-4,
    "optimizer__lr": 2e-3,
}
CVIT_SYSTEMS = (SHEAR, "rayleigh-benard-mini", LAYER, "active-matter-mini")


def architectures() -> tuple[Study, ...]:
    """All of them."""
    ckm = tuple(with_ckm(recipe) for recipe in BEGINS if recipe != SHEAR)  # its main study has it
    axial = tuple(with_axial(recipe) for recipe in BEGINS)
    seams = tuple(artifacts(recipe) for recipe in (LAYER, SHEAR))
    return *ckm, *axial, *seams, *(cvit(recipe) for recipe in CVIT_SYSTEMS)


def with_ckm(recipe: str) -> Study:
    """CKM beside what the main study of a system has."""
    system = recipe.removesuffix("-mini")
    own = models(recipe, ("ckm", "csm", *FIXED))
    name = f"ckm-{system}"
    comparison = Comparison(name, names(own), SHOWN, start=BEGINS[recipe])
    return Study(name, f"CKM beside CSM and three fixed models, on {system}", own, (comparison,))


def with_axial(recipe: str) -> Study:
    """All kinds of models with axial attention."""
    system = recipe.removesuffix("-mini")
    name = f"axial-{system}"
    budget: dict[str, Any] = {"train__updates_per_patch": AXIAL_UPDATES[recipe]}
    own = models(recipe, KINDS, suffix=_axial(recipe), model__name="axial", **budget)
    comparison = Comparison(name, names(own), SHOWN, start=BEGINS[recipe])
    about = f"flexible and fixed models with axial attention, on {system}"
    return Study(name, about, own, (comparison,))


def _axial(recipe: str) -> str:
    """End of the names of axial models; an older study, whose frames attend, has the shorter."""
    return "-axial-folded" if recipe == SHEAR else "-axial"


def artifacts(recipe: str) -> Study:
    """Grid artifacts of patch 16 in four architectures and at four learning rates.

    Flexible Swin and AFNO are beside them, and AFNO at patch 4.
    """
    system = recipe.removesuffix("-mini")
    name = f"artifacts-{system}"
    budget: dict[str, Any] = {"train__updates_per_patch": 1000}
    suffix = "" if recipe == LAYER else "-1000"  # the layer's recipe has as many
    flexible = (("csm", "swin"), ("ckm", "afno"))
    own: tuple[Training, ...] = ()
    for kind, mixing in (*flexible, ("fixed4", "afno"), *(("fixed16", m) for m in COARSE)):
        own += _mixed(recipe, kind, mixing, suffix, **budget)
    for rate in RATES:
        made = models(
            recipe, ("fixed16",), suffix=f"{suffix}-rate-{rate:g}", optimizer__lr=rate, **budget
        )
        own += tuple(replace(t, label=f"vit fixed16, rate {rate:g}") for t in made)
    comparison = Comparison(name, names(own), ("4", *PAIRS), start=BEGINS[recipe], curves=SEEN)
    about = f"grid artifacts of other architectures and learning rates, on {system}"
    return Study(name, about, own, (comparison,))


def _mixed(recipe: str, kind: str, mixing: str, suffix: str, **budget: Any) -> tuple[Training, ...]:
    places = {"vit": suffix, "axial": _axial(recipe)}  # as in the study of axial attention
    place = places.get(mixing, f"{suffix}-{mixing}")
    made = models(recipe, (kind,), suffix=place, **COARSE[mixing], **budget)
    return tuple(replace(t, label=f"{mixing} {kind}") for t in made)


def cvit(recipe: str) -> Study:
    """CViT without shifts, and persistence beside it: its coarse patches are slow to learn."""
    system = recipe.removesuffix("-mini")
    name = f"cvit-{system}"
    own = models(recipe, ("ckm", "fixed4", "fixed16"), suffix="-cvit-still", **CVIT)
    comparison = Comparison(
        name, names(own), STILL, start=BEGINS[recipe] + 4, untrained=(PERSISTENCE,)
    )
    about = f"CViT, one flexible model against two fixed ones, on {system}"
    return Study(name, about, own, (comparison,))
