"""Other people's models and two that need no training, behind the interface of an emulator."""

from overtone.baselines.base import Baseline
from overtone.baselines.registry import BASELINES, create, find

__all__ = ["BASELINES", "Baseline", "create", "find"]
