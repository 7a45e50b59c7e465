"""Training curves from metrics.jsonl."""

import json

import numpy as np
import pytest

from overtone.errors import DataError
from overtone.report.figures.curves import read_metrics, training_curves
from overtone.report.style import FIXED, NothingToDraw


@pytest.fixture
def metrics(tmp_path):
    lines = []
    for update in range(1, 301):
        patch = ("4", "8", "16")[update % 3]
        losses = {patch: 1 / update}
        lines.append({"kind": "train", "update": update, "losses": losses, "lr": 1e-3})
        if update % 100 == 0:
            vrmse = {"4": 0.1, "8": 0.2, "16": 0.3}
            lines.append({"kind": "valid", "update": update, "vrmse": vrmse, "rollout": 0.5})
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def by_gid(axes):
    return {line.get_gid(): line for line in axes.get_lines()}


def test_four_panels_with_a_line_for_each_patch(metrics, check_labels, legend_names):
    figure = training_curves(metrics)
    losses, errors, rates, rollouts = figure.axes
    assert {"loss 4", "loss 8", "loss 16"} <= set(by_gid(losses))
    assert {"valid 4", "valid 8", "valid 16"} == set(by_gid(errors))
    assert legend_names(figure) == ["4", "8", "16"]
    assert by_gid(losses)["loss 16"].get_color() == FIXED["16"]
    assert len(by_gid(rates)["rate"].get_xdata()) == 300
    assert list(by_gid(rollouts)["rollout"].get_xdata()) == [100, 200, 300]
    check_labels(figure)


def test_a_curve_is_the_mean_over_stretches(metrics):
    line = by_gid(training_curves(metrics).axes[0])["loss 4"]
    updates = np.arange(3, 301, 3)
    parts = np.array_split(1 / updates, 60)
    np.testing.assert_allclose(line.get_ydata(), [part.mean() for part in parts])  # pyright: ignore[reportCallIssue]


def test_a_run_is_found_by_its_folder_and_may_be_cut_short(metrics):
    metrics.write_text(metrics.read_text() + '{"kind": "train", "upd')
    assert len(read_metrics(metrics.parent)) == 303


@pytest.mark.parametrize("line", ["no json", "[1]", '{"kind": "train", "update": 1}', '{"a": 1}'])
def test_other_lines_are_left_out_with_a_warning(metrics, line):
    metrics.write_text(f"{line}\n{metrics.read_text()}")
    with pytest.warns(UserWarning, match="1 of 304 lines can't be read.*line 1: "):
        assert len(read_metrics(metrics)) == 303


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(DataError, match="can't be read"):
        training_curves(tmp_path / "none.jsonl")
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(NothingToDraw):
        training_curves(tmp_path)


def test_numbers_that_are_not_finite_are_null_and_leave_gaps(metrics):
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines[2]["losses"]["4"] = lines[100]["rollout"] = lines[100]["vrmse"]["8"] = None
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert lines[100]["kind"] == "valid"
    losses, errors, _, rollouts = training_curves(metrics).axes
    assert np.isnan(by_gid(losses)["loss 4"].get_ydata()).sum() == 1
    assert np.isnan(by_gid(errors)["valid 8"].get_ydata()).sum() == 1
    assert list(by_gid(rollouts)["rollout"].get_xdata()) == [200, 300]


def test_a_run_without_validation_yet(metrics):
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:5]))
    assert not training_curves(metrics).axes[1].get_lines()


def test_yardsticks_are_level_lines_where_they_were_measured(metrics, legend_names):
    before = training_curves(metrics)
    found = {"persistence": {"vrmse": 9.0, "rollout": None}, "extrapolation": {"vrmse": 0.15,
             "rollout": 0.4}, "damaged": 3, "worse": {"vrmse": "x"}}  # fmt: skip
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines = [line | ({"yardsticks": found} if line["kind"] == "valid" else {}) for line in lines]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    figure = training_curves(metrics)
    sign = "leaves the panel"  # persistence, at 9
    assert legend_names(figure) == ["4", "8", "16", "persistence", "extrapolation", sign]
    _, errors, _, rollouts = figure.axes
    assert list(by_gid(errors)["yardstick extrapolation"].get_ydata()) == [0.15, 0.15]
    assert list(by_gid(rollouts)["yardstick extrapolation"].get_ydata()) == [0.4, 0.4]
    assert list(by_gid(rollouts)["yardstick persistence"].get_ydata()) == []
    for axes, other in zip(figure.axes, before.axes, strict=True):
        assert (axes.get_xlim(), axes.get_ylim()) == (other.get_xlim(), other.get_ylim())
