"""Moving pictures."""

import sys
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image

from overtone.errors import OvertoneError
from overtone.report.figures.animation import animate, stage, telling_pair
from overtone.report.figures.panels import scene

PAIR = [("csm", "16"), ("csm", "4-8-16")]


@pytest.mark.parametrize("ndim", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_gif_has_a_frame_for_each_step(make_samples, tmp_path, ndim):
    path = animate(make_samples(ndim), PAIR, tmp_path / "a.gif", fps=5)
    with Image.open(path) as image:
        assert image.format == "GIF"
        assert image.n_frames == 4
        assert image.info["duration"] == 200


@pytest.mark.parametrize("ndim", [1, 2])
def test_every_step_is_drawn_on_the_scale_of_all(make_samples, ndim):
    samples = make_samples(ndim)
    whole = scene(samples, "pressure", PAIR, samples.steps)
    figure, update = stage(whole)
    truth, (first, second) = samples.truth[:, 1], (samples.predictions[key][:, 1] for key in PAIR)
    limits = []
    for i in (3, 0):
        update(i)
        if ndim == 1:
            drawn = [line.get_ydata() for axes in figure.axes for line in axes.get_lines()]
            limits.append([axes.get_ylim() for axes in figure.axes])
            seen = [(-np.inf, np.inf)] * len(drawn)
        else:
            images = [image for axes in figure.axes for image in axes.images]
            drawn = [np.asarray(image.get_array()).T for image in images]
            seen = [image.get_clim() for image in images]  # what lies beyond has the end's colour
            limits.append(seen)
        shown = [truth[i], first[i], second[i], first[i] - truth[i], second[i] - truth[i]]
        assert len(drawn) == len(shown)
        for values in shown:
            clipped = [np.clip(values.numpy(), *ends) for ends in seen]
            assert any(map(partial(np.allclose, atol=1e-6), drawn, clipped))
    assert limits[0] == limits[1]


def test_nothing_moves_but_the_fields(make_samples, tmp_path):
    """Frames of a steady prediction differ in the title alone, at the top."""
    samples = make_samples()
    for tensor in (samples.truth, *samples.predictions.values()):
        tensor[:] = tensor[:1].clone()
    with Image.open(animate(samples, PAIR, tmp_path / "a.gif")) as image:
        first = np.asarray(image.convert("RGB"), dtype=float)
        image.seek(3)
        last = np.asarray(image.convert("RGB"), dtype=float)
    assert np.abs(first - last)[30:].max() < 40  # of 255: palettes may differ a little


def test_a_prediction_that_blows_up_is_animated(make_samples, tmp_path):
    samples = make_samples()
    samples.predictions["csm", "16"][2:] = torch.nan
    with Image.open(animate(samples, PAIR[:1], tmp_path / "a.gif")) as image:
        assert image.n_frames == 4


def test_an_mp4_has_a_frame_for_each_step(make_samples, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = animate(make_samples(), PAIR, tmp_path / "a.mp4")
    count, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert count == 4
    assert seconds == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["gif", "mp4"])
def test_a_full_disk_keeps_the_old_animation_and_names_it(make_samples, tmp_path, full_disk, kind):
    if kind == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / f"rollout.{kind}"
    path.write_text("old")
    samples = make_samples(keys=[("csm", "16")], steps=(1, 2))
    with full_disk(2000), pytest.raises(OSError, match="rollout") as caught:
        animate(samples, [("csm", "16")], path)
    assert caught.value.filename == str(path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_without_the_video_extra_the_error_says_what_to_do(make_samples, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(OvertoneError, match=r"overtone\[video\]"):
        animate(make_samples(), PAIR, tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())


def test_wrong_requests_are_refused(make_samples, tmp_path):
    samples = make_samples()
    with pytest.raises(OvertoneError, match=r"\.gif or \.mp4"):
        animate(samples, PAIR, tmp_path / "a.avi")
    with pytest.raises(OvertoneError, match="one or two"):
        animate(samples, [], tmp_path / "a.gif")
    with pytest.raises(OvertoneError, match="fps"):
        animate(samples, PAIR, tmp_path / "a.gif", fps=0)
    with pytest.raises(OvertoneError, match="no samples"):
        animate(samples, [("csm", "5")], tmp_path / "a.gif")


def test_the_telling_pair(make_model, make_results, make_samples):
    models = [make_model(), make_model("worse", factor=2.0)]
    keys = [(m, s) for m in ("csm", "worse") for s in ("4", "16+shift", "4-8-16", "16")]
    pair = telling_pair(make_results(models), make_samples(keys=keys))
    assert pair == [("worse", "16"), ("csm", "4-8-16")]
    only = make_samples(keys=[("csm", "16"), ("csm", "16+shift")])
    assert telling_pair(make_results(), only) == [("csm", "16"), ("csm", "16+shift")]
    odd = make_samples(keys=[("csm", "not a schedule")])
    assert telling_pair(make_results(), odd) == [("csm", "not a schedule")]
