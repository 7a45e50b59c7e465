"""Names that cover nothing: places on a line, and the boxes that are drawn."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.report.labels import End, Spot, spread, write_beside, write_ends
from overtone.report.style import new_figure


def overlap(one, other):
    return one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1


def drawn_boxes(axes, gid):
    """Extents of texts, without the lines that join them to something."""
    from matplotlib.text import Text

    axes.figure.canvas.draw()
    return [Text.get_window_extent(text) for text in axes.texts if text.get_gid() == gid]


def test_boxes_with_room_stay_where_they_are():
    assert spread([5.0, 1.0, 9.0], [2, 2, 2]) == [5.0, 1.0, 9.0]
    assert spread([], []) == []


def test_two_at_one_place_part_evenly():
    assert spread([3.0, 3.0], [2, 4], gap=1.0) == [1.0, 5.0]


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(0.5, 9)), min_size=1, max_size=9),
    st.floats(0, 3),
)
def test_no_two_boxes_overlap_and_none_could_be_closer(pairs, gap):
    wanted, heights = zip(*pairs, strict=True)
    found = spread(wanted, heights, gap)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    for a, b in itertools.pairwise(order):
        assert found[b] - found[a] >= (heights[a] + heights[b]) / 2 + gap - 1e-9
    # The least sum of squares: no block of touching boxes gains by moving as a whole.
    cost = sum((f - w) ** 2 for f, w in zip(found, wanted, strict=True))
    for i in range(len(order)):
        for step in (-0.01, 0.01):
            for block in (order[i:], order[: i + 1]):
                moved = [f + step * (k in block) for k, f in enumerate(found)]
                legal = all(
                    moved[b] - moved[a] >= (heights[a] + heights[b]) / 2 + gap - 1e-9
                    for a, b in itertools.pairwise(order)
                )
                new = sum((f - w) ** 2 for f, w in zip(moved, wanted, strict=True))
                assert not legal or new >= cost - 1e-9


def test_the_room_holds_all_boxes_that_fit():
    found = spread([0.1, 0.2, 0.3], [2, 2, 2], room=(0.0, 10.0))
    assert found == pytest.approx([1, 3, 5])
    assert spread([9.9, 9.95], [2, 2], room=(0.0, 10.0)) == pytest.approx([7, 9])


@pytest.mark.parametrize("spacing", [0.0, 1e-4, 0.02, 0.3])
def test_names_of_eight_lines_with_near_equal_ends(spacing):
    figure = new_figure(9.5, 4.2)
    axes = figure.subplots()
    axes.set(yscale="log", ylim=(1e-3, 2.0), xlim=(0, 41))
    values = [0.1 * (1 + spacing) ** i for i in range(8)]
    ends = [End(40, y, f"model number {i}, 4-8-16", "black") for i, y in enumerate(values)]
    write_ends(axes, ends)
    boxes = drawn_boxes(axes, "end")
    assert len(boxes) == 8
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)
    panel, page = axes.get_window_extent(), figure.bbox
    for box in boxes:
        assert box.x0 >= panel.x1, "a name covers the panel"
        assert box.x1 <= page.x1 + 1, "a name is cut off"
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1
    middles = [(box.y0 + box.y1) / 2 for box in boxes]
    assert middles == sorted(middles), "names are in the order of their lines"


def test_lines_that_leave_are_named_above_the_panel():
    figure = new_figure(9.5, 4.2)
    axes = figure.subplots()
    axes.set(xlim=(0, 40), ylim=(0, 2))
    write_ends(axes, [End(x, np.inf, f"unet number {x}", "red") for x in (5, 6, 7)])
    boxes, top = drawn_boxes(axes, "end"), axes.get_window_extent().y1
    assert all(box.y0 > top for box in boxes)
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)


def test_where_there_are_many_points_names_without_a_place_are_left_out():
    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    figure.draw_without_rendering()
    spots = [Spot(0.5 + 0.001 * i, 0.5, f"4-8-16 {i}", 0.3, 0.7, "black") for i in range(40)]
    write_beside(axes, spots, crowded=True)
    boxes = drawn_boxes(axes, "name")
    assert 4 < len(boxes) < 40
    bar = axes.transData.transform([(0.5, 0.3), (0.54, 0.7)])
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)
    for box in boxes:
        assert not (box.x0 < bar[1, 0] and bar[0, 0] < box.x1 and box.y0 < bar[1, 1]
                    and bar[0, 1] < box.y1)  # fmt: skip
