"""Errors and fields in one picture."""

import numpy as np
import pytest

from overtone.errors import OvertoneError
from overtone.report import overview
from overtone.report.style import FIXED, NothingToDraw

KEYS = [("fixed16", "16"), ("csm", "16"), ("csm", "4-8-16")]


@pytest.fixture
def results(make_model, make_results):
    return make_results([make_model("fixed16", schedules=("16",)), make_model("csm")])


def test_all_errors_and_the_chosen_last_frames(results, make_samples, check_labels):
    samples = make_samples(keys=KEYS)
    figure = overview(results, samples, KEYS[:2])
    for part in figure.subfigs:
        check_labels(part)
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    runs = {f"{m.name}, {run.schedule}": run for m in results.models for run in m.runs}
    assert set(lines) == set(runs)
    for name, line in lines.items():
        np.testing.assert_allclose(line.get_ydata(), [e.value for e in runs[name].vrmse])
    # The rival differs from the flexible model in colour alone.
    assert lines["fixed16, 16"].get_color() == "black"
    assert lines["csm, 16"].get_color() == FIXED["16"]
    images = [image.get_array() for axes in figure.axes for image in axes.images]
    assert len(images) == 3 + 2  # truth and predictions, and their residuals
    np.testing.assert_allclose(images[0], samples.truth[-1, 0].T, rtol=1e-6)
    residual = samples.predictions[KEYS[0]][-1, 0] - samples.truth[-1, 0]
    assert any(np.allclose(image, residual.T, atol=1e-6) for image in images[2:])


def test_one_model_needs_no_name(make_results, make_samples):
    figure = overview(make_results(), make_samples(), [("csm", "16")], "pressure")
    assert "16" in [line.get_label() for axes in figure.axes for line in axes.lines]
    assert "pressure (data units)" in [axes.get_xlabel() for axes in figure.axes]


def test_what_cannot_be_drawn(make_model, make_results, make_samples, alter_run):
    with pytest.raises(OvertoneError, match="one axis"):
        overview(make_results(ndim=1), make_samples(1), [("csm", "16")])
    with pytest.raises(OvertoneError, match="no samples of"):
        overview(make_results(), make_samples(), [("csm", "7")])
    with pytest.raises(NothingToDraw):
        empty = make_results([alter_run(make_model(), vrmse=())])
        overview(empty, make_samples(), [("csm", "16")])
