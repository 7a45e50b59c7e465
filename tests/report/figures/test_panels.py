"""Truth, predictions and residuals as panels, and beside the errors in one picture."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from overtone.domain import Domain
from overtone.errors import OvertoneError
from overtone.evaluate.samples import Samples
from overtone.report import overview
from overtone.report.figures.panels import field_panels
from overtone.report.style import FIXED, NothingToDraw


def images(figure, cmap):
    found = [image for axes in figure.axes for image in axes.images]
    return [image for image in found if image.get_cmap().name == cmap]


def test_two_axes_have_common_scales_and_physical_extents(make_samples, check_labels):
    samples = make_samples()
    figure = field_panels(samples, "pressure")
    fields, residuals = images(figure, "viridis"), images(figure, "RdBu_r")
    assert (len(fields), len(residuals)) == (3 * 5, 3 * 4)
    assert {image.get_clim() for image in fields} == {
        (samples.truth[[0, 2, 3], 1].min().item(), samples.truth[[0, 2, 3], 1].max().item())
    }
    (limits,) = {image.get_clim() for image in residuals}
    assert limits[0] == -limits[1]
    assert limits[1] == pytest.approx(0.6)  # 0.05 of the comb, after 12 steps
    assert {tuple(image.get_extent()) for image in fields} == {(0, 1.0, 0, 1.5)}
    check_labels(figure)
    bars = {axes.get_xlabel(): axes.get_xticks() for axes in figure.axes}
    field, residual = bars["pressure (data units)"], bars["predicted − true (data units)"]
    np.testing.assert_allclose(residual, -residual[::-1], atol=1e-9)  # each has ticks of its own
    assert residual.max() == pytest.approx(0.6, abs=0.2)
    assert len(field) >= 2


def test_x_goes_right_and_y_up(make_samples):
    samples = make_samples()
    truth = images(field_panels(samples), "viridis")[0]
    np.testing.assert_allclose(truth.get_array(), samples.truth[0, 0].T, rtol=1e-6)  # pyright: ignore[reportCallIssue]
    assert truth.origin == "lower"


@pytest.mark.parametrize("extent", [(4.0, 1.0), (1.0, 3.0), (1.0, 90.0)])
def test_domains_of_any_shape(extent, check_labels):
    domain = Domain((8, 8), extent, "wall", ("a",), 0.5)
    truth = torch.rand(2, 1, 8, 8)
    samples = Samples(domain, (1, 3), truth, {("m", "16"): truth + 0.1, ("m", "4"): truth})
    figure = field_panels(samples)
    check_labels(figure)
    assert len(images(figure, "RdBu_r")) == 4
    words = [axes.get_ylabel() for axes in figure.axes]
    words += [entry.get_text().replace("\n", ", ") for axes in figure.axes for entry in axes.texts]
    assert {"step 1, t = 0.5", "step 3, t = 1.5"} <= set(words)


@pytest.mark.parametrize("size", [1e-5, 0.15, 0.3, 7.0, 4e3])
def test_numbers_of_a_narrow_colour_bar_do_not_overlap(size):
    """Below one tall panel, as in the report of a run."""
    domain = Domain((8, 16), (1.0, 2.0), "periodic", ("a",), 0.5)
    truth = torch.rand(1, 1, 8, 16, generator=torch.Generator().manual_seed(0))
    samples = Samples(domain, (1,), truth, {("m", "16"): truth + size * (truth - 0.5).sign()})
    figure = field_panels(samples)
    figure.canvas.draw()
    (bar,) = [axes for axes in figure.axes if axes.get_xlabel().startswith("predicted")]
    labels = [label for label in bar.get_xticklabels() if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    low, high = bar.get_xlim()
    assert all(low <= tick <= high for tick in bar.get_xticks())


def test_steps_after_a_blow_up_say_so(make_samples):
    samples = make_samples(keys=[("csm", "16")])
    samples.predictions["csm", "16"][2:] = torch.nan
    figure = field_panels(samples)
    notes = [entry for axes in figure.axes for entry in axes.texts if entry.get_gid()]
    assert [entry.get_gid() for entry in notes] == ["not finite"] * 4


def test_one_axis_is_lines(make_samples, check_labels, legend_names):
    samples = make_samples(ndim=1)
    figure = field_panels(samples)
    assert len(figure.axes) == 6
    assert [len(axes.get_lines()) for axes in figure.axes] == [5] * 3 + [4] * 3
    assert legend_names(figure) == ["truth", "16", "16+shift", "4-8-16", "4"]
    line = figure.axes[5].get_lines()[0]
    assert line.get_color() == FIXED["16"]
    expected = samples.predictions["csm", "16"][3, 0] - samples.truth[3, 0]
    np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-6)  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(line.get_xdata()[:2], [1 / 64, 3 / 64])  # pyright: ignore[reportCallIssue]
    check_labels(figure)


def test_three_axes_are_slices_or_projections(make_samples, check_labels):
    samples = make_samples(ndim=3)
    for view, plane in (("slice", samples.truth[..., 8]), ("projection", samples.truth.mean(-1))):
        figure = field_panels(samples, view=view)
        shown = images(figure, "viridis")[0].get_array()
        np.testing.assert_allclose(shown, plane[0, 0].T, atol=1e-6)  # pyright: ignore[reportCallIssue]
        check_labels(figure)
    assert any("mean along z" in axes.get_xlabel() for axes in figure.axes)


def test_several_models_are_named(make_samples):
    samples = make_samples(keys=[("csm", "16"), ("fixed", "16")])
    titles = {axes.get_title() for axes in field_panels(samples).axes}
    assert {"csm\n16", "fixed\n16"} <= titles


def test_constant_fields(make_samples):
    samples = make_samples()
    still = Samples(
        samples.domain, samples.steps, torch.ones_like(samples.truth),
        {("csm", "16"): torch.ones_like(samples.truth)},
    )  # fmt: skip
    assert len(images(field_panels(still), "viridis")) == 6


def test_what_is_not_there_is_refused(make_samples):
    samples = make_samples()
    with pytest.raises(OvertoneError, match="tracer, pressure"):
        field_panels(samples, "density")
    with pytest.raises(OvertoneError, match="csm 4-8-16"):
        field_panels(samples, keys=[("csm", "32")])
    with pytest.raises(NothingToDraw):
        field_panels(make_samples(keys=[]))


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
        np.testing.assert_allclose(line.get_ydata(), [e.value for e in runs[name].vrmse])  # pyright: ignore[reportCallIssue]
    # The rival differs from the flexible model in colour alone.
    assert lines["fixed16, 16"].get_color() == "black"
    assert lines["csm, 16"].get_color() == FIXED["16"]
    images = [image.get_array() for axes in figure.axes for image in axes.images]
    assert len(images) == 3 + 2  # truth and predictions, and their residuals
    np.testing.assert_allclose(images[0], samples.truth[-1, 0].T, rtol=1e-6)  # pyright: ignore[reportCallIssue]
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


@pytest.mark.parametrize("sizes", [(0.3, 0.5), (1e6, 1e9)])
def test_yardsticks_stretch_no_axis_of_the_overview(results, make_samples, with_yardsticks, sizes):
    samples = make_samples(keys=KEYS)
    before, after = (
        overview(found, samples, KEYS[:2]).axes[0]
        for found in (results, with_yardsticks(results, sizes))
    )
    assert after.get_ylim() == before.get_ylim()
    assert len(after.get_lines()) == len(before.get_lines()) + 2
