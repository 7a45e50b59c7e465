"""The best schedule of each model."""

import itertools

import pytest
from matplotlib.text import Text

from overtone.report.figures.best import best_errors
from overtone.report.figures.dial import rollout_dial
from overtone.report.style import NothingToDraw, looks


def test_one_line_for_each_model_of_its_lowest_error(make_model, make_results):
    results = make_results([make_model(), make_model("other", schedules=["16", "16+shift"])])
    (axes,) = best_errors(results).axes
    names = [text.get_text() for text in axes.texts]
    assert names == ["csm, 4", "other, 16+shift"]
    lines = [line for line in axes.get_lines() if line.get_linewidth() > 1]
    values = [[e.value for e in model.runs[-1].vrmse] for model in results.models]
    assert [list(line.get_ydata()) for line in lines] == values
    known = looks(results)
    assert [line.get_color() for line in lines] == [known[s].colour for s in ("4", "16+shift")]


@pytest.mark.parametrize("steps", [2, 20])
def test_steps_are_whole_numbers(make_model, make_results, steps):
    models = [make_model(name, steps=steps) for name in ("csm", "other")]
    (axes,) = best_errors(make_results(models, steps=steps)).axes
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert len(ticks) >= 2
    assert all(tick == round(tick) for tick in ticks)


def test_markers_are_those_of_the_dial(make_model, make_bare, make_results):
    results = make_results([make_model(), make_bare("unet"), make_bare("fno")])
    (axes,) = best_errors(results).axes
    lines = [line for line in axes.get_lines() if line.get_linewidth() > 1]
    points = rollout_dial(results).axes[-1].containers
    markers = {point.lines[0].get_marker() for point in points}
    assert {line.get_marker() for line in lines} == markers  # pyright: ignore[reportUnhashable]
    assert len(markers) == 3


def test_eight_models_with_near_equal_ends_have_names_that_do_not_overlap(make_model, make_results):
    models = [
        make_model(f"a model with a long name {i}", schedules=["4-8-16"], factor=1 + 1e-3 * i)
        for i in range(8)
    ]
    figure = best_errors(make_results(models))
    figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]
    assert len(boxes) == 8
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    assert all(box.x1 <= figure.bbox.x1 + 1 for box in boxes)


def test_one_model_needs_no_comparison(make_results):
    with pytest.raises(NothingToDraw):
        best_errors(make_results())


def test_where_all_blow_up_the_last_to_do_so(make_model, make_results):
    results = make_results([make_model(), make_model("other", schedules=["16"], blow_up=6)])
    (axes,) = best_errors(results).axes
    assert [text.get_text() for text in axes.texts] == ["csm, 4", "other, 16"]
