"""Overtone: transformer emulators of PDEs, one model for many patch sizes, clean long rollouts."""

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
from overtone.rollout import Stepper, rollout
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

__all__ = [
    "Architecture",
    "Baseline",
    "Boundary",
    "Bursts",
    "CheckpointError",
    "Choice",
    "Constant",
    "Cycle",
    "DataError",
    "Domain",
    "DomainError",
    "Dwell",
    "Emulator",
    "Explicit",
    "FlexibleStepper",
    "OvertoneError",
    "PatchError",
    "RandomChoice",
    "ReverseWarmup",
    "RolloutDiverged",
    "Schedule",
    "Shifted",
    "Stepper",
    "Warmup",
    "Window",
    "__version__",
    "baseline",
    "build",
    "flexify",
    "load",
    "parse_schedule",
    "patch",
    "rollout",
]
