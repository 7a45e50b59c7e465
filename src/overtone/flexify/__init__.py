"""Making somebody else's fixed-patch model flexible: `flexify`, `patch` and a stepper for it."""

from overtone.flexify.convert import flexify
from overtone.flexify.patching import patch
from overtone.flexify.stepper import FlexibleStepper

__all__ = ["FlexibleStepper", "flexify", "patch"]
