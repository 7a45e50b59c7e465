"""What runs off moves no axis, and a sign says where it leaves."""

import math

import numpy as np
import pytest

from overtone.evaluate.results import Estimate
from overtone.report.figures.best import best_errors
from overtone.report.figures.dial import rollout_dial
from overtone.report.figures.steps import band_errors, physics_constraints, rollout_errors
from overtone.report.runaway import (
    LOST,
    counted,
    leaving,
    limit,
    mark_leaving,
    runs_off,
    sound_steps,
)
from overtone.report.series import series
from overtone.report.style import new_figure

STEPS = 12


def grown(run, growth):
    """The same rollout with errors that grow by a factor from step to step."""

    def larger(estimates):
        return tuple(
            Estimate(value=e.value * growth**i, low=e.low * growth**i, high=e.high * growth**i)
            for i, e in enumerate(estimates)
        )

    huge = growth**STEPS
    return run.model_copy(
        update={
            "vrmse": larger(run.vrmse),
            "vrmse_all": Estimate(value=huge, low=huge / 2, high=2 * huge),
            "physics": {name: larger(curve) for name, curve in run.physics.items()},
            "bsnmse": {band: larger([e] * 9)[-1] for band, e in run.bsnmse.items()},
        }
    )


@pytest.fixture
def with_runaway(make_model, make_bare, make_results):
    """Results, and the same with a baseline whose error grows to astronomical numbers."""

    def make(growth=8.0, **options):
        sound = [make_model(), make_model("other", schedules=["16", "4"])]
        bad = make_bare("unet", **options)
        bad = bad.model_copy(update={"runs": (grown(bad.runs[0], growth),)})
        return make_results(sound), make_results([*sound, bad])

    return make


def triangles(axes):
    return [line for line in axes.get_lines() if line.get_gid() == "leaves"]


def test_steps_before_it_runs_off(with_runaway):
    _, results = with_runaway()
    *sound, bad = series(results)
    assert [sound_steps(s) for s in sound] == [STEPS] * len(sound)
    assert not any(map(runs_off, sound))
    values = [e.value for e in bad.curve]
    assert sound_steps(bad) == next(i for i, value in enumerate(values) if value > LOST)
    assert runs_off(bad)


def test_a_rollout_that_ends_has_run_off(make_results):
    (first, *_) = series(make_results(blow_up=6))
    assert sound_steps(first) == len(first.curve) == 5
    assert runs_off(first)


def test_what_is_not_a_number_has_run_off(make_model, make_results, alter_run):
    model = make_model(schedules=["16"])
    nan = model.runs[0].vrmse[0].model_copy(update={"value": math.nan})
    model = alter_run(model, vrmse=(*model.runs[0].vrmse[:3], nan, *model.runs[0].vrmse[4:]))
    (only,) = series(make_results([model]))
    assert sound_steps(only) == 3


def test_values_that_count_are_those_before(with_runaway):
    _, results = with_runaway()
    found = series(results)
    values, clipped = counted(found, lambda s: [e.value for e in s.curve])
    by_hand = [e.value for s in found for e in s.curve[: sound_steps(s)]]
    assert (sorted(values), clipped) == (sorted(by_hand), True)
    assert max(values) <= LOST
    values, clipped = counted(found[:-1], lambda s: [e.value for e in s.curve])
    assert (len(values), clipped) == (6 * STEPS, False)


def test_where_all_run_off_at_once_everything_finite_counts(make_model, make_results):
    found = series(make_results([make_model(factor=1e4)]))
    values, clipped = counted(found, lambda s: [e.value for e in s.curve])
    assert (len(values), clipped) == (4 * STEPS, False)


@pytest.mark.parametrize(
    ("draw", "schedules"), [(rollout_errors, {"16", "16+shift", "4-8-16", "4"}), (best_errors, "4")]
)
def test_the_limits_of_errors_are_those_of_the_others(with_runaway, draw, schedules):
    """As if the lines were cut by hand where they run off; of those that are drawn."""
    plain, results = with_runaway()
    figure = draw(results)
    found = [s for s in series(results) if s.schedule in schedules or not s.patched]
    largest = max(e.value for s in found for e in s.curve[: sound_steps(s)])
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert largest <= high < 3 * largest
        assert low > min(e.value for s in found for e in s.curve) / 3
    assert sum(len(triangles(axes)) for axes in figure.axes) == 1
    (legend,) = figure.legends
    assert "leaves the panel" in [text.get_text() for text in legend.get_texts()]
    assert not any(triangles(axes) for axes in draw(plain).axes)


def test_a_triangle_stands_where_the_line_meets_the_edge():
    axes = new_figure(4, 3).subplots()
    axes.set(xlim=(0, 10), ylim=(0, 4))
    (line,) = axes.plot([1, 2, 3, 4], [0, 1, 2, 10], color="red")
    axes.set(xlim=(0, 10), ylim=(0, 4))
    before = axes.get_xlim(), axes.get_ylim()
    assert mark_leaving(axes, line)
    (sign,) = triangles(axes)
    assert sign.get_xdata()[0] == pytest.approx(3.25)  # 2 + 8 (x - 3) = 4
    assert sign.get_transform().transform((3.25, 1.0))[1] == axes.bbox.y1
    assert sign.get_color() == "red"
    assert (axes.get_xlim(), axes.get_ylim()) == before


def test_on_a_logarithmic_axis_lines_are_straight_in_the_logarithm():
    axes = new_figure(4, 3).subplots()
    axes.set(yscale="log", ylim=(0.1, 10))
    assert leaving(axes, [1, 3], [1.0, 100.0]) == (pytest.approx(2.0), True)
    assert leaving(axes, [1, 3], [1.0, 0.01]) == (pytest.approx(2.0), False)
    assert leaving(axes, [1, 3], [1.0, 9.0]) is None
    assert leaving(axes, [1, 2, 3], [1.0, math.nan, 5.0]) is None
    assert leaving(axes, [1, 2], [1.0, math.inf]) == (2, True)
    assert leaving(axes, [4], [20.0]) == (4, True)


def test_limits_have_a_margin_and_ignore_what_can_not_be_drawn():
    axes = new_figure(4, 3).subplots()
    limit(axes, [1.0, 3.0, math.inf, math.nan])
    assert axes.get_ylim() == pytest.approx((0.88, 3.12))
    axes.set_yscale("log")
    limit(axes, [-1.0, 0.0, 0.01, 1.0])
    low, high = axes.get_ylim()
    assert 0.005 < low < 0.01 < 1 < high < 2
    limit(axes, [math.nan])
    assert axes.get_ylim() == (low, high)


def test_physics_and_bars_are_not_squashed(with_runaway):
    plain, results = with_runaway()
    for draw, sound in ((physics_constraints, 1.5), (band_errors, 1.5)):
        before, after = draw(plain).axes[0].get_ylim(), draw(results).axes[0].get_ylim()
        assert after[1] < sound * 12 * before[1]
        assert sum(len(triangles(axes)) for axes in draw(results).axes) > 0


def test_the_dial_has_a_triangle_at_its_price(with_runaway):
    plain, results = with_runaway()
    bad = results.models[-1].runs[0]
    axes = rollout_dial(results).axes[-1]
    (sign,) = [s for s in axes.get_lines() if str(s.get_gid()).startswith("leaves")]
    assert sign.get_xdata()[0] == bad.seconds
    assert axes.get_xlim()[0] < bad.seconds < axes.get_xlim()[1]
    assert axes.get_ylim() == rollout_dial(plain).axes[-1].get_ylim()
    assert "unet" in [text.get_text() for text in axes.texts]


def test_yardsticks_beyond_the_panel_have_the_sign_and_move_nothing(make_results, with_yardsticks):
    plain = make_results()
    for draw in (rollout_errors, rollout_dial):
        for sizes, signs in (((0.3, 0.5), 0), ((0.3, 1e6), 1), ((50.0, 1e6), 2)):
            axes = draw(with_yardsticks(plain, sizes)).axes[0]
            assert len(triangles(axes)) == signs
            np.testing.assert_allclose(axes.get_ylim(), draw(plain).axes[0].get_ylim())
