"""Training curves of one run, from the `metrics.jsonl` that training writes.

Each line is a JSON object: `{"kind": "train", "update", "losses": {patch: …}, "lr", …}` with means
over the updates since the line before, and after a validation `{"kind": "valid", "update",
"vrmse": {patch: …}, "rollout"}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from overtone.errors import DataError
from overtone.guard.names import shown
from overtone.report.figures.steps import VRMSE
from overtone.report.runaway import mark_level, sign_handle
from overtone.report.style import (
    WIDE,
    Look,
    NothingToDraw,
    Panel,
    add_legend,
    add_quietly,
    assign,
    fit_scale,
    new_figure,
    schedule_handles,
    styled,
    yardstick_line,
)
from overtone.train.journal import METRICS, read_journal, yardsticks_of

NUM_BINS = 60
"""A loss curve is drawn as means over this many stretches of updates."""
MAX_DOTS = 2000
"""Single losses drawn behind a curve."""
NEEDED = {"train": ("losses", "lr"), "valid": ("vrmse",)}
"""Entries of lines by which curves are drawn."""


@styled
def training_curves(
    run: str | Path | Sequence[Mapping[str, Any]], *, known: dict[str, Look] | None = None
) -> Figure:
    """Loss and learning rate by update; validation errors by patch and of the rollout.

    Args:
        run: `metrics.jsonl`, or the folder of the run that holds it, or what its lines hold.
        known: looks of patches as constant schedules; ours by default.
    """
    kept = isinstance(run, (str, Path))
    records = read_metrics(run) if kept else [_record(line) for line in run]
    train = [r for r in records if r["kind"] == "train"]
    valid = [r for r in records if r["kind"] == "valid"]
    if not train and not valid:
        name = f"'{run}'" if kept else "the run"
        raise NothingToDraw(f"{name} has no training or validation metrics")
    patches = sorted(
        {patch for r in train for patch in r["losses"]}
        | {patch for r in valid for patch in r["vrmse"]},
        key=_order,
    )
    known = assign(patches) | {p: look for p, look in (known or {}).items() if p in patches}
    figure = new_figure(WIDE, 5.2)
    grid = figure.subplots(2, 2, sharex=True, height_ratios=(3, 1), squeeze=False)
    _draw_losses(grid[0, 0], train, known)
    _draw_rates(grid[1, 0], train)
    _draw_errors(grid[0, 1], valid, known)
    _draw_rollout(grid[1, 1], valid)
    bare = {name: errors for r in valid for name, errors in r["yardsticks"].items()}
    signs: list[bool] = []
    for name, errors in bare.items():
        for axes, value in ((grid[0, 1], errors["vrmse"]), (grid[1, 1], errors["rollout"])):
            level = [] if value is None else [value] * 2
            add_quietly(axes, yardstick_line(name, [0, 1][: len(level)], level), level=True)
            signs += [mark_level(axes, value)] if value is not None else []
    for axes in grid[1]:
        axes.set(xlabel="update")
    handles = schedule_handles({patch: patch for patch in patches}, known)
    handles += [*map(yardstick_line, bare), *([sign_handle()] if any(signs) else [])]
    add_legend(figure, handles, title="patch")
    return figure


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Records of a run; lines that can't be read are left out, with a warning."""
    path = Path(path)
    path = path / METRICS if path.is_dir() else path
    if not path.is_file():
        raise DataError(f"'{path}' can't be read as training metrics: there is no such file")
    return [_record(line) for line in read_journal(path, NEEDED)]


def _record(line: Mapping[str, Any]) -> dict[str, Any]:
    """What is drawn of a line, with NaN for null."""
    kind = line["kind"]
    record = {"kind": kind, "update": line["update"]}
    if kind == "train":
        record["lr"] = _number(line["lr"])
        record["losses"] = {patch: _number(loss) for patch, loss in line["losses"].items()}
    if kind == "valid":
        record["vrmse"] = {patch: _number(error) for patch, error in line["vrmse"].items()}
        record["rollout"] = _number(line.get("rollout"))
        record["yardsticks"] = yardsticks_of(line)
    return record


def _number(value: float | None) -> float:
    """NaN for null, which stands for numbers that JSON does not know."""
    return math.nan if value is None else float(value)


def _order(patch: str) -> tuple[int, str]:
    head = patch.partition("x")[0]
    return (int(head) if head.isdigit() else 0, patch)


def _draw_losses(axes: Panel, train: list[dict[str, Any]], known: dict[str, Look]) -> None:
    axes.set(ylabel="training loss", title="training")
    for index, (patch, look) in enumerate(known.items()):
        points = np.array(
            [(r["update"], r["losses"][patch]) for r in train if patch in r["losses"]]
        )
        if not len(points):
            continue
        every = -(-len(points) // MAX_DOTS)
        axes.plot(*points[::every].T, ".", color=look.colour, markersize=2, alpha=0.25)
        bins = np.array_split(points, min(NUM_BINS, len(points)))
        means = np.array([part.mean(axis=0) for part in bins])
        axes.plot(*means.T, gid=shown(f"loss {patch}"), **look.curve(len(means), first=index))
    fit_scale(axes, "y", [loss for r in train for loss in r["losses"].values()])


def _draw_rates(axes: Panel, train: list[dict[str, Any]]) -> None:
    axes.set(ylabel="learning rate")
    axes.plot([r["update"] for r in train], [r["lr"] for r in train], color="black", gid="rate")
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))


def _draw_errors(axes: Panel, valid: list[dict[str, Any]], known: dict[str, Look]) -> None:
    axes.set(ylabel=f"next-step {VRMSE}", title="validation")
    for index, (patch, look) in enumerate(known.items()):
        points = [(r["update"], r["vrmse"][patch]) for r in valid if patch in r["vrmse"]]
        if points:
            style = look.curve(len(points), first=index)
            axes.plot(*zip(*points, strict=True), gid=shown(f"valid {patch}"), **style)
    fit_scale(axes, "y", [value for r in valid for value in r["vrmse"].values()])


def _draw_rollout(axes: Panel, valid: list[dict[str, Any]]) -> None:
    axes.set(ylabel="rollout VRMSE")
    points = [(r["update"], r["rollout"]) for r in valid if math.isfinite(r["rollout"])]
    if points:
        axes.plot(*zip(*points, strict=True), "k.-", gid="rollout")
    fit_scale(axes, "y", [value for _, value in points])
