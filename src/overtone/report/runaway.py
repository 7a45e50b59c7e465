"""Rollouts that run off: they move no axis, and a sign stands where they leave a panel.

An error that grows without bounds would squash all others into a line. Axes are laid by what comes
before: of each rollout the steps up to the first whose VRMSE is above `LOST`, or not finite. Where
nothing comes before in any rollout, all that is finite counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from overtone.report.series import Series

LOST = 2.0
"""VRMSE above which a rollout has run off: a frame of the right statistics that has nothing to do
with the truth is at √2."""
MARGIN = 0.06
"""Share of an axis that is left free at its ends."""
SIGN = "leaves the panel"
"""What the sign is called in a legend."""


def sound_steps(s: Series) -> int:
    """How many steps come before a rollout runs off; all of them if it does not."""
    for step, estimate in enumerate(s.curve):
        if not estimate.value <= LOST:  # also what is not a number
            return step
    return len(s.curve)


def runs_off(s: Series) -> bool:
    """Whether a rollout runs off at some step, or ends as it is not finite."""
    return s.blow_up is not None or sound_steps(s) < len(s.curve)


def counted(
    found: Sequence[Series], pick: Callable[[Series], Sequence[float]]
) -> tuple[list[float], bool]:
    """The values by which an axis is laid, and whether some that are drawn are not among them.

    Args:
        found: all series that are drawn.
        pick: the values of a series at each step.
    """
    every = [value for s in found for value in pick(s) if math.isfinite(value)]
    kept = [value for s in found for value in pick(s)[: sound_steps(s)] if math.isfinite(value)]
    return (kept, len(kept) < len(every)) if kept else (every, False)


def limit(axes: Axes, values: Iterable[float]) -> None:
    """Let the y axis span some values and no others, with a margin; its scale is known by now."""
    log = axes.get_yscale() == "log"
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not known:
        return
    low, high = min(known), max(known)
    if log:
        room = max(high / low, 1.5) ** MARGIN
        axes.set_ylim(low / room, high * room)
    else:
        room = MARGIN * (high - low) or 0.1 * abs(high) or 1.0
        axes.set_ylim(low - room, high + room)


def leaving(axes: Axes, x: Sequence[float], y: Sequence[float]) -> tuple[float, bool] | None:
    """Where a line first leaves its panel, and whether upwards; None if it stays within.

    The panel's limits must be final.

    Args:
        axes: the panel.
        x, y: of the line, in data units; NaN is a gap.
    """
    bottom, top = axes.get_ylim()
    for i, value in enumerate(y):
        if not (math.isnan(value) or bottom <= value <= top):
            edge, before = top if value > top else bottom, max(i - 1, 0)
            place = _crossing(axes, (x[before], y[before]), (x[i], value), edge)
            return place, value > top
    return None


def mark_leaving(axes: Axes, line: Line2D) -> bool:
    """A triangle where a line first leaves its panel; whether it does."""
    x, y = (np.asarray(values, dtype=float).tolist() for values in line.get_data())
    if (found := leaving(axes, x, y)) is None:
        return False
    place, above = found
    axes.plot(
        [place], [1.0 if above else 0.0], marker="^" if above else "v", markersize=8,
        color=line.get_color(), markeredgecolor="white", linestyle="", clip_on=False, zorder=6,
        transform=axes.get_xaxis_transform(), gid="leaves", scalex=False, scaley=False,
    )  # fmt: skip
    return True


def mark_level(axes: Axes, value: float) -> bool:
    """A triangle at the right end of the edge beyond which a level line lies; whether it does."""
    bottom, top = axes.get_ylim()
    if np.isnan(value) or bottom <= value <= top:
        return False
    axes.plot(
        [0.985], [1.0 if value > top else 0.0], marker="^" if value > top else "v", markersize=8,
        color="#808080", markeredgecolor="white", linestyle="", clip_on=False, zorder=6,
        transform=axes.transAxes, gid="leaves",
    )  # fmt: skip
    return True


def _crossing(
    axes: Axes, before: tuple[float, float], after: tuple[float, float], edge: float
) -> float:
    """The x at which a stretch of a line meets an edge of its panel; its end if it has no length.

    On a logarithmic axis the line is straight in the logarithm.
    """
    log = axes.get_yscale() == "log"
    heights = [before[1], after[1], edge]
    if before == after or not all(math.isfinite(y) and (y > 0 or not log) for y in heights):
        return after[0]
    a, b, level = map(math.log, heights) if log else heights
    return before[0] + min(max((level - a) / (b - a), 0.0), 1.0) * (after[0] - before[0])


def sign_handle() -> Line2D:
    """The legend's entry of the sign."""
    return Line2D([], [], marker="^", markersize=8, color="#444444", linestyle="", label=SIGN)
