"""Persistence: tomorrow is like today. The least that a model must beat."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from overtone.baselines.base import Baseline, Sizes
from overtone.domain import Domain, Window
from overtone.grid import PatchGrid
from overtone.normalize import Statistics, statistics


class Persistence(Baseline):
    """The last frame again, exactly. No weights, nothing to train.

    Args:
        domain: what it is built for.
        context: number of frames that a window must have.
    """

    name = "persistence"
    sizes: ClassVar[Sizes] = {"paper": {}, "mini": {}}

    def __init__(self, *, domain: Domain, context: int):
        super().__init__(domain, context, {})

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """No change."""
        return torch.zeros_like(window.fields[:, -1:]), statistics(window.fields).last()
