"""Error against price."""

import math

import pytest

from overtone.report.figures.dial import next_step_dial, rollout_dial
from overtone.report.style import NothingToDraw


def place(container):
    (x,), (y,) = container.lines[0].get_data()
    return x, y


def test_rollouts_stand_at_their_tokens_seconds_and_errors(make_results, check_labels):
    results = make_results()
    figure = rollout_dial(results)
    left, right = figure.axes
    assert left.get_xlabel() == "tokens of 12 rollout steps"
    assert right.get_xlabel().startswith("seconds")
    check_labels(figure)
    for run, a, b in zip(results.models[0].runs, left.containers, right.containers, strict=True):
        assert place(a) == (run.tokens, run.vrmse_all.value)
        assert place(b) == (run.seconds, run.vrmse_all.value)
        (segment,) = a.lines[2][0].get_segments()
        assert segment[:, 1].tolist() == pytest.approx([run.vrmse_all.low, run.vrmse_all.high])
    assert {entry.get_text() for entry in left.texts} == {"16", "16+shift", "4-8-16", "4"}


def test_next_steps_are_joined_by_model_and_named_by_patch(make_model, make_results):
    results = make_results([make_model(), make_model("other")])
    left, _ = next_step_dial(results).axes
    assert len(left.containers) == 6
    assert sorted(entry.get_text() for entry in left.texts) == ["16", "16", "4", "4", "8", "8"]
    joins = [line for line in left.get_lines() if line.get_color() == "#bbbbbb"]
    assert len(joins) == 2
    assert list(joins[0].get_xdata()) == [16, 64, 256]


def test_models_have_different_markers(make_model, make_results, legend_names):
    figure = rollout_dial(make_results([make_model(), make_model("other")]))
    assert legend_names(figure) == ["csm", "other"]
    markers = [c.lines[0].get_marker() for c in figure.axes[0].containers]
    assert len(set(markers[:4])) == len(set(markers[4:])) == 1
    assert markers[0] != markers[4]


def test_names_do_not_cover_each_other(make_model, make_results):
    names = ["4-8-16", "4-16-8", "8-4-16", "8-16-4", "16-4-8", "16-8-4"]
    figure = rollout_dial(make_results([make_model(schedules=names)]))
    figure.canvas.draw()
    boxes = [entry.get_window_extent().shrunk(0.9, 0.7) for entry in figure.axes[0].texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_a_blow_up_is_named_and_errors_that_are_not_finite_are_left_out(
    make_model, make_results, alter_run
):
    figure = rollout_dial(make_results(blow_up=6))
    assert "16 (blew up)" in [entry.get_text() for entry in figure.axes[0].texts]
    model = make_model(schedules=["16"])
    nan = model.runs[0].vrmse_all.model_copy(update={"value": math.nan})
    model = alter_run(model, vrmse_all=nan)
    with pytest.raises(NothingToDraw):
        rollout_dial(make_results([model]))


def test_models_without_patches_have_no_tokens(make_bare, make_model, make_results):
    results = make_results([make_model(), make_bare()])
    for draw, num in ((rollout_dial, 4), (next_step_dial, 3)):
        left, right = draw(results).axes
        assert (len(left.containers), len(right.containers)) == (num, num + 1)
        assert "unet" in [entry.get_text() for entry in right.texts]
        (only,) = draw(make_results([make_bare()])).axes
        assert only.get_xlabel().startswith("seconds")


def test_yardsticks_are_level_lines_that_stretch_no_axis(
    make_results, with_yardsticks, legend_names
):
    for draw in (rollout_dial, next_step_dial):
        for sizes in ((0.3, 0.5), (50.0, 1e6)):
            figure, plain = draw(with_yardsticks(make_results(), sizes)), draw(make_results())
            assert legend_names(figure)[:3] == ["csm", "persistence", "extrapolation"]
            for axes, before in zip(figure.axes, plain.axes, strict=True):
                lines = {line.get_gid(): line for line in axes.get_lines()}
                assert len({*lines["yardstick persistence"].get_ydata()}) == 1
                assert (axes.get_xlim(), axes.get_ylim()) == (before.get_xlim(), before.get_ylim())


def test_names_of_eight_models_do_not_cover_each_other(make_model, make_results, legend_names):
    models = [make_model(f"model {i}", factor=1 + 0.02 * i) for i in range(8)]
    figure = rollout_dial(make_results(models))
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [t.get_window_extent() for t in axes.texts if t.get_gid() == "name"]
        assert boxes
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
    # Names that found no place are told by their colours.
    assert {"16", "16+shift", "4-8-16", "4"} <= {*legend_names(figure)}
