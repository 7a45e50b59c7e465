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


def has_no_scale(config: Mapping[str, Any]) -> bool:
    """Whether a folder was written before there was a scale: by version 0.1.

    Args:
        config: plain data, as read.
    """
    return str(config.get("overtone", "0.1")).split(".")[:2] == ["0", "1"]


def modern_weights(weights: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The named tensors of any version's folder as this version writes them.

    What an earlier version did not know is 0: changes in the context's own unit, and fields by its
    own standard deviation, as they were.

    Args:
        weights: as read.
        config: as read.
    """
    unknown = torch.zeros(len(_fields(config)))
    missing = {"pace": is_earlier(config), "scale": has_no_scale(config)}
    added = {name: unknown.clone() for name, early in missing.items() if early}
    return {**added, **weights}


def _fields(config: Mapping[str, Any]) -> list[Any]:
    """The names of the fields, wherever a kind of model has its domain; none if it has none."""
    for part in (config, config.get("architecture")):
        domain = part.get("domain") if isinstance(part, Mapping) else None
        if isinstance(domain, Mapping) and isinstance(domain.get("fields"), list):
            return domain["fields"]
    return []
