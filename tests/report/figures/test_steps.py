"""Small multiples: errors, artifacts and physics by step, and bars of errors by scale."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from overtone.evaluate.results import Estimate
from overtone.report.figures.steps import (
    band_errors,
    grid_of_panels,
    harmonic_growth,
    mark_end,
    next_step_bands,
    panels,
    physics_constraints,
    plot_steps,
    reach,
    rollout_errors,
    shown_patches,
)
from overtone.report.style import NothingToDraw, assign, looks, new_figure


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_as_many_panels_as_asked_for_with_common_axes(count):
    figure, grid = panels(count)
    assert len(figure.axes) == len(grid) == count
    grid[-1].set(xlim=(0, 7), ylim=(2, 3))
    assert {(axes.get_xlim(), axes.get_ylim()) for axes in grid} == {((0, 7), (2, 3))}


def test_columns_may_have_their_own_scale():
    _, grid = grid_of_panels(2, 3, common=False)
    grid[0, 0].set(ylim=(2, 3))
    assert grid[1, 0].get_ylim() == (2, 3)
    assert grid[0, 1].get_ylim() != (2, 3)


def test_seeds_are_drawn_only_if_there_are_several():
    axes = new_figure(3, 3).subplots()
    look = assign(["16"])["16"]
    one, two = ([Estimate(value=x, low=x - 1, high=x + 1) for x in y] for y in ((1, 2), (3, 4)))
    plot_steps(axes, one, [one], look)
    assert (len(axes.get_lines()), len(axes.collections)) == (1, 1)
    plot_steps(axes, one, [one, two], look)
    assert (len(axes.get_lines()), len(axes.collections)) == (4, 1)


def test_a_cross_marks_the_last_finite_value():
    axes = new_figure(3, 3).subplots()
    mark_end(axes, [1.0, 2.0, math.nan], 3, "black")
    mark_end(axes, [1.0, 2.0, 3.0], 3, "black")
    (cross,) = axes.get_lines()
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([2], [2.0])


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
    np.testing.assert_allclose(line.get_ydata(), [e.value for e in run.vrmse])  # pyright: ignore[reportCallIssue]
    assert list(line.get_xdata()) == list(range(1, 13))
    heights = band.get_paths()[0].vertices[:, 1]  # pyright: ignore[reportCallIssue]
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


def test_no_errors_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        rollout_errors(make_results([make_model(schedules=())]))


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
    np.testing.assert_allclose(curve.get_ydata(), [e.value for e in found])  # pyright: ignore[reportCallIssue]
    assert len(figure.axes[0].collections) == 4, "each line has its interval"


def test_few_of_many_periods_with_the_finest_and_the_coarsest(make_results, alter_run):
    results = make_results()
    run = results.models[0].runs[0]
    many = tuple(run.harmonics[0].model_copy(update={"patch": p}) for p in (32, 4, (4, 8), 8, 16))
    model = alter_run(results.models[0], harmonics=many)
    assert shown_patches(make_results([model])) == [4, 8, 32]


def test_results_without_curves_have_no_figure_of_physics(make_results):
    """A study keeps the names of the laws and leaves out what they are at each step."""
    model = make_results().models[0]
    assert any(run.physics for run in model.runs)
    runs = tuple(
        run.model_copy(update={"physics": dict.fromkeys(run.physics, ())}) for run in model.runs
    )
    with pytest.raises(NothingToDraw, match="has physics constraints"):
        physics_constraints(make_results([model.model_copy(update={"runs": runs})]))


def test_no_growth_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        harmonic_growth(make_results([make_model(schedules=())]))


def test_a_panel_for_each_model_and_constraint(make_model, make_results, check_labels):
    results = make_results([make_model(), make_model("other", schedules=["16"])])
    figure = physics_constraints(results)
    assert [axes.get_title() for axes in figure.axes] == ["csm: divergence", "other: divergence"]
    assert len(figure.axes[0].get_lines()) == 4
    found = results.models[1].runs[0].physics["divergence"]
    curve = figure.axes[1].get_lines()[0]
    np.testing.assert_allclose(curve.get_ydata(), [e.value for e in found])  # pyright: ignore[reportCallIssue]
    assert len(figure.axes[0].collections) == 4, "each line has its interval"
    assert "truth" in figure.axes[0].get_ylabel()
    check_labels(figure)


def test_no_constraints_to_draw(make_model, make_results):
    model = make_model()
    runs = tuple(run.model_copy(update={"physics": {}}) for run in model.runs)
    with pytest.raises(NothingToDraw):
        physics_constraints(make_results([model.model_copy(update={"runs": runs})]))


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


def test_no_bands_to_draw(make_model, make_results):
    with pytest.raises(NothingToDraw):
        band_errors(make_results([make_model(schedules=())]))
    steps = tuple(step.model_copy(update={"bsnmse": {}}) for step in make_model().next_step)
    with pytest.raises(NothingToDraw):
        next_step_bands(make_results([make_model().model_copy(update={"next_step": steps})]))


def test_next_steps_have_a_panel_a_model_and_a_bar_a_patch_and_band(
    make_model, make_bare, make_results, check_labels, legend_names
):
    seeds = [make_model(seed=n) for n in (0, 1)]
    twice = tuple(
        step.model_copy(
            update={
                "bsnmse": {
                    band: Estimate(value=3 * e.value, low=2 * e.value, high=4 * e.value)
                    for band, e in step.bsnmse.items()
                }
            }
        )
        for step in seeds[1].next_step
    )
    seeds[1] = seeds[1].model_copy(update={"next_step": twice})
    results = make_results([*seeds, make_bare()])
    figure = next_step_bands(results)
    assert [axes.get_title() for axes in figure.axes] == ["csm", "unet"]
    bars = [c for c in figure.axes[0].containers if hasattr(c, "patches")]
    for group, step in zip(bars, seeds[0].next_step, strict=True):  # the mean of 1 and 3
        heights = [bar.get_height() for bar in group.patches]
        np.testing.assert_allclose(heights, [2 * e.value for e in step.bsnmse.values()])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [
        "low",
        "mid",
        "high",
    ]
    assert legend_names(figure) == ["4", "8", "16", "no patches"]
    check_labels(figure)


@pytest.mark.parametrize("sizes", [(0.3, 0.5), (50.0, 1e6), (1e-9, 1e-6)])
def test_yardsticks_are_thin_grey_lines_that_stretch_no_axis(
    make_model, make_results, with_yardsticks, legend_names, sizes
):
    plain = make_results([make_model(), make_model("other")])
    figure, before = rollout_errors(with_yardsticks(plain, sizes)), rollout_errors(plain)
    sign = [] if sizes[1] == 0.5 else ["leaves the panel"]
    assert legend_names(figure)[4:] == ["persistence", "extrapolation", *sign]
    for drawn in (figure, before):
        drawn.canvas.draw()
    for axes, other in zip(figure.axes, before.axes, strict=True):
        assert (axes.get_xlim(), axes.get_ylim()) == (other.get_xlim(), other.get_ylim())
        assert axes.get_yscale() == other.get_yscale()
        lines = {line.get_gid(): line for line in axes.get_lines()}
        for name, size in zip(("persistence", "extrapolation"), sizes, strict=True):
            line = lines[f"yardstick {name}"]
            assert list(line.get_xdata()) == list(range(1, 13))
            assert line.get_ydata()[-1] == pytest.approx(size)
            assert line.get_linewidth() < 1
            assert len({*to_rgb(line.get_color())}) == 1  # grey


def test_a_model_without_patches_is_called_so(make_bare, make_model, make_results, legend_names):
    figure = rollout_errors(make_results([make_model(schedules=["16"]), make_bare()]))
    assert legend_names(figure) == ["16", "no patches"]
