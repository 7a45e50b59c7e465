"""Names beside what they name, so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.text import Annotation, Text

GAP = 2.0
"""Pixels between two names."""
BEYOND = 9.0
"""Points between the right side of a panel and the names at the ends of its lines."""
ABOVE = 7.0
"""Points between the upper side of a panel and the names above it."""
FONT = 8.5


@dataclass(frozen=True)
class End:
    """Where a line ends, and how it is called.

    Attributes:
        x, y: in data units; of a line that leaves its panel upwards, where it does, and a y above.
        name: of the line.
        colour: of the line.
    """

    x: float
    y: float
    name: str
    colour: str


def write_ends(axes: Axes, ends: Sequence[End]) -> list[Annotation]:
    """Names on the right of a panel, in the order of their lines, each joined to its line's end.

    Names of lines that end above the panel stand above it, where they leave. The panel's limits
    must be final. Its figure is laid out by this call, with room for the names.
    """
    top = axes.get_ylim()[1]
    inside, above = ([e for e in ends if (e.y > top) == beyond] for beyond in (False, True))
    right = [_beside(axes, end) for end in inside]
    over = [
        axes.annotate(
            end.name, (end.x, 1.0), (0.5, 1.0 + ABOVE / 150), xycoords=axes.get_xaxis_transform(),
            textcoords="axes fraction", ha="center", va="bottom", fontsize=FONT, gid="end",
            annotation_clip=False,
        )
        for end in above
    ]  # fmt: skip
    figure = axes.figure
    figure.draw_without_rendering()  # pyright: ignore[reportAttributeAccessIssue]
    box, to_pixels = axes.get_window_extent(), figure.dpi / 72
    # An annotation's own extent holds its line, too.
    heights = [Text.get_window_extent(name).height for name in right]
    wanted = [float(axes.transData.transform((end.x, end.y))[1]) for end in inside]
    x = 1.0 + BEYOND * to_pixels / box.width
    for name, y in zip(right, spread(wanted, heights, GAP, (box.y0, box.y1)), strict=True):
        name.set_position((x, (y - box.y0) / box.height))
    widths = [name.get_window_extent().width for name in over]
    wanted = [float(axes.transData.transform((end.x, top))[0]) for end in above]
    places = spread(wanted, widths, 4 * GAP, (box.x0, float(figure.bbox.x1)))
    for name, place in zip(over, places, strict=True):
        height = 1.0 + ABOVE * to_pixels / box.height
        name.set_position(((place - box.x0) / box.width, height))
    return [*right, *over]


def _beside(axes: Axes, end: End) -> Annotation:
    """A name right of a panel, about where it belongs, for the layout."""
    line = {"arrowstyle": "-", "color": end.colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    return axes.annotate(
        end.name, (end.x, end.y), (1.0 + BEYOND / 500, 0.5), textcoords="axes fraction",
        va="center", fontsize=FONT, annotation_clip=False, gid="end",
        arrowprops={**line, "relpos": (0.0, 0.5)},
    )  # fmt: skip


def spread(
    wanted: Sequence[float],
    heights: Sequence[float],
    gap: float = 0.0,
    room: tuple[float, float] = (-math.inf, math.inf),
) -> list[float]:
    """Middles of boxes on a line, in the order of those wanted, that overlap nowhere.

    Of all such places those with the least sum of squared distances from the wanted ones: boxes
    that would overlap form a block whose mean distance is 0.

    Args:
        wanted: the middles as they should be.
        heights: of the boxes.
        gap: between two of them.
        room: lowest and highest place of any box; what does not fit goes beyond the highest.
    """
    if not wanted:
        return []
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[float]] = []  # of each: where its first box would be, and how many boxes
    offsets, total = [], 0.0
    for place, i in enumerate(order):
        if place:
            total += (heights[order[place - 1]] + heights[i]) / 2 + gap
        offsets.append(total)
        blocks.append([wanted[i] - total, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (last, count), (first, number) = blocks.pop(), blocks.pop()
            blocks.append([(last * count + first * number) / (count + number), count + number])
    # Cut off at the ends of the room, the places are still the best of those within it.
    lowest = room[0] + heights[order[0]] / 2
    highest = max(room[1] - heights[order[-1]] / 2 - total, lowest)
    starts = [
        min(max(first, lowest), highest) for first, count in blocks for _ in range(int(count))
    ]
    found = [0.0] * len(wanted)
    for i, start, offset in zip(order, starts, offsets, strict=True):
        found[i] = start + offset
    return found


Box = tuple[float, float, float, float]
"""Left, bottom, right and top in pixels."""

NEAR = ((9, 0), (-9, 0), (9, 11), (-9, 11), (9, -11), (-9, -11), (9, 22), (-9, -22))
"""Where a name may stand beside its point, in points; the first that is free is taken."""
FAR = tuple((dx, dy) for dy in (18, -18, 32, -32, 46, -46) for dx in (26, -26, 52, -52))
"""Places with a line to the point, where there are many points."""


@dataclass(frozen=True)
class Spot:
    """A point that is to be named.

    Attributes:
        x, y: in data units.
        name: of the point.
        low, high: ends of its error bar in data units.
        colour: of the point.
    """

    x: float
    y: float
    name: str
    low: float
    high: float
    colour: str


def write_beside(axes: Axes, spots: Sequence[Spot], *, crowded: bool) -> None:
    """Names beside points, where they cover neither points nor other names.

    The figure must be laid out already.

    Args:
        axes: where.
        spots: the points.
        crowded: whether names may stand further away, and are left out where no place is free.
    """
    to_pixels = axes.figure.dpi / 72
    centres = [axes.transData.transform((spot.x, spot.y)) for spot in spots]
    taken: list[Box] = [_box(x, y, 10 * to_pixels, 10 * to_pixels, 0.5) for x, y in centres]
    if crowded:
        taken += [_bar(axes, spot, 3 * to_pixels) for spot in spots]
    limits = axes.get_window_extent()
    for spot, (x, y) in zip(spots, centres, strict=True):
        drawn = axes.annotate(
            spot.name, (spot.x, spot.y), NEAR[0], textcoords="offset points", fontsize=8,
            va="center", ha="left", gid="name",
        )  # fmt: skip
        extent = drawn.get_window_extent()
        places = (*NEAR, *FAR) if crowded else NEAR
        boxes = {
            (dx, dy): _box(
                x + dx * to_pixels, y + dy * to_pixels, extent.width, extent.height,
                0.0 if dx > 0 else 1.0,
            )
            for dx, dy in places
        }  # fmt: skip
        costs = {
            place: sum(_overlap(box, other) for other in taken) + _outside(box, limits)
            for place, box in boxes.items()
        }
        best = min(places, key=lambda place: costs[place])
        if crowded and costs[best] > 0:
            drawn.remove()
            continue
        drawn.set_position(best)
        drawn.set_horizontalalignment("left" if best[0] > 0 else "right")
        taken.append(boxes[best])
        if best in FAR:
            axes.annotate(
                "", (spot.x, spot.y), best, textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": spot.colour, "linewidth": 0.6},
            )  # fmt: skip


def _bar(axes: Axes, spot: Spot, width: float) -> Box:
    """Where an error bar is drawn."""
    (x, low), (_, high) = axes.transData.transform([(spot.x, spot.low), (spot.x, spot.high)])
    return x - width / 2, low, x + width / 2, high


def _box(x: float, y: float, width: float, height: float, anchor: float) -> Box:
    """A box whose left side is `anchor` of its width left of x."""
    left = x - anchor * width
    return left, y - height / 2, left + width, y + height / 2


def _overlap(a: Box, b: Box) -> float:
    """Area that two boxes share, in square pixels."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def _outside(box: Box, limits: object) -> float:
    x0, y0, x1, y1 = limits.extents  # pyright: ignore[reportAttributeAccessIssue]
    return 1e3 * (box[0] < x0 or box[2] > x1 or box[1] < y0 or box[3] > y1)
