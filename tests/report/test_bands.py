"""Bars of errors by scale."""

import numpy as np
import pytest

from overtone.report.bands import band_errors, reach
from overtone.report.style import NothingToDraw
from overtone.results import Estimate


def test_a_bar_with_an_interval_for_each_schedule_and_band(
    make_results, check_labels, legend_names
):
    results = make_results()
    figure = band_errors(results)
    (axes,) = figure.axes
    bars = [c for c in axes.containers if hasattr(c, "patches")]
    assert len(bars) == 4
    for group, run in zip(bars, results.models[0].runs, strict=True):
        heights = [bar.get_height() for bar in group.patches]
        np.testing.assert_allclose(heights, [e.value for e in run.bsnmse.values()])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["low", "mid", "high"]
    assert len(axes.collections) == 4  # intervals
    assert legend_names(figure) == ["16", "16+shift", "4-8-16", "4"]
    check_labels(figure)
    hatches = [(group.patches[0].get_hatch(), group.patches[0].get_facecolor()) for group in bars]
    assert len(set(hatches)) == 4


def test_intervals_reach_from_low_to_high_and_never_inwards():
    estimates = [
        Estimate(value=2.0, low=1.5, high=4.0),
        Estimate(value=2.0, low=float("nan"), high=float("inf")),
        Estimate(value=2.0, low=2.1, high=1.9),
    ]
    np.testing.assert_allclose(reach(estimates), [[0.5, 0, 0], [2, 0, 0]])


def test_nothing_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        band_errors(make_results([make_model(schedules=())]))
