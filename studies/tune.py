"""A peak learning rate for each family, chosen on the validation split, all from one grid.

A short training with each rate, of a tenth of the updates and with the whole course of the rate
from its warm-up to its end; the lowest validation score wins.
"""

from __future__ import annotations

import json
from pathlib import Path

from overtone.train.run import SUMMARY
from studies.study import Training

RATES = (1e-3, 2e-3, 4e-3)
SHORTER = 10
"""How many times shorter the trainings are."""


def trials(training: Training) -> dict[float, Training]:
    """A short training for each rate."""
    updates = max(training.config().num_updates // SHORTER, 1)
    return {
        rate: training.renamed(
            f"{training.name}-lr{rate:g}", {"optimizer.lr": rate, "train.updates": updates}
        )
        for rate in RATES
    }


def best_rate(training: Training, runs: Path) -> tuple[float, dict[float, float]]:
    """The rate with the lowest score, and all scores. All trials must have been trained.

    Args:
        training: of which the trials were.
        runs: the folder that holds their runs.
    """
    scores = {rate: score(runs / trial.name) for rate, trial in trials(training).items()}
    return min(scores, key=lambda rate: scores[rate]), scores


def score(run: Path) -> float:
    """The best validation score of a finished run; infinite if it never had a finite one."""
    best = json.loads((run / SUMMARY).read_text())["best"]
    return float("inf") if best is None else best
