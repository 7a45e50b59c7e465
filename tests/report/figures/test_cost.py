"""What a training cost."""

import json

import pytest

from overtone.report.figures.cost import training_cost
from overtone.report.style import NothingToDraw
from overtone.train.journal import METRICS


@pytest.fixture
def run(tmp_path):
    """Four validations, the third one the best, and a fifth that blew up."""
    lines = []
    for i, score in enumerate((0.5, 0.3, 0.2, 0.25, None), start=1):
        lines.append({"kind": "train", "update": 10 * i, "loss": 1.0, "seconds": 60.0 * i,
                      "flops": i, "updates_per_second": 5.0, "waiting_for_data": 0.25})  # fmt: skip
        lines.append({"kind": "valid", "update": 10 * i, "vrmse": {"4": 0.1}, "rollout": score,
                      "rollout_steps": 5, "patches": {"4": i}})  # fmt: skip
    (tmp_path / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_scores_stand_at_their_minutes(run):
    left, right, waiting = training_cost(run).axes
    lines = {line.get_gid(): line for line in left.get_lines()}
    assert list(lines["score"].get_xdata()) == [1, 2, 3, 4]
    assert list(lines["score"].get_ydata()) == [0.5, 0.3, 0.2, 0.25]
    assert (lines["best"].get_xdata()[0], lines["best"].get_ydata()[0]) == (3, 0.2)
    assert "minutes" in left.get_xlabel()
    assert list(right.get_lines()[0].get_ydata()) == [5.0] * 5
    assert list(waiting.get_lines()[0].get_ydata()) == [25.0] * 5
    (run / METRICS).write_text("")
    with pytest.raises(NothingToDraw):
        training_cost(run)
