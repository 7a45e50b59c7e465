"""Panels of one size."""

import math

import pytest

from overtone.report.multiples import grid_of_panels, mark_end, panels, plot_steps
from overtone.report.style import assign, new_figure
from overtone.results import Estimate


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_as_many_panels_as_asked_for_with_common_axes(count):
    figure, grid = panels(count)
    assert len(figure.axes) == len(grid) == count
    grid[-1].set(xlim=(0, 7), ylim=(2, 3))
    assert {(axes.get_xlim(), axes.get_ylim()) for axes in grid} == {((0, 7), (2, 3))}


def test_columns_may_have_their_own_scale():
    _, grid = grid_of_panels(2, 3, common=False)
    grid[0, 0].set(ylim=(2, 3))
    assert grid[1, 0].get_ylim() == (2, 3)
    assert grid[0, 1].get_ylim() != (2, 3)


def test_seeds_are_drawn_only_if_there_are_several():
    axes = new_figure(3, 3).subplots()
    look = assign(["16"])["16"]
    one, two = ([Estimate(value=x, low=x - 1, high=x + 1) for x in y] for y in ((1, 2), (3, 4)))
    plot_steps(axes, one, [one], look)
    assert (len(axes.get_lines()), len(axes.collections)) == (1, 1)
    plot_steps(axes, one, [one, two], look)
    assert (len(axes.get_lines()), len(axes.collections)) == (4, 1)


def test_a_cross_marks_the_last_finite_value():
    axes = new_figure(3, 3).subplots()
    mark_end(axes, [1.0, 2.0, math.nan], 3, "black")
    mark_end(axes, [1.0, 2.0, 3.0], 3, "black")
    (cross,) = axes.get_lines()
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([2], [2.0])
