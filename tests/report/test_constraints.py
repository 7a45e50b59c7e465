"""Physics by step."""

import numpy as np
import pytest

from overtone.report.constraints import physics_constraints
from overtone.report.style import NothingToDraw


def test_a_panel_for_each_model_and_constraint(make_model, make_results, check_labels):
    results = make_results([make_model(), make_model("other", schedules=["16"])])
    figure = physics_constraints(results)
    assert [axes.get_title() for axes in figure.axes] == ["csm: divergence", "other: divergence"]
    assert len(figure.axes[0].get_lines()) == 4
    found = results.models[1].runs[0].physics["divergence"]
    curve = figure.axes[1].get_lines()[0]
    np.testing.assert_allclose(curve.get_ydata(), [e.value for e in found])
    assert len(figure.axes[0].collections) == 4, "each line has its interval"
    assert "truth" in figure.axes[0].get_ylabel()
    check_labels(figure)


def test_nothing_to_draw(make_model, make_results):
    model = make_model()
    runs = tuple(run.model_copy(update={"physics": {}}) for run in model.runs)
    with pytest.raises(NothingToDraw):
        physics_constraints(make_results([model.model_copy(update={"runs": runs})]))
