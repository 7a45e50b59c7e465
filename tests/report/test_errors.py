"""Rollout error by step."""

import numpy as np
import pytest

from overtone.report.errors import rollout_errors
from overtone.report.style import NothingToDraw, looks


def coloured(axes, known):
    colours = {look.colour for look in known.values()}
    return [line for line in axes.get_lines() if line.get_color() in colours]


def test_a_line_and_a_band_for_each_schedule(make_results, check_labels, legend_names):
    results = make_results()
    figure = rollout_errors(results)
    (axes,) = figure.axes
    assert len(coloured(axes, looks(results))) == 4
    assert len(axes.collections) == 4
    assert legend_names(figure) == ["16", "16+shift", "4-8-16", "4"]
    check_labels(figure)
    line, band = coloured(axes, looks(results))[0], axes.collections[0]
    run = results.models[0].runs[0]
    np.testing.assert_allclose(line.get_ydata(), [e.value for e in run.vrmse])
    assert list(line.get_xdata()) == list(range(1, 13))
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(run.vrmse[-1].high)
    assert heights.min() == pytest.approx(run.vrmse[0].low)


def test_shifted_schedules_are_dashed(make_results):
    results = make_results()
    lines = coloured(rollout_errors(results).axes[0], looks(results))
    assert [line.is_dashed() for line in lines] == [False, True, False, False]


def test_a_blow_up_is_a_shorter_line_with_a_cross(make_results):
    results = make_results(blow_up=6)
    (axes,) = rollout_errors(results).axes
    crosses = [line for line in axes.get_lines() if line.get_gid() == "blow-up"]
    assert len(crosses) == 4
    assert [line.get_xdata()[0] for line in crosses] == [5] * 4


def test_one_trajectory_has_no_band(make_results):
    (axes,) = rollout_errors(make_results(spread=0.0)).axes
    assert not axes.collections


def test_seeds_are_thin_lines_and_other_models_are_grey(make_model, make_results):
    models = [make_model(seed=0), make_model(seed=1, factor=1.1), make_model("fixed", None, ["16"])]
    results = make_results(models)
    first, second = rollout_errors(results).axes
    thin = [line for line in first.get_lines() if line.get_linewidth() == 0.7]
    assert len(thin) == 8
    assert len(coloured(second, looks(results))) == 1
    assert len([line for line in second.get_lines() if line.get_color() == "#c8c8c8"]) == 4
    assert [axes.get_title() for axes in (first, second)] == ["csm", "fixed"]
    assert first.get_ylim() == second.get_ylim()


def test_nothing_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        rollout_errors(make_results([make_model(schedules=())]))
