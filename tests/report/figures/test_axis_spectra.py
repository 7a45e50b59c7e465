"""Spectra along axes, with evenly spaced harmonics."""

import numpy as np
import pytest

from overtone.errors import OvertoneError
from overtone.report.figures.axis_spectra import axis_spectra
from overtone.report.style import NothingToDraw


def with_gid(axes, gid):
    return [line for line in axes.get_lines() if (line.get_gid() or "").startswith(gid)]


def test_a_panel_for_each_axis_on_linear_wavenumbers(make_results, check_labels, legend_names):
    results = make_results()
    figure = axis_spectra(results, field="pressure")
    assert [axes.get_title() for axes in figure.axes] == 2 * ["csm, pressure, step 5"]
    assert [axes.get_xlabel()[:18] for axes in figure.axes] == [
        "wavenumber along x",
        "wavenumber along y",
    ]
    check_labels(figure)
    assert legend_names(figure) == ["truth", "16", "16+shift", "4-8-16", "4"]
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("linear", "log")
    line = with_gid(figure.axes[1], "residual 16")[0]
    (drawn,) = (
        one
        for one in results.models[0].runs[0].axis_spectra
        if (one.field, one.axis) == ("pressure", 1)
    )
    np.testing.assert_allclose(line.get_xdata(), drawn.wavenumber[1:])  # not the mean  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(line.get_ydata(), drawn.power[1:])  # pyright: ignore[reportCallIssue]
    marked = sorted(mark.get_xdata()[0] for mark in with_gid(figure.axes[0], "harmonic"))
    np.testing.assert_allclose(marked, [m / 16 for m in range(1, 9)])


def test_one_axis_and_several_seeds(make_model, make_results):
    seeds = [make_model(seed=seed, factor=factor) for seed, factor in ((0, 1.0), (1, 3.0))]
    figure = axis_spectra(make_results(seeds), axes=[1])
    (panel,) = figure.axes
    line = with_gid(panel, "residual 16")[0]
    once = make_results().models[0].runs[0].axis_spectra[2]
    np.testing.assert_allclose(line.get_ydata(), 2 * np.array(once.power[1:]))  # pyright: ignore[reportCallIssue]


def test_nothing_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        axis_spectra(make_results([make_model(schedules=())]))
    with pytest.raises(OvertoneError, match="heat"):
        axis_spectra(make_results(), field="heat")
