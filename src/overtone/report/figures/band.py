"""A rollout with the error that it told of itself, the true one, and the patches of its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch as Area
from matplotlib.ticker import MaxNLocator

from overtone.report.style import (
    BLUE,
    GREY,
    WIDE,
    NothingToDraw,
    add_legend,
    new_figure,
    patch_name,
    styled,
)
from overtone.report.style import text as label
from overtone.schedules import Patch

TINTS = {0.9: 0.18, 0.5: 0.34}
"""How dark the interval of a level is."""


@dataclass(frozen=True)
class Banded:
    """One rollout of one trajectory, S steps.

    Attributes:
        title: what it is.
        error: true VRMSE `(S,)`.
        value: estimated VRMSE `(S,)`.
        bounds: level -> lower and upper bounds `(S,)`.
        patches: of the steps.
        horizon: the last step that was calibrated; None if all were.
        note: what else there is to say of it, in a line above its patches.
    """

    title: str
    error: Sequence[float]
    value: Sequence[float]
    bounds: Mapping[float, tuple[Sequence[float], Sequence[float]]]
    patches: Sequence[Patch]
    horizon: int | None = None
    note: str = ""


@styled
def error_band(rollouts: Sequence[Banded]) -> Figure:
    """For each rollout its band with the true error in it, and the patches of its steps below."""
    if not rollouts:
        raise NothingToDraw("there is no rollout with estimates of its error")
    columns = len(rollouts)
    figure = new_figure(WIDE if columns > 1 else 0.72 * WIDE, 4.3)
    grid = figure.subplots(2, columns, squeeze=False, sharex="col", height_ratios=(4, 1))
    for column, (own, (above, below)) in enumerate(zip(rollouts, grid.T, strict=True)):
        _draw_band(above, own)
        _draw_patches(below, own.patches)
        above.set_title(label(own.title, 60))
        if own.note:
            below.set_title(label(own.note, 60), fontsize=8, color=GREY)
        if column == 0:
            above.set_ylabel("VRMSE, mean over fields")
            below.set_ylabel("patch")
    levels = sorted({level for own in rollouts for level in own.bounds}, reverse=True)
    handles = [
        Line2D([], [], color="black", marker="o", markersize=3, label="true error"),
        Line2D([], [], color=BLUE, linestyle="--", label="estimated, without the truth"),
        *(Area(color=BLUE, alpha=_tint(level), linewidth=0,
               label=f"{100 * level:.0f} % interval") for level in levels),
    ]  # fmt: skip
    add_legend(figure, handles, title="")
    return figure


def _tint(level: float) -> float:
    return TINTS.get(level, 0.25)


def _draw_band(panel: Axes, own: Banded) -> None:
    steps = range(1, len(own.value) + 1)
    for level in sorted(own.bounds, reverse=True):
        low, high = own.bounds[level]
        panel.fill_between(steps, low, high, color=BLUE, alpha=_tint(level), linewidth=0,
                           gid=f"interval {level}")  # fmt: skip
    panel.plot(steps, own.value, color=BLUE, linestyle="--", gid="estimate")
    panel.plot(steps, own.error, color="black", marker="o", markersize=2.5, linewidth=1.2,
               gid="truth")  # fmt: skip
    shown = [v for v in (*own.error, *own.value) if math.isfinite(v)]
    tops = [v for _, high in own.bounds.values() for v in high if math.isfinite(v)]
    panel.set_ylim(0, min(1.1 * max([*shown, *tops]), 3 * max(shown)) if shown else 1)
    if own.horizon is not None and own.horizon < len(own.value):
        panel.axvline(own.horizon + 0.5, color=GREY, linewidth=0.8, linestyle=":")
        panel.annotate(" calibrated up to here", (own.horizon + 0.5, 0.98), va="top", fontsize=8,
                       xycoords=("data", "axes fraction"), color=GREY, ha="left")  # fmt: skip


def _draw_patches(panel: Axes, patches: Sequence[Patch]) -> None:
    """A block for each step, higher for a coarser patch, in that patch's colour."""
    known = sorted(set(patches), key=lambda p: p if isinstance(p, tuple) else (p,))
    places = {patch: place for place, patch in enumerate(known)}
    for patch in known:
        steps = [step for step, own in enumerate(patches, start=1) if own == patch]
        panel.bar(steps, [1.0] * len(steps), bottom=[places[patch] - 0.5] * len(steps), width=0.9,
                  color=GREY, gid=f"patch {patch_name(patch)}")  # fmt: skip
    panel.set_yticks(range(len(known)), [patch_name(patch) for patch in known])
    panel.set_ylim(-0.6, len(known) - 0.4)
    panel.set_xlabel("rollout step")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(False)
