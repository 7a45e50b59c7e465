"""The baselines by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from overtone.domain import Domain
from overtone.errors import OvertoneError, require_one_of

if TYPE_CHECKING:
    from overtone.baselines.base import Baseline

BASELINES = {
    "fno": ("fno", "FNO"),
    "tfno": ("fno", "TFNO"),
    "ffno": ("ffno", "FFNO"),
    "unet": ("unet", "UNet"),
    "cnext_unet": ("unet", "CNextUNet"),
    "afno_net": ("afno", "AFNO"),
    "transolver": ("transolver", "Transolver"),
    "sinenet": ("sinenet", "SineNet"),
    "persistence": ("untrained", "Persistence"),
    "extrapolation": ("untrained", "Extrapolation"),
    "coarse_solver": ("untrained", "CoarseSolver"),
}
"""What models can be compared with: name -> module and class, imported when asked for."""


def create(
    name: str, *, domain: Domain, context: int = 6, size: str = "paper", **options: Any
) -> Baseline:
    """Build an untrained baseline, in evaluation mode (call `.train()` to train it).

    Args:
        name: one of `BASELINES`.
        domain: what it will be trained on.
        context: number of frames it looks back on.
        size: `"paper"`, the configuration of the paper's comparisons, or `"mini"`, for a CPU.
        options: single numbers that differ from the size's; each class documents its own.
    """
    kind = find(name)
    require_one_of(size, kind.sizes, "size")
    known = kind.sizes["paper"]
    for option in options:
        if not known:
            raise OvertoneError(f"option of '{name}' is {option!r}; it has no options")
        require_one_of(option, known, f"option of '{name}'")
    make: Any = kind
    return make(domain=domain, context=context, **{**kind.sizes[size], **options}).eval()


def find(name: str) -> type[Baseline]:
    """The class of a baseline."""
    require_one_of(name, BASELINES, "baseline")
    module, kind = BASELINES[name]
    return getattr(import_module(f"overtone.baselines.{module}"), kind)
