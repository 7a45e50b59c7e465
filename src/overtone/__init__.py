"""Overtone: transformer emulators of PDEs, one model for many patch sizes, clean long rollouts."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from overtone.baselines import Baseline
from overtone.baselines import create as baseline
from overtone.domain import Boundary, Domain, Window
from overtone.errors import (
    CheckpointError,
    DataError,
    DomainError,
    OvertoneError,
    PatchError,
    RolloutDiverged,
)
from overtone.flexify import FlexibleStepper, flexify, patch
from overtone.models.architecture import Architecture
from overtone.models.emulator import Emulator, build
from overtone.models.storage import load_model as load
from overtone.rollout import (
    Adaptive,
    Controller,
    ErrorEstimate,
    Sparing,
    Stepper,
    parse_rule,
    rollout,
)
from overtone.schedules import (
    Bursts,
    Choice,
    Constant,
    Cycle,
    Dwell,
    Explicit,
    RandomChoice,
    ReverseWarmup,
    Schedule,
    Shifted,
    Warmup,
    parse_schedule,
)
from overtone.version import __version__

if TYPE_CHECKING:
    from overtone import data
    from overtone.assess import assess
    from overtone.assess.plan import plan
    from overtone.evaluate import evaluate
    from overtone.export import export
    from overtone.report.figures.rollout import plot_rollout
    from overtone.rollout.calibrate import calibrate
    from overtone.train import recipes
    from overtone.train.fit import fit

LATER = {
    "assess": ("overtone.assess", "assess"),
    "calibrate": ("overtone.rollout.calibrate", "calibrate"),
    "data": ("overtone.data", ""),
    "evaluate": ("overtone.evaluate", "evaluate"),
    "export": ("overtone.export", "export"),
    "fit": ("overtone.train.fit", "fit"),
    "plan": ("overtone.assess.plan", "plan"),
    "plot_rollout": ("overtone.report.figures.rollout", "plot_rollout"),
    "recipes": ("overtone.train.recipes", ""),
}
"""Public names -> module, and what of it: files, training and figures are loaded when asked for."""


def __getattr__(name: str) -> Any:
    """Load what is not needed by everybody."""
    if name not in LATER:
        raise AttributeError(f"module 'overtone' has no attribute {name!r}")
    module, what = LATER[name]
    found = import_module(module)
    return getattr(found, what) if what else found


class _Face(ModuleType):
    """This package, whose public functions keep their names.

    A room may be called as its function is, such as `assess`. Python binds a package to its name in
    here once it is loaded; that would hide the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and LATER.get(name, ("", ""))[1]):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER})


__all__ = [
    "Adaptive",
    "Architecture",
    "Baseline",
    "Boundary",
    "Bursts",
    "CheckpointError",
    "Choice",
    "Constant",
    "Controller",
    "Cycle",
    "DataError",
    "Domain",
    "DomainError",
    "Dwell",
    "Emulator",
    "ErrorEstimate",
    "Explicit",
    "FlexibleStepper",
    "OvertoneError",
    "PatchError",
    "RandomChoice",
    "ReverseWarmup",
    "RolloutDiverged",
    "Schedule",
    "Shifted",
    "Sparing",
    "Stepper",
    "Warmup",
    "Window",
    "__version__",
    "assess",
    "baseline",
    "build",
    "calibrate",
    "data",
    "evaluate",
    "export",
    "fit",
    "flexify",
    "load",
    "parse_rule",
    "parse_schedule",
    "patch",
    "plan",
    "plot_rollout",
    "recipes",
    "rollout",
]
