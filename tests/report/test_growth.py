"""Harmonic excess by step."""

import numpy as np
import pytest

from overtone.report.growth import harmonic_growth, shown_patches
from overtone.report.style import NothingToDraw


def test_a_column_for_each_period(make_model, make_results, check_labels, legend_names):
    results = make_results([make_model(), make_model("other", schedules=["16"])])
    figure = harmonic_growth(results)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{m}, period {p}" for m in ("csm", "other") for p in (4, 8, 16)]
    assert "(dB)" in figure.axes[0].get_ylabel()
    check_labels(figure)
    assert legend_names(figure) == ["16", "16+shift", "4-8-16", "4"]
    curve = figure.axes[5].get_lines()[0]
    found = results.models[1].runs[0].harmonics[2].excess
    np.testing.assert_allclose(curve.get_ydata(), [e.value for e in found])
    assert len(figure.axes[0].collections) == 4, "each line has its interval"


def test_few_of_many_periods_with_the_finest_and_the_coarsest(make_results, alter_run):
    results = make_results()
    run = results.models[0].runs[0]
    many = tuple(run.harmonics[0].model_copy(update={"patch": p}) for p in (32, 4, (4, 8), 8, 16))
    model = alter_run(results.models[0], harmonics=many)
    assert shown_patches(make_results([model])) == [4, 8, 32]


def test_nothing_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        harmonic_growth(make_results([make_model(schedules=())]))
