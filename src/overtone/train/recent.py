"""What happened since the last line of a run's log."""

from __future__ import annotations

import time
from typing import Any

from overtone.train.parallel import Ranks
from overtone.train.state import RunProgress


class Recent:
    """Sums over the updates since the last line of the log.

    Args:
        patches: those that may be drawn, as text.
    """

    def __init__(self, patches: list[str]) -> None:
        self.patches = patches
        self.reset()

    def reset(self) -> None:
        """Begin anew, after a line was written."""
        self.losses = dict.fromkeys(self.patches, 0.0)
        self.counts = dict.fromkeys(self.patches, 0)
        self.norm = self.waited = 0.0
        self.began = time.monotonic()

    def add(self, loss: float, norm: float, rate: float, patch: str) -> None:
        """Take in an update: its loss, gradient norm, learning rate and last patch."""
        self.losses[patch] += loss
        self.counts[patch] += 1
        self.norm, self.rate, self.patch = norm, rate, patch

    def values(self, progress: RunProgress, ranks: Ranks) -> dict[str, Any]:
        """What to log; losses are means over the updates and all ranks."""
        elapsed, count = time.monotonic() - self.began, sum(self.counts.values())
        totals = dict(zip(self.patches, ranks.total(list(self.losses.values())), strict=True))
        totals = {patch: total / ranks.world for patch, total in totals.items()}
        seen = [patch for patch in self.patches if self.counts[patch]]
        return {
            "loss": sum(totals.values()) / count,
            "losses": {patch: totals[patch] / self.counts[patch] for patch in seen},
            "lr": self.rate,
            "patch": self.patch,
            "gradient_norm": self.norm,
            "updates_per_second": count / max(elapsed, 1e-9),
            "waiting_for_data": self.waited / max(elapsed, 1e-9),
            "seconds": progress.seconds,
            "cpu_seconds": progress.cpu_seconds,
            "flops": progress.flops,
        }
