"""What is trained and what is compared: studies as plain data, one command for each.

Trainings are shared: a model that two studies name is trained once. Fixed models get N updates
each, a flexible one N for each of its patches, all on the same data and with the same validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from overtone.errors import ConfigError, suggest
from overtone.train.recipes import DEVELOPED
from studies.ablations import ablations
from studies.architectures import architectures
from studies.further import further_rollouts
from studies.kinds import FIXED, KINDS, SHEAR, START, as_packaged, labelled, models, names
from studies.rivals import BEST, BUDGETS, SYSTEMS, best_rivals, rivals
from studies.schedules import MAIN, PAIRS, SCHEDULES, STILL
from studies.study import Comparison, Study, Training
from studies.tried import FURTHER, STARTS, optimizers, scales, tried

GRID_MINUTES = 15.0
"""Processor time of a fixed model on the paper's grid."""
SHORT = 200
"""Updates per patch of trainings that answer side questions."""
FORMER: dict[str, Any] = {
    "model__context": 4,
    "model__scale": "context",
    "optimizer__kind": "adamw",
    "optimizer__lr": 4e-3,
    "optimizer__weight_decay": 1e-4,
    "train__unroll": 1,
    "train__unroll_from": 0.0,
    "train__shift": 1.0,
    "train__updates_per_patch": SHORT,
}
"""What recipes said before they folded time, for studies that were not made again since."""
ATTENDING: dict[str, Any] = {**FORMER, "model__time": "attend"}
CVIT_RATES = {"ckm": 2e-3, "fixed4": 2e-3, "fixed8": 2e-3, "fixed16": 4e-3}
"""Chosen on the validation split, by trials whose scores are in the study's results."""
TELLING = ("4", *PAIRS)
SEAMS = (*PAIRS, "8+shift", "4")
LATE = ("vrmse", "energy")
"""Curves by which a long rollout is judged."""
DRAWN = ("vrmse", "excess", "spectra")
"""Curves of the comparison that the page of results draws."""


def attending_models(
    kinds: Iterable[str], *, suffix: str = "-short", **changes: Any
) -> tuple[Training, ...]:
    """Short trainings on shear flow, in which frames attend to each other."""
    return models(SHEAR, kinds, suffix=suffix, **{**ATTENDING, **changes})


def _shear_flow() -> Study:
    own = models(SHEAR, KINDS)
    csm, fixed16 = names(own)[0], names(own)[-1]
    return Study(
        SHEAR,
        "one flexible model against three fixed ones, on shear flow",
        own,
        (
            Comparison(SHEAR, names(own), MAIN, start=START, curves=DRAWN),
            Comparison(f"{SHEAR}-schedules", (csm,), SCHEDULES, start=START),
            Comparison(
                f"{SHEAR}-physics",
                (csm, fixed16),
                TELLING,
                steps=50,
                start=20,
                curves=("physics",),
            ),
        ),
    )


def _rayleigh_benard() -> Study:
    name = "rayleigh-benard-mini"
    own = models(name, ("csm", *FIXED))
    comparisons = (
        Comparison(name, names(own), MAIN, start=12),
        Comparison(f"{name}-schedules", names(own)[:1], SCHEDULES, start=12),
    )
    about = "one flexible model against three fixed ones, on rayleigh-benard"
    return Study(name, about, own, comparisons)


def _radiative_layer() -> Study:
    """Without the families of schedules."""
    name = "turbulent-radiative-layer-2d-mini"
    own = models(name, ("csm", *FIXED))
    comparison = Comparison(name, names(own), ("8", "8+shift", *TELLING), start=12)
    about = "one flexible model against three fixed ones, on turbulent-radiative-layer-2d"
    return Study(name, about, own, (comparison,))


def _further(system: str, start: int) -> Study:
    """Without shifts at patch 8, and without the families of schedules."""
    name = f"{system}-mini"
    own = models(name, ("csm", *FIXED))
    comparison = Comparison(name, names(own), ("8", *TELLING), start=start)
    about = f"one flexible model against three fixed ones, on {system}"
    return Study(name, about, own, (comparison,))


def _seeds(recipe_name: str, kinds: Iterable[str], start: int) -> Study:
    """The main study's models of a system, and two further seeds of each."""
    kinds = tuple(kinds)
    own = models(recipe_name, kinds)
    for seed in (1, 2):
        own += models(recipe_name, kinds, suffix=f"-seed{seed}", train__seed=seed)
    name = f"{recipe_name}-seeds"
    comparison = Comparison(name, names(own), MAIN, start=start, curves=("vrmse",))
    about = f"models of {recipe_name.removesuffix('-mini')} with three seeds"
    return Study(name, about, own, (comparison,))


def _seams() -> Study:
    """The packaged models again, so that anyone can measure their seams without training."""
    own = as_packaged(models(SHEAR, ("fixed16", "csm")))
    name = f"{SHEAR}-seams"
    comparison = Comparison(
        name, names(own), SEAMS, start=START, curves=("seams", "worst_seams", "axis_spectra")
    )
    return Study(name, "seams where the grid lies, of packaged models", own, (comparison,))


def _long() -> Study:
    """Packaged models five times as far as they are compared elsewhere, from unseen starts."""
    packaged = (*models(SHEAR, ("csm", "fixed16")), *models("rayleigh-benard-mini", ("csm",)))
    own = as_packaged(packaged)
    comparisons = tuple(
        Comparison(name, names(members), MAIN, steps=200, start=start, data=FURTHER, curves=LATE)
        for name, members, start in (
            ("long-shear-flow", own[:2], START),
            ("long-rayleigh-benard", own[2:], 12),
        )
    )
    return Study("long", "rollouts of 200 steps of packaged models", own, comparisons)


PLANS = {SHEAR: START, "rayleigh-benard-mini": 12, "turbulent-radiative-layer-2d-mini": 12}
"""Recipes whose packaged models are planned for -> first frame of the context."""


def _plan() -> Study:
    """Plans for the tokens of the paper's cycle, made on validation splits, judged on test."""
    own = tuple(replace(t, packaged=True) for name in PLANS for t in models(name, ("csm",)))
    comparisons = tuple(
        Comparison(f"plan-{name.removesuffix('-mini')}", (member.name,), STILL, start=start,
                   planned="4-8-16")
        for member, (name, start) in zip(own, PLANS.items(), strict=True)
    )  # fmt: skip
    about = "plans for the tokens of the cycle 4-8-16, of packaged models"
    return Study("plan", about, own, comparisons)


def _paper_grid() -> Study:
    """Shear flow on the paper's grid; one flexible model gets the minutes of three fixed ones."""
    name = "shear-flow-128x256"
    grid: dict[str, Any] = {
        "data__generate__grid": [128, 256],
        "data__generate__settings": {"reynolds": 1e4},
        "data__generate__trajectories": 40,
        "data__coarsen": 1,
        "data__workers": 0,
        "data__memory": 1.2,
        "model__size": "7m",
        "model__blocks": 6,
        "train__updates": 1_000_000,
        "valid__every": 1_000_000,
        "save__every": 200,
    }
    own: tuple[Training, ...] = ()
    for kind, minutes in (("csm", 3 * GRID_MINUTES), *((fixed, GRID_MINUTES) for fixed in FIXED)):
        # A patch of 4 costs twenty times one of 16 here, so it is drawn less often.
        drawn = {"train__patch_weights": [1, 2, 4]} if kind == "csm" else {}
        budget = {"train__max_cpu_minutes": minutes, **drawn}
        own += models(SHEAR, (kind,), suffix="-128x256", **budget, **grid)
    curves = ("vrmse", "axis_spectra", "seams")
    about = "one flexible model against three fixed ones on the paper's grid of shear flow"
    comparison = Comparison(name, names(own), MAIN, start=START, curves=curves)
    return Study(name, about, own, (comparison,))


def _axial() -> Study:
    name = f"{SHEAR}-axial"
    own = attending_models(("csm", *FIXED), suffix="-axial", model__name="axial")
    about = "axial attention, frames attending"
    return Study(name, about, own, (Comparison(name, names(own), MAIN, start=DEVELOPED - 4),))


def _cvit() -> Study:
    """With longer trainings: its decoder is slow to learn, and cheap."""
    name, kinds = f"{SHEAR}-cvit", ("ckm", *FIXED)
    made = {"model__name": "cvit", "model__size": "mini", "train__updates_per_patch": 1000}
    own = models(SHEAR, kinds, suffix="-cvit", **{**FORMER, **made})
    own = tuple(t.renamed(t.name, {"optimizer.lr": CVIT_RATES[t.label]}) for t in own)
    about = "CViT, one flexible model against three fixed ones"
    comparison = Comparison(name, names(own), MAIN, start=DEVELOPED - 4, curves=("seams",))
    return Study(name, about, own, (comparison,))


def _rules() -> Study:
    name = f"{SHEAR}-rules"
    own: tuple[Training, ...] = ()
    for label, suffix, changes in (
        ("paper", "-paper", {"train__shift": 0.0, "model__decoder": "paper"}),
        ("keep", "-keep", {"train__shift": 0.0}),
        ("keep, shifts", "-short", {}),
    ):
        made = attending_models(("csm", "ckm", "fixed16"), suffix=suffix, **changes)
        own += labelled(made, label)
    schedules = (*PAIRS, "warmup:4-4-8-8:16", "warmup:4-4-8-8:16+shift")
    about = "decoder rules, and training with and without shifts, frames attending"
    return Study(name, about, own, (Comparison(name, names(own), schedules, start=DEVELOPED - 4),))


def _patches() -> Study:
    """More patches, fewer, and the middle one left out."""
    own = []
    for patches in ((4, 8, 16), (8, 16), (4, 16), (4, 8, 16, 32), (4, 8, 16, 32, 64)):
        label = f"patches {' '.join(map(str, patches))}"
        suffix = "-short" if patches == (4, 8, 16) else "-" + label.replace(" ", "-")
        changes = {} if patches == (4, 8, 16) else {"model__patches": list(patches)}
        (made,) = attending_models(("csm",), suffix=suffix, **changes)
        own.append(replace(made, label=label))
    name = f"{SHEAR}-patches"
    schedules = ("16", "4-8-16", "8-16", "4-16", "4-8-16-32", "4-8-16-32-64")
    comparison = Comparison(name, names(own), schedules, start=24)
    about = "more patches, fewer, and the middle one left out, frames attending"
    return Study(name, about, tuple(own), (comparison,))


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        _shear_flow(),
        _seeds(SHEAR, KINDS, START),
        _seeds("rayleigh-benard-mini", ("csm", *FIXED), 12),
        _seeds("turbulent-radiative-layer-2d-mini", ("csm", *FIXED), 12),
        _seams(),
        _rayleigh_benard(),
        _paper_grid(),
        _long(),
        _plan(),
        _radiative_layer(),
        _further("supernova-explosion", 4),
        _further("active-matter", 12),
        _further("turbulence-gravity-cooling", 0),
        *(rivals(system, minutes) for system in SYSTEMS for minutes in BUDGETS),
        *(best_rivals(system) for system in SYSTEMS if system.recipe in BEST),
        *(tried(recipe) for recipe in STARTS),
        *(scales(recipe) for recipe in STARTS),
        *(optimizers(recipe) for recipe in STARTS),
        _axial(),
        _rules(),
        _cvit(),
        _patches(),
        *ablations(),
        *architectures(),
        *further_rollouts(),
    )
}


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise ConfigError(
            f"no study '{name}'{suggest(name, list(STUDIES))}; there are {', '.join(STUDIES)}"
        )
    return STUDIES[name]
