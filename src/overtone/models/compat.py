"""Folders of older versions, brought up to date as they are read.

Whatever later versions added to a model folder is filled in here with what it was before, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

ADDED_TO_ARCHITECTURES = {"window": 8, "mode_blocks": 8, "refine": 0}
"""Numbers of an emulator that the first versions had no choice in."""
RENAMED_BASELINES = {"afno": "afno_net"}
"""Baselines that shared their name with another model."""


def modern_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A folder's configuration as this version writes it.

    Args:
        config: plain data, as read.
    """
    # Emulators' folders named no kind.
    modern: dict[str, Any] = {"kind": "emulator", **config}
    if modern["kind"] == "emulator" and isinstance(modern.get("architecture"), Mapping):
        modern["architecture"] = {**ADDED_TO_ARCHITECTURES, **modern["architecture"]}
    if modern["kind"] == "baseline":
        modern["name"] = RENAMED_BASELINES.get(modern.get("name", ""), modern.get("name"))
    return modern


def modern_weights(weights: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """A folder's named tensors as this version writes them.

    Args:
        weights: as read.
        config: from `modern_config`.
    """
    modern = dict(weights)
    if "pace" not in modern:
        # 0: changes are predicted in the context's own unit, as they were before there was a pace.
        domain = config.get("domain") or config.get("architecture", {}).get("domain", {})
        modern["pace"] = torch.zeros(len(domain.get("fields", ())))
    return modern
