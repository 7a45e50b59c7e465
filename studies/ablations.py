"""The paper's ablations (its appendix I): sizes, base kernels, sets of patches, contexts.

Those of shear flow are trained for a fifth of the main study's updates, as there are many; where
the paper names the radiative layer and axial attention, so do these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from overtone.train.recipes import DEVELOPED
from studies.kinds import BEGINS, LAYER, SHEAR, START, labelled, models, names
from studies.schedules import STILL
from studies.study import Comparison, Study, Training

FLEXIBLE = ("csm", "ckm")
FEW: dict[str, Any] = {"train__updates_per_patch": 400}
"""The budget on shear flow."""
AXIAL: dict[str, Any] = {"model__name": "axial"}
TINY = 96
"""Width whose learning rate was chosen; others have theirs in inverse proportion to the width."""
WIDTHS: dict[int, dict[str, Any]] = {
    64: {"model__size": "nano"},
    TINY: {},
    192: {"model__size": "7m", "model__blocks": 4},
}
"""Width -> size; all have four blocks."""
RATE = 8e-3
PATCH_SETS = ((8, 16), (4, 8, 16), (4, 8, 16, 32), (4, 8, 16, 32, 64))
CONTEXTS = (3, 6, 12)


def ablations() -> tuple[Study, ...]:
    """All of them."""
    return sizes(), base_kernel(), patch_sets(), context_length(), omitted_patch()


def sizes() -> Study:
    """Each width is a comparison by itself; its models share their names with the others."""
    own: tuple[Training, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    for width, size in WIDTHS.items():
        suffix = "-few" if width == TINY else f"-few-{width}"
        rate = {} if width == TINY else {"optimizer__lr": RATE * TINY / width}
        made = models(SHEAR, (*FLEXIBLE, "fixed4", "fixed16"), suffix=suffix, **FEW, **size, **rate)
        own = made + own  # the longest first
        comparisons += (Comparison(f"sizes-{width}", names(made), STILL, start=START),)
    about = "flexible and fixed models of three widths, on shear flow"
    return Study("sizes", about, own, comparisons)


def base_kernel() -> Study:
    """What the kernels of all patches are made of; 16 is the default, and the omitted patch's."""
    name = "base-kernel"
    own: tuple[Training, ...] = ()
    for kind, kernels in (("ckm", (4, 8, 16, 32)), ("csm", (16, 32))):
        for kernel in kernels:
            usual = kernel == 16
            suffix = "-axial" if usual else f"-axial-base-{kernel}"
            changes = {} if usual else {"model__base_kernel": kernel}
            made = models(LAYER, (kind,), suffix=suffix, **AXIAL, **changes)
            own += labelled(made, f"base {kernel}")
    comparison = Comparison(name, names(own), STILL, start=BEGINS[LAYER])
    about = "base kernels of CKM and CSM, on the radiative layer, axial attention"
    return Study(name, about, own, (comparison,))


def patch_sets() -> Study:
    """From two patches to five, on a grid that has room for one of 64."""
    name = "patch-sets"
    own: tuple[Training, ...] = ()
    for kind in FLEXIBLE:
        for patches in PATCH_SETS:
            usual = patches == (4, 8, 16)
            listed = "-".join(map(str, patches))
            suffix = "-few" if usual else f"-few-{listed}"
            changes = {} if usual else {"model__patches": list(patches)}
            own += labelled(models(SHEAR, (kind,), suffix=suffix, **FEW, **changes), listed)
    own += models(SHEAR, ("fixed16",), suffix="-few", **FEW)
    schedules = ("16", *("-".join(map(str, patches)) for patches in PATCH_SETS))
    comparison = Comparison(name, names(own), schedules, start=START)
    about = "from two patches to five, CSM and CKM, on shear flow"
    return Study(name, about, own, (comparison,))


def context_length() -> Study:
    """Contexts of all lengths end at the same frame."""
    name = "context-length"
    own: tuple[Training, ...] = ()
    for kind in FLEXIBLE:
        for frames in CONTEXTS:
            made = models(
                SHEAR, (kind,), suffix=f"-few-context-{frames}", model__context=frames, **FEW
            )
            own += tuple(replace(t, label=f"{kind}, {frames} frames") for t in made)
    comparison = Comparison(name, names(own), STILL, start=DEVELOPED - max(CONTEXTS))
    about = "three, six and twelve frames of context, CSM and CKM, on shear flow"
    return Study(name, about, own, (comparison,))


def omitted_patch() -> Study:
    """The paper's table of patch 8 left out of training, and asked for all the same."""
    name = "omitted-patch"
    whole = models(LAYER, FLEXIBLE, suffix="-axial", **AXIAL)
    without = models(LAYER, FLEXIBLE, suffix="-axial-without-8", model__patches=[4, 16], **AXIAL)
    own = (*whole, *labelled(without, "without 8"))
    comparison = Comparison(name, names(own), STILL, start=BEGINS[LAYER], allow_untrained=True)
    about = "patch 8 left out of training and asked for all the same, axial attention"
    return Study(name, about, own, (comparison,))
