"""One door to every saved model."""

from __future__ import annotations

import json
from pathlib import Path

from overtone.baselines import Baseline
from overtone.baselines.base import KIND as BASELINE
from overtone.emulator import Emulator
from overtone.models.cvit import KIND as CVIT
from overtone.models.cvit import CViT
from overtone.storage import CONFIG, find_model


def load_model(path: str | Path) -> Emulator | Baseline | CViT:
    """Read a saved model, whatever kind it is. It is in evaluation mode.

    Args:
        path: a folder that a model's `save` wrote, or the folder of a training run that holds
            such folders.
    """
    kind = _kind(find_model(path))
    if kind == BASELINE:
        return Baseline.from_pretrained(path)
    if kind == CVIT:
        return CViT.from_pretrained(path)
    # Also for whatever can't be read: its errors say what is wrong with a folder.
    return Emulator.from_pretrained(path)


def _kind(folder: Path) -> object:
    try:
        config = json.loads((folder / CONFIG).read_text())
    except (OSError, ValueError):
        return None
    return config.get("kind") if isinstance(config, dict) else None
