"""Folders of older versions, brought up to date as they are read.

Whatever later versions added to a model folder is filled in here with what it was before, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

ADDED_TO_ARCHITECTURES = {
    "window": 8,
    "mode_blocks": 8,
    "refine": 0,
    "time": "attend",
    "skip": False,
    "mlp": "beside",
}
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
        name = modern.get("name")
        modern["name"] = RENAMED_BASELINES.get(name, name) if isinstance(name, str) else name
    return modern


def is_earlier(config: Mapping[str, Any]) -> bool:
    """Whether a folder was written before there was a pace, by what its configuration lacks.

    Args:
        config: plain data, as read.
    """
    return "kind" not in config or str(config.get("name")) in RENAMED_BASELINES


def modern_weights(weights: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The named tensors of an earlier version's folder as this version writes them.

    Args:
        weights: as read.
        config: from `modern_config`.
    """
    modern = dict(weights)
    if "pace" not in modern:
        # 0: changes are predicted in the context's own unit, as they were before there was a pace.
        modern["pace"] = torch.zeros(len(_fields(config)))
    return modern


def _fields(config: Mapping[str, Any]) -> list[Any]:
    """The names of the fields, wherever a kind of model has its domain; none if it has none."""
    for part in (config, config.get("architecture")):
        domain = part.get("domain") if isinstance(part, Mapping) else None
        if isinstance(domain, Mapping) and isinstance(domain.get("fields"), list):
            return domain["fields"]
    return []
