"""Folded maps."""

import numpy as np
import pytest

from overtone.report.artifact import folded_maps
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
        np.testing.assert_allclose(axes.images[0].get_array(), 0.0)


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
