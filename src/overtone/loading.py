"""One door to every saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from overtone.baselines import Baseline
from overtone.emulator import Emulator
from overtone.flexify import FlexibleStepper
from overtone.model import Model
from overtone.models import CViT
from overtone.storage import load_folder

KINDS: tuple[type[Model], ...] = (Emulator, CViT, Baseline, FlexibleStepper)


def load_model(path: str | Path) -> Model:
    """Read a saved model, whatever kind it is. It is in evaluation mode.

    Args:
        path: a folder that a model's `save` wrote, the folder of a training run that holds such
            folders, or the name of a model that comes with the package.
    """
    return load_with_config(path)[0]


def load_with_config(path: str | Path) -> tuple[Model, dict[str, Any]]:
    """Read a saved model, and all that its folder's configuration says."""
    weights, config = load_folder(path)
    # Emulators' folders name no kind.
    kind = next((kind for kind in KINDS if kind.kind == config.get("kind")), Emulator)
    return kind.restore(weights, config, path), config
