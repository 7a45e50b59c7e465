"""Folded maps, and residual spectra with the marks of the patch harmonics."""

import numpy as np
import pytest

from overtone.report.figures.artifacts import folded_maps, harmonic_wavenumbers, residual_spectra
from overtone.report.style import NothingToDraw


def test_maps_have_one_scale_and_are_relative_to_their_mean(make_results, check_labels):
    figure = folded_maps(make_results())
    images = [image for axes in figure.axes for image in axes.images]
    assert len(images) == 3 * 4
    assert len({image.get_clim() for image in images}) == 1
    low, high = images[0].get_clim()
    assert low == -high
    for image in images:
        power = 10 ** (np.asarray(image.get_array()) / 10)
        assert power.mean() == pytest.approx(1.0)
        assert np.argmax(power) == 0  # the corner cell stands out
    assert images[0].get_array().shape == (4, 4)
    check_labels(figure)
    assert [axes.get_title() for axes in figure.axes[:4]] == ["16", "16+shift", "4-8-16", "4"]


def test_an_even_cell_is_plain(make_results, alter_run):
    results = make_results(schedules=["16"])
    run = results.models[0].runs[0]
    even = tuple(h.model_copy(update={"cell": [[2.0] * h.patch] * h.patch}) for h in run.harmonics)
    model = alter_run(results.models[0], harmonics=even)
    for axes in folded_maps(make_results([model])).axes[:3]:
        np.testing.assert_allclose(axes.images[0].get_array(), 0.0)  # pyright: ignore[reportCallIssue]


def test_one_dimension_is_a_line_and_three_are_averaged(make_results, check_labels):
    figure = folded_maps(make_results(ndim=1))
    assert len(figure.axes) == 12
    assert len(figure.axes[0].get_lines()[0].get_ydata()) == 4
    check_labels(figure)
    figure = folded_maps(make_results(ndim=3))
    assert figure.axes[8].images[0].get_array().shape == (16, 16)


def test_another_model_by_name(make_model, make_results):
    results = make_results([make_model(), make_model("other", schedules=["16"], factor=0.1)])
    maps = [axes for axes in folded_maps(results, "other").axes if axes.images]
    assert len(maps) == 3
    first = folded_maps(results, "csm").axes[0].images[0]
    assert maps[0].images[0].get_clim() == first.get_clim()  # models can be compared
    with pytest.raises(NothingToDraw, match="none"):
        folded_maps(results, "none")


def with_gid(axes, gid):
    return [line for line in axes.get_lines() if (line.get_gid() or "").startswith(gid)]


def test_lines_of_residuals_and_truth_on_logarithmic_axes(make_results, check_labels, legend_names):
    results = make_results()
    figure = residual_spectra(results)
    assert [axes.get_title() for axes in figure.axes] == [f"csm, step {n}" for n in (1, 5, 12)]
    check_labels(figure)
    assert legend_names(figure) == ["truth", "16", "16+shift", "4-8-16", "4"]
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert len(with_gid(axes, "residual")) == 4
        assert len(with_gid(axes, "truth")) == 1
        assert "cycles per cell" in figure.axes[0].get_xlabel()
    line = with_gid(figure.axes[2], "residual 16")[0]
    spectrum = results.models[0].runs[0].spectra[-1]
    np.testing.assert_allclose(line.get_xdata(), spectrum.wavenumber[1:])  # 0 has no logarithm  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(line.get_ydata(), spectrum.power[1:])  # pyright: ignore[reportCallIssue]


def test_harmonics_stand_at_multiples_of_one_over_the_patch(make_results):
    axes = residual_spectra(make_results()).axes[0]
    marked = sorted(line.get_xdata()[0] for line in with_gid(axes, "harmonic"))
    np.testing.assert_allclose(marked, [m / 16 for m in range(1, 9)])
    names = {entry.get_text(): entry.get_position()[0] for entry in axes.texts}
    assert names == {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4}


def test_harmonics_of_coprime_patches_and_long_cells():
    marks = harmonic_wavenumbers([3, 4], (1.0, 1.0))
    assert list(marks) == pytest.approx([1 / 4, 1 / 3, 1 / 2])
    # Cells twice as long along the second axis: the same period in cells is twice as long.
    longer = harmonic_wavenumbers([(2, 4)], (1.0, 2.0))
    assert list(longer) == pytest.approx([1 / 8, 1 / 4, 1 / 2])
    assert list(longer.values()) == ["1/4 y", None, "1/2 x"]


def test_a_step_after_a_blow_up_says_so(make_model, make_results):
    results = make_results([make_model(), make_model("bad", schedules=["16"], blow_up=6)])
    figure = residual_spectra(results)
    assert "not finite" in [entry.get_text() for entry in figure.axes[5].texts]


def test_a_truth_that_falls_to_rounding_errors_does_not_set_the_scale(make_results):
    results = make_results(schedules=["16"])
    run = results.models[0].runs[0]
    spectra = tuple(s.model_copy(update={"truth": (*s.truth[:-1], 1e-30)}) for s in run.spectra)
    run = run.model_copy(update={"spectra": spectra})
    figure = residual_spectra(make_results([results.models[0].model_copy(update={"runs": (run,)})]))
    assert figure.axes[0].get_ylim()[0] > 1e-6


def test_results_without_cells_have_no_empty_maps(make_results):
    model = make_results().models[0]
    runs = tuple(
        run.model_copy(
            update={"harmonics": tuple(h.model_copy(update={"cell": []}) for h in run.harmonics)}
        )
        for run in model.runs
    )
    with pytest.raises(NothingToDraw, match="folded onto a patch"):
        folded_maps(make_results([model.model_copy(update={"runs": runs})]))


def test_nothing_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        residual_spectra(make_results([make_model(schedules=())]))
