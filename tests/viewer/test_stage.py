"""Models and data of a viewer: scales, the end of the data, what a page is told."""

import base64
import json

import pytest
import torch
from matplotlib import colormaps

from overtone.errors import DataError
from overtone.report.style import FIELD_COLOURS
from overtone.viewer import stage as module
from overtone.viewer.stage import palette


def test_all_models_predict_the_same_frame_whatever_their_context(make_stage, make_candidate):
    long, short = make_candidate(), make_candidate(name="short", context=2)
    stage = make_stage(2, long, short)
    assert stage.context == 3
    windows = [stage.window(candidate, 1, 4).fields for candidate in (long, short)]
    assert [window.shape[1] for window in windows] == [3, 2]
    torch.testing.assert_close(windows[0][:, 1:], windows[1])
    torch.testing.assert_close(windows[0][0, -1], stage.true_frame(1, 6))


def test_there_is_no_truth_past_the_end(make_stage):
    stage = make_stage()
    assert stage.true_frame(0, stage.num_frames(0) - 1) is not None
    assert stage.true_frame(0, stage.num_frames(0)) is None


def test_few_frames_stay_in_memory(make_stage, monkeypatch):
    monkeypatch.setattr(module, "KEPT_FRAMES", 0)
    stage = make_stage()
    for _ in range(2):
        for number in range(8):
            stage.true_frame(0, number)
            assert len(stage._frames) <= 2
    again = stage.true_frame(0, 3)
    assert torch.equal(again, stage._truth.frame([0], 3)[0])


def test_a_scale_spans_the_truth_that_is_compared_with(make_stage):
    stage = make_stage()
    scale = stage.scale(0, 2, 0)
    frames = torch.stack([stage.true_frame(0, n)[0] for n in range(4, 14)])
    assert scale["low"] >= frames.min().item() - 1e-6
    assert scale["high"] <= frames.max().item() + 1e-6
    assert scale["high"] - scale["low"] > 0.8 * (frames.max() - frames.min()).item()
    assert scale["log"] is False


@pytest.mark.parametrize(("trajectory", "start"), [(2, 0), (0, 12), (0, -1), (-1, 0)])
def test_starts_outside_the_data_are_refused(make_stage, trajectory, start):
    with pytest.raises(DataError, match="from 0"):
        make_stage().require_start(trajectory, start)


def test_a_page_is_told_all_it_needs_and_no_path(make_stage, make_data):
    facts = make_stage().facts()
    text = json.dumps(facts)
    assert str(make_data(2).parent) not in text
    assert facts["models"][0]["patches"] == ["2", "4", "8"]
    assert facts["models"][0]["schedules"] == ["2-4-8", "2-4-8+shift"]
    assert facts["data"]["frames"] == [14, 14]


def test_colours_are_those_of_the_report():
    colours = base64.b64decode(palette(FIELD_COLOURS))
    assert len(colours) == 3 * 256
    expected = [round(255 * part) for part in colormaps[FIELD_COLOURS](255)[:3]]
    assert list(colours[-3:]) == pytest.approx(expected, abs=1)
