"""Extrapolation: what changed will go on changing. Hard to beat for one step, useless for many."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from overtone.baselines.base import Baseline, Sizes
from overtone.domain import Domain, Window
from overtone.errors import OvertoneError
from overtone.grid import PatchGrid
from overtone.normalize import Statistics, statistics


class Extrapolation(Baseline):
    """The last frame and once more the change that led to it. No weights, nothing to train.

    Args:
        domain: what it is built for.
        context: number of frames that a window must have, at least 2.
    """

    name = "extrapolation"
    sizes: ClassVar[Sizes] = {"paper": {}, "mini": {}}

    def __init__(self, *, domain: Domain, context: int):
        if context < 2:
            raise OvertoneError(f"context is {context}; extrapolation needs at least 2 frames")
        super().__init__(domain, context, {})

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """The last change again."""
        stats = statistics(window.fields).last()
        before, last = window.fields[:, -2:-1], window.fields[:, -1:]
        return stats.change_between(before, last), stats
