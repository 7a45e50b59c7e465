"""How each model is best trained: its form, chosen on the validation split, all from one grid.

A form is a peak learning rate, and whether the end of the training is unrolled. A short training
with each, with the whole course of the rate from its warm-up to its end; the lowest validation
score wins.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

from overtone.train.journal import SUMMARY
from studies.study import Training

RATES = (2e-3, 4e-3, 8e-3)
UNROLLED = {"train.unroll": 4, "train.unroll_from": 0.6}
PLAIN = {"train.unroll": 1, "train.unroll_from": 0.0}
FORMS: dict[str, dict[str, Any]] = {
    f"lr{rate:g}{suffix}": {"optimizer.lr": rate, **steps}
    for rate, (suffix, steps) in product(RATES, (("", PLAIN), ("-unrolled", UNROLLED)))
}
"""What there is to choose from: name -> settings."""
SHORTER = 4
"""How many times shorter the trainings are."""


def trials(training: Training) -> dict[str, Training]:
    """A short training in each form."""
    train = training.config().train
    budget: dict[str, Any] = {"train.updates": max(training.config().num_updates // SHORTER, 1)}
    if train.max_cpu_minutes is not None:
        budget = {"train.max_cpu_minutes": train.max_cpu_minutes / SHORTER}
    return {
        form: training.renamed(f"{training.name}-{form}", {**settings, **budget})
        for form, settings in FORMS.items()
    }


def best_form(training: Training, runs: Path) -> tuple[str, dict[str, float]]:
    """The form with the lowest score, and all scores. All trials must have been trained.

    Args:
        training: of which the trials were.
        runs: the folder that holds their runs.
    """
    scores = {form: score(runs / trial.name) for form, trial in trials(training).items()}
    return min(scores, key=lambda form: scores[form]), scores


def score(run: Path) -> float:
    """The best validation score of a finished run; infinite if it never had a finite one."""
    best = json.loads((run / SUMMARY).read_text())["best"]
    return float("inf") if best is None else best
