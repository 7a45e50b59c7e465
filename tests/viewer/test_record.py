"""Recorded rollouts: what a page plays from disk is what was computed."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

import overtone as ot
from overtone.errors import DataError
from overtone.viewer import record as module
from overtone.viewer.record import write_view

STEPS = 5


@pytest.fixture
def written(make_stage, tmp_path):
    def write(ndim=2, tracks=((0, "8"), (0, "4-8+shift")), **options):
        stage = make_stage(ndim)
        path = write_view(tmp_path / "view.html", stage, tracks, steps=STEPS, **options)
        text = path.read_text()
        found = re.search(r'id="recording">(.*?)</script>', text, flags=re.S)
        return stage, json.loads(found[1]), text

    return write


def planes(recording):
    """Planes in physical units, in order, by name, view, field and step."""
    data, place, number = gzip.decompress(base64.b64decode(recording["planes"])), 0, 0
    fields = range(len(recording["scales"]))
    counts = [("truth", recording["steps"] + 1, "<u2")]
    counts += [(n, len(r["points"]), "<u1") for n, r in enumerate(recording["rollouts"])]
    found = {}
    for name, steps, kind in counts:
        for view, shape in enumerate(recording["shapes"]):
            for field in fields:
                for step in range(steps):
                    size = int(np.prod(shape))
                    whole = np.frombuffer(data, kind, size, place).reshape(shape)
                    place += whole.nbytes
                    low, high = recording["lows"][number], recording["highs"][number]
                    top = np.iinfo(kind).max
                    found[name, view, field, step] = low + whole / top * (high - low)
                    number += 1
    assert place == len(data)
    return found


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_planes_and_numbers_are_those_of_rollouts(written, ndim):
    stage, recording, _ = written(ndim)
    found = planes(recording)
    candidate = stage.candidates[0]
    window = stage.window(candidate, 0, 1)
    for place, track in enumerate(recording["rollouts"]):
        frames = ot.rollout(candidate.model, window, steps=STEPS, schedule=track["schedule"])
        for step, frame in enumerate(frames, start=1):
            truth = stage.true_frame(0, 3 + step)
            for field in range(2):
                own = (frame[0] - truth)[field].numpy()
                if ndim == 3:
                    own = own[..., own.shape[-1] // 2]
                shown = found[place, 0, field, step]
                np.testing.assert_allclose(shown, own, atol=np.ptp(own) / 200)
            error = ot.metrics.vrmse(frame[0], truth, ndim=ndim).mean().item()
            assert track["points"][step]["error"] == pytest.approx(error, rel=1e-3)
            assert track["points"][step]["tokens"] > 0
    assert len(recording["views"]) == (3 if ndim == 3 else 1)


def test_a_recording_ends_with_the_data(make_stage, tmp_path):
    recording = module.record(
        make_stage(), [(0, "8")], trajectory=0, start=8, steps=40, progress=lambda *_: None
    )
    assert recording["steps"] == 3
    with pytest.raises(DataError, match="start earlier"):
        write_view(tmp_path / "x.html", make_stage(), [(0, "8")], start=11)


def test_a_blow_up_shortens_its_own_rollout_alone(written):
    _, recording, _ = written(tracks=((0, "explicit:8-8"), (0, "8")))
    first, second = recording["rollouts"]
    assert (len(first["points"]), len(second["points"])) == (3, STEPS + 1)
    assert "has 2 steps" in first["stopped"]
    assert planes(recording)[1, 0, 0, STEPS].shape == (16, 32)


def test_what_would_be_too_large_is_refused_and_nothing_is_written(
    make_stage, tmp_path, monkeypatch
):
    for limit in (100, 30_000):
        monkeypatch.setattr(module, "MAX_BYTES", limit)
        with pytest.raises(DataError, match="fewer --steps"):
            write_view(tmp_path / "view.html", make_stage(), [(0, "8")], steps=4)
    assert not list(tmp_path.iterdir())


def test_the_file_is_one_and_loads_nothing(written):
    _, recording, text = written()
    assert not re.search(r"https?://|@import|src=", text)
    assert recording["hello"]["settings"] == {}
