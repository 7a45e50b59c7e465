"""What a training cost: its validation score by time, and how fast it went."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from overtone.report.figures.steps import VRMSE
from overtone.report.style import (
    BLUE,
    GREY,
    VERMILION,
    WIDE,
    NothingToDraw,
    fit_scale,
    new_figure,
    styled,
)
from overtone.train.journal import METRICS, NEEDED, read_journal, score_of


@styled
def training_cost(folder: str | Path) -> Figure:
    """The validation score against minutes; updates a second, and the share of waiting for data.

    Args:
        folder: of the run.
    """
    lines = read_journal(Path(folder) / METRICS, NEEDED)
    train = [line for line in lines if line["kind"] == "train"]
    scores = _scores(lines)
    if not train and not scores:
        raise NothingToDraw(f"'{folder}' has no training or validation metrics")
    figure = new_figure(WIDE, 3.2)
    left, right = figure.subplots(1, 2)
    left.set(xlabel="time of training (minutes)", ylabel=f"validation score\n{VRMSE}")
    if scores:
        left.plot(*zip(*scores, strict=True), "o-", color=BLUE, gid="score")
        best = min(scores, key=lambda pair: pair[1])
        left.plot(*best, "o", color=VERMILION, markersize=9, zorder=4, gid="best")
        left.annotate("best", best, (0, 8), textcoords="offset points", ha="center", fontsize=9)
        left.margins(y=0.15)
    fit_scale(left, "y", [score for _, score in scores])
    _draw_speed(right, train)
    return figure


def _scores(lines: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Minutes of training and score of each validation that did not blow up."""
    found: list[tuple[float, float]] = []
    minutes = 0.0
    for line in lines:
        if line["kind"] == "train":
            minutes = (line["seconds"] or 0.0) / 60
        if line["kind"] == "valid" and math.isfinite(score := score_of(line)):
            found.append((minutes, score))
    return found


def _draw_speed(axes: Any, train: list[dict[str, Any]]) -> None:
    axes.set(xlabel="update", ylabel="updates in a second")
    known = [line for line in train if line.get("updates_per_second")]
    updates = [line["update"] for line in known]
    axes.plot(updates, [line["updates_per_second"] for line in known], color=GREY, gid="speed")
    axes.set_ylim(bottom=0)
    waiting = axes.twinx()
    waiting.grid(visible=False)
    waiting.spines.right.set_visible(True)
    shares = [100 * (line.get("waiting_for_data") or 0.0) for line in known]
    waiting.plot(updates, shares, color=VERMILION, linestyle=(0, (5, 2)), gid="waiting")
    waiting.set_ylim(0, 100)
    waiting.set_ylabel("waiting for data (%), dashed", color=VERMILION)
