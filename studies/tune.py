"""How each model is best trained: its form, chosen on the validation split, all from one grid.

A form is an optimizer, its peak learning rate, and whether the end of the training is unrolled. A
short training with each optimizer and rate, with the whole course of the rate from its warm-up to
its end, and one more of the best of them with its end unrolled; the lowest validation score wins.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from overtone.train.journal import SUMMARY
from studies.study import Training

RATES = {"adamw": (2e-3, 4e-3, 8e-3, 16e-3), "muon": (4e-3, 8e-3)}
"""What there is to choose from: optimizer -> peak learning rates."""
DECAYS = {"adamw": 1e-4, "muon": 0.1}
UNROLLED = {"train.unroll": 4, "train.unroll_from": 0.6}
PLAIN = {"train.unroll": 1, "train.unroll_from": 0.0}
PLAIN_FORMS: dict[str, dict[str, Any]] = {
    f"{kind}-{rate:g}": {
        "optimizer.kind": kind,
        "optimizer.lr": rate,
        "optimizer.weight_decay": DECAYS[kind],
        **PLAIN,
    }
    for kind, rates in RATES.items()
    for rate in rates
}
FORMS = PLAIN_FORMS | {f"{n}-unrolled": {**made, **UNROLLED} for n, made in PLAIN_FORMS.items()}
"""All forms: name -> settings."""
SHORTER = 4
"""How many times shorter the trainings are."""


def trials(training: Training) -> dict[str, Training]:
    """A short training with each optimizer and rate, without unrolling."""
    return {form: _trial(training, form) for form in PLAIN_FORMS}


def last_trial(training: Training, runs: Path) -> dict[str, Training]:
    """The best of the trials, which must have been trained, with its end unrolled."""
    form = f"{_best(_scores(trials(training), runs))}-unrolled"
    return {form: _trial(training, form)}


def best_form(training: Training, runs: Path) -> tuple[str, dict[str, float]]:
    """The form with the lowest score, and all scores. All trials must have been trained.

    Args:
        training: of which the trials were.
        runs: the folder that holds their runs.
    """
    scores = _scores({**trials(training), **last_trial(training, runs)}, runs)
    return _best(scores), scores


def score(run: Path) -> float:
    """The best validation score of a finished run; infinite if it never had a finite one."""
    best = json.loads((run / SUMMARY).read_text())["best"]
    return float("inf") if best is None else best


def _trial(training: Training, form: str) -> Training:
    train = training.config().train
    budget: dict[str, Any] = {"train.updates": max(training.config().num_updates // SHORTER, 1)}
    if train.max_cpu_minutes is not None:
        budget = {"train.max_cpu_minutes": train.max_cpu_minutes / SHORTER}
    return training.renamed(f"{training.name}-{form}", {**FORMS[form], **budget})


def _scores(trained: dict[str, Training], runs: Path) -> dict[str, float]:
    return {form: score(runs / trial.name) for form, trial in trained.items()}


def _best(scores: dict[str, float]) -> str:
    return min(scores, key=lambda form: scores[form])
