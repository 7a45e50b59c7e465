"""The baselines by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overtone.baselines.afno import AFNO
from overtone.baselines.base import Baseline
from overtone.baselines.cnext_unet import CNextUNet
from overtone.baselines.coarse_solver import CoarseSolver
from overtone.baselines.extrapolation import Extrapolation
from overtone.baselines.ffno import FFNO
from overtone.baselines.fno import FNO, TFNO
from overtone.baselines.persistence import Persistence
from overtone.baselines.sinenet import SineNet
from overtone.baselines.transolver import Transolver
from overtone.baselines.unet import UNet
from overtone.domain import Domain
from overtone.errors import OvertoneError, suggest

BASELINES: dict[str, type[Baseline]] = {
    kind.name: kind
    for kind in (
        FNO,
        TFNO,
        FFNO,
        UNet,
        CNextUNet,
        AFNO,
        Transolver,
        SineNet,
        Persistence,
        Extrapolation,
        CoarseSolver,
    )
}
"""What models can be compared with, by name."""


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
    _one_of(size, kind.sizes, "size")
    for option in options:
        _one_of(option, kind.sizes["paper"], f"option of '{name}'")
    make: Any = kind
    return make(domain=domain, context=context, **{**kind.sizes[size], **options}).eval()


def find(name: str) -> type[Baseline]:
    """The class of a baseline."""
    _one_of(name, BASELINES, "baseline")
    return BASELINES[name]


def _one_of(value: str, known: Iterable[str], what: str) -> None:
    known = list(known)
    if value in known:
        return
    expected = f"one of {', '.join(known)}" if known else "none: it has no options"
    raise OvertoneError(f"{what} is {value!r}; expected {expected}{suggest(str(value), known)}")
