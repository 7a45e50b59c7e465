"""What is trained and what is compared: studies as plain data, one command for each.

Trainings are shared: a model that two studies name is trained once. Fixed models get N updates
each, a flexible one N for each of its patches, all on the same data and with the same validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from overtone.errors import ConfigError, suggest
from overtone.train.recipes import DEVELOPED, recipe
from studies.study import Comparison, Study, Training, Untrained

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
SHORT = 200
"""Updates per patch of trainings that answer side questions."""
SHIFTED = 1.0
"""Share of shifted updates in trainings that answer side questions."""
REFINED = 32
"""Width of the convolutions of models that have them."""
MINUTES = 2.0
"""Minutes of processor time of trainings that are compared at equal time."""
STILL = ("4", "8", "16", "4-8-16")
"""Schedules on a grid that stays where it is."""
MAIN = (*STILL, *(f"{schedule}+shift" for schedule in STILL))
PERMUTATIONS = ("4-8-16", "4-16-8", "8-4-16", "8-16-4", "16-4-8", "16-8-4")
SCHEDULES = (
    *("4", "8", "16"),
    *PERMUTATIONS,
    *(f"random:4-8-16:{seed}" for seed in range(3)),
    *("bursts:16:4:5", "bursts:4:16:5", "dwell:4-8-16:2", "dwell:4-8-16:4"),
    *("warmup:4-4-8-8:16", "reverse:16:8-8-4-4:40"),
    *("16+shift", "4-8-16+shift", "warmup:4-4-8-8:16+shift"),
)
"""The paper's schedule families, and the shifted ones."""
PAIRS = ("16", "16+shift", "4-8-16", "4-8-16+shift")
"""The coarsest patch and the cycle, without shifts and with them."""
TELLING = ("4", *PAIRS)
SEAMS = (*PAIRS, "8+shift", "4")
DRAWN = ("vrmse", "excess", "spectra")
"""Curves of the comparison that the page of results draws."""


def models(
    recipe_name: str,
    kinds: Iterable[str],
    *,
    suffix: str = "",
    rate_of: str | None = None,
    **changes: Any,
) -> tuple[Training, ...]:
    """Trainings of several kinds by one recipe.

    Args:
        recipe_name: of the recipe, which their names begin with.
        kinds: keys of `KINDS`.
        suffix: end of their names.
        rate_of: recipe whose models of the same kind choose the learning rates.
        changes: dotted settings, with `__` for the dot.
    """
    settings = {key.replace("__", "."): value for key, value in changes.items()}
    return tuple(
        Training(
            name=f"{recipe_name}-{kind}{suffix}",
            recipe=recipe_name,
            changes={**KINDS[kind], **settings},
            rate_of=rate_of and f"{rate_of}-{kind}",
            label=kind,
        )
        for kind in kinds
    )


def short_models(
    kinds: Iterable[str], *, suffix: str = "-short", **changes: Any
) -> tuple[Training, ...]:
    """Trainings on shear flow that answer a side question."""
    settings = {"train__shift": SHIFTED, "train__updates_per_patch": SHORT, **changes}
    return models(SHEAR, kinds, suffix=suffix, **settings)


def labelled(trainings: Iterable[Training], what: str) -> tuple[Training, ...]:
    """The same, with what is special about them behind their labels."""
    return tuple(replace(t, label=f"{t.label} ({what})") for t in trainings)


def names(trainings: Iterable[Training]) -> tuple[str, ...]:
    """Names of trainings."""
    return tuple(training.name for training in trainings)


def _shear_flow() -> Study:
    own = models(SHEAR, KINDS, rate_of=SHEAR)
    csm, fixed16 = names(own)[0], names(own)[-1]
    return Study(
        SHEAR,
        "one flexible model against three fixed ones, on shear flow",
        own,
        (
            Comparison(SHEAR, names(own), MAIN, start=DEVELOPED, curves=DRAWN),
            Comparison(f"{SHEAR}-schedules", (csm,), SCHEDULES, start=DEVELOPED),
            Comparison(
                f"{SHEAR}-physics",
                (csm, fixed16),
                TELLING,
                steps=50,
                start=24,
                curves=("physics",),
            ),
        ),
    )


def _seeds() -> Study:
    own: tuple[Training, ...] = ()
    for seed in range(3):
        suffix = f"-seed{seed}"
        own += models(SHEAR, KINDS, suffix=suffix, train__updates_per_patch=SHORT, train__seed=seed)
    name = f"{SHEAR}-seeds"
    about = "the same in short, with three seeds"
    comparison = Comparison(name, names(own), ("8", *TELLING), start=DEVELOPED)
    return Study(name, about, own, (comparison,))


def _long_seeds() -> Study:
    kinds = ("csm", "fixed16")
    own = models(SHEAR, kinds, rate_of=SHEAR)
    for seed in (1, 2):
        own += models(SHEAR, kinds, suffix=f"-long-seed{seed}", rate_of=SHEAR, train__seed=seed)
    name = f"{SHEAR}-long-seeds"
    about = "the main study's cycle and its rival, in full length, with three seeds"
    schedules = ("8+shift", *TELLING)
    comparison = Comparison(name, names(own), schedules, start=DEVELOPED, curves=("vrmse",))
    return Study(name, about, own, (comparison,))


def _system(recipe_name: str, start: int, *, families: bool = False) -> Study:
    own = models(recipe_name, ("csm", *FIXED))
    about = "one flexible model against three fixed ones, on " + recipe_name.removesuffix("-mini")
    comparisons = [Comparison(recipe_name, names(own), ("8", *TELLING), start=start)]
    if families:
        csm, name = names(own)[:1], f"{recipe_name}-schedules"
        comparisons.append(Comparison(name, csm, SCHEDULES, start=start))
    return Study(recipe_name, about, own, tuple(comparisons))


def _axial() -> Study:
    name = f"{SHEAR}-axial"
    own = short_models(("csm", *FIXED), suffix="-axial", model__name="axial")
    about = "the same with axial attention"
    return Study(name, about, own, (Comparison(name, names(own), MAIN, start=DEVELOPED),))


def _cvit() -> Study:
    """With the main study's budgets: its decoder is slow to learn, and cheap."""
    name, kinds = f"{SHEAR}-cvit", ("ckm", *FIXED)
    made = {"model__name": "cvit", "model__size": "mini", "train__shift": SHIFTED}
    own = models(SHEAR, kinds, suffix="-cvit", **made)
    own = tuple(replace(t, rate_of=t.name) for t in own)
    about = "CViT, one flexible model against three fixed ones"
    comparison = Comparison(name, names(own), MAIN, start=DEVELOPED, curves=("seams",))
    return Study(name, about, own, (comparison,))


def _unit() -> Study:
    name = f"{SHEAR}-unit"
    kinds = ("csm", "fixed16")
    alone = models(SHEAR, kinds, suffix="-context", rate_of=SHEAR, model__unit="context")
    own = models(SHEAR, kinds, rate_of=SHEAR) + labelled(alone, "context")
    comparisons = (
        Comparison(name, names(own), TELLING, start=DEVELOPED),
        Comparison(f"{name}-growth", names(own), TELLING, start=16),
    )
    about = "changes predicted in units of the data's pace, or of the context's change alone"
    return Study(name, about, own, comparisons)


def _shifts() -> Study:
    """All models three ways: which is best is seen on the validation split."""
    name = f"{SHEAR}-shifts"
    main = models(SHEAR, KINDS, rate_of=SHEAR)
    still, shifted = (
        labelled(models(SHEAR, KINDS, suffix=suffix, rate_of=SHEAR, train__shift=share), what)
        for suffix, share, what in (("-still", 0.0, "no shifts"), ("-shifted", 1.0, "all shifted"))
    )
    own = main + still + shifted
    flexible = names(main)[:2]
    comparisons = (
        Comparison(name, names(own), MAIN, start=DEVELOPED, split="valid"),
        Comparison(f"{SHEAR}-still", flexible + names(still), STILL, start=DEVELOPED),
    )
    about = "the main study's models, with the grid shifted in half of the updates, in none, in all"
    return Study(name, about, own, comparisons)


def _refine() -> Study:
    name, kinds = f"{SHEAR}-refine", ("csm", "fixed16")
    refined = short_models(kinds, suffix="-refine", model__refine=REFINED)
    own = short_models(kinds) + labelled(refined, "refined")
    about = "changes that small convolutions correct cell by cell, or as the patches decode them"
    comparison = Comparison(name, names(own), TELLING, start=DEVELOPED, curves=("seams",))
    return Study(name, about, own, (comparison,))


def _rules() -> Study:
    name = f"{SHEAR}-rules"
    own: tuple[Training, ...] = ()
    for label, suffix, changes in (
        ("paper", "-paper", {"train__shift": 0.0, "model__decoder": "paper"}),
        ("keep", "-keep", {"train__shift": 0.0}),
        ("keep, shifts", "-short", {}),
    ):
        made = short_models(("csm", "ckm", "fixed16"), suffix=suffix, **changes)
        own += labelled(made, label)
    schedules = (*PAIRS, "warmup:4-4-8-8:16", "warmup:4-4-8-8:16+shift")
    about = "decoder rules, and training with and without shifts"
    return Study(name, about, own, (Comparison(name, names(own), schedules, start=DEVELOPED),))


def _seams() -> Study:
    """The packaged models again, so that anyone can measure their seams without training."""
    kinds = ("fixed16", "csm")
    own = tuple(
        replace(t, packaged=True, rate_of=None) for t in models(SHEAR, kinds, rate_of=SHEAR)
    )
    name = f"{SHEAR}-seams"
    comparison = Comparison(
        name, names(own), SEAMS, start=DEVELOPED, curves=("seams", "worst_seams")
    )
    return Study(name, "seams where the grid lies, of packaged models", own, (comparison,))


def _ablation(
    name: str,
    about: str,
    variants: Mapping[str, Mapping[str, Any]],
    schedules: tuple[str, ...] = ("16", "4-8-16"),
) -> Study:
    """CSM with one thing changed at a time; `{}` is the recipe's own, trained as short."""
    own = []
    for label, changes in variants.items():
        suffix = "-short" if not changes else "-" + label.replace(" ", "-").replace(",", "")
        (made,) = short_models(("csm",), suffix=suffix)
        own.append(replace(made.renamed(made.name, changes), label=label))
    name = f"{SHEAR}-{name}"
    comparison = Comparison(name, names(own), schedules, start=24)  # contexts may be long
    return Study(name, about, tuple(own), (comparison,))


ABLATIONS = (
    _ablation(
        "patches",
        "more patches, fewer, and the middle one left out",
        {
            "patches 4 8 16": {},
            "patches 8 16": {"model.patches": [8, 16]},
            "patches 4 16": {"model.patches": [4, 16]},
            "patches 4 8 16 32": {"model.patches": [4, 8, 16, 32]},
            "patches 4 8 16 32 64": {"model.patches": [4, 8, 16, 32, 64]},
        },
        ("16", "4-8-16", "8-16", "4-16", "4-8-16-32", "4-8-16-32-64"),
    ),
    _ablation(
        "kernel",
        "the base kernel",
        {"kernel 16": {}, "kernel 32": {"model.base_kernel": 32}},
    ),
    _ablation(
        "context",
        "the number of frames that the model looks back on",
        {f"context {n}": {"model.context": n} if n != 4 else {} for n in (3, 4, 6, 12)},
    ),
    _ablation(
        "size",
        "the size of the model",
        {
            "width 48": {"model.width": 48, "model.heads": 3},
            "width 96": {},
            "width 192": {"model.width": 192, "model.heads": 6},
        },
    ),
)


RIVALS = ("fno", "tfno", "ffno", "unet", "cnext_unet", "transolver", "sinenet")
"""The baselines that have no patches and something to train."""
PATCHED: dict[str, dict[str, Any]] = {
    "fixed16": KINDS["fixed16"],
    "afno fixed16": {"model.name": "afno", **KINDS["fixed16"]},
    "afno ckm": {"model.name": "afno", **KINDS["ckm"]},
}
"""Models with patches, each with one budget however many it has."""
BASELINE_SCHEDULES = ("4", "16", "4-8-16", "4-8-16+shift")


def _baselines() -> Study:
    """All models with one budget, in windows and in minutes, whatever the number of patches."""
    name = f"{SHEAR}-baselines"
    rivals = {rival: {"model.name": rival, "model.size": "mini"} for rival in RIVALS}
    windows = short_models(("csm", "ckm")) + tuple(
        _budgeted(label, "windows", {**changes, "train.updates": 3 * SHORT}, tuned=True)
        for label, changes in {**PATCHED, **rivals}.items()
    )
    limit = {"train.updates": 1_000_000, "train.max_cpu_minutes": MINUTES}
    flexible = {kind: KINDS[kind] for kind in ("csm", "ckm")}
    minutes = tuple(
        _budgeted(label, "minutes", {**changes, **limit}, tuned=label not in flexible)
        for label, changes in {**flexible, **PATCHED, **rivals}.items()
    )
    comparisons = tuple(
        Comparison(
            f"{name}-{budget}",
            names(own),
            BASELINE_SCHEDULES,
            start=DEVELOPED,
            untrained=_solvers(),
        )
        for budget, own in (("windows", windows), ("minutes", minutes))
    )
    about = "other surrogates with as many windows seen, and with as many minutes of one core"
    return Study(name, about, windows + minutes, comparisons)


def _budgeted(label: str, budget: str, changes: Mapping[str, Any], *, tuned: bool) -> Training:
    start = f"{SHEAR}-{label.replace(' ', '-')}"
    changes = {"train.shift": SHIFTED, **changes}
    rate_of = f"{start}-windows" if tuned else None
    return Training(f"{start}-{budget}", SHEAR, changes, rate_of=rate_of, label=label)


def _solvers() -> tuple[Untrained, ...]:
    """What needs no training, and the solver itself on coarser and coarser grids."""
    made = recipe(SHEAR).data.generate
    assert made is not None
    return (
        Untrained("persistence", "persistence"),
        Untrained("extrapolation", "extrapolation", context=2),
        *(
            Untrained(
                f"solver, {64 // coarsen} cells",
                "coarse_solver",
                {"system": "shear_flow", "coarsen": coarsen, "settings": made.settings},
            )
            for coarsen in (1, 2, 4)
        ),
    )


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        _shear_flow(),
        _seeds(),
        _long_seeds(),
        _axial(),
        _rules(),
        _cvit(),
        _unit(),
        _shifts(),
        _refine(),
        _seams(),
        _system("rayleigh-benard-mini", start=16, families=True),
        _system("turbulent-radiative-layer-2d-mini", start=16),
        _system("supernova-explosion-mini", start=8),
        *ABLATIONS,
        _baselines(),
    )
}


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise ConfigError(
            f"no study '{name}'{suggest(name, list(STUDIES))}; there are {', '.join(STUDIES)}"
        )
    return STUDIES[name]
