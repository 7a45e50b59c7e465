"""Ratios that are known, found again; and intervals that hold on data of the same kind."""

import math

import pytest
import torch

import overtone as ot
from overtone.models.calibration import ANY


@pytest.fixture
def pairs(make_domain, make_window):
    """A dataset: windows of three frames, and four that follow."""

    def make(domain, num=30):
        windows = make_window(domain, batch=num, frames=7, seed=3).fields
        return [(ot.Window(w[:3], domain), w[3:]) for w in windows]

    return make


def test_all_that_estimates_need_is_measured(make_model, pairs):
    model = make_model().eval()
    calibration = ot.calibrate(model, pairs(model.domain), windows=24, batch=5)
    steps = {(f"step {p}", kind) for p in (4, 8, 16) for kind in ("patch", "shift")}
    rollouts = {(rule, "patch") for rule in ("4+shift", "8+shift", "16+shift", "4-8-16+shift", ANY)}
    assert set(calibration.bands) == steps | rollouts
    assert set(calibration.errors) == {"4", "8", "16"}
    band = calibration.bands["4+shift", "patch"]
    assert (len(band.factor), band.count, set(band.bounds)) == (4, 24, {0.5, 0.9})
    assert calibration.bands[ANY, "patch"].count == 4 * 24
    assert calibration.data["windows"] == 24
    assert model.calibration is None  # it is the caller's to use


def test_estimates_are_errors_afterwards(make_model, pairs):
    """On the data that it was measured with, half of all errors are above the estimate."""
    model = make_model().eval()
    data = pairs(model.domain)
    model.calibration = ot.calibrate(model, data, windows=30, batch=5)
    window = ot.Window(torch.stack([w.fields for w, _ in data]), model.domain)
    true = torch.stack([target for _, target in data])
    frames = ot.rollout(model, window, steps=4, schedule="8+shift", estimate=True)
    from overtone.metrics import vrmse

    for step, frame in enumerate(frames):
        error, estimate = vrmse(frame, true[:, step], ndim=2).double(), frames.estimate
        assert estimate.calibrated
        assert not estimate.beyond
        ratio = error.mean(dim=1) / estimate.value
        assert ratio.median().item() == pytest.approx(1.0, rel=1e-3)
        assert (error / estimate.fields).median(dim=0).values == pytest.approx([1, 1], rel=1e-3)
        for level in (0.5, 0.9):
            low, high = estimate.interval(level)
            inside = (low * 0.9999 <= error.mean(dim=1)) & (error.mean(dim=1) <= high * 1.0001)
            assert inside.double().mean() >= level - 1 / 30


def test_a_second_rollout_may_be_calibrated_too(make_model, pairs):
    model = make_model().eval()
    options = {"windows": 4, "schedules": ["4", "8"], "against": ["shift", "16+shift"]}
    calibration = ot.calibrate(model, pairs(model.domain, 6), **options)
    assert {key for key in calibration.bands if not key[0].startswith("step")} == {
        (rule, against) for rule in ("4", "8", ANY) for against in ("shift", "16+shift")
    }
    model.calibration = calibration
    start = pairs(model.domain, 2)[0][0]
    window = ot.Window(start.fields[None], start.domain)
    for against, calibrated in (("16+shift", True), ("16", False)):
        frames = ot.rollout(model, window, steps=1, schedule="4", estimate=against)
        next(frames)
        assert frames.estimate.calibrated is calibrated


def test_a_lost_rollout_is_bounded_by_nothing(make_model, pairs):
    class Losing(type(make_model())):
        def forward(self, window, *args, **options):
            frame = super().forward(window, *args, **options)
            frame[window.fields[:, -1].mean(dim=(1, 2, 3)) > 50] = torch.nan
            return frame

    model = make_model()
    model.__class__ = Losing
    data = pairs(model.domain, 20)
    data[3] = (ot.Window(data[3][0].fields + 100, model.domain), data[3][1] + 100)
    calibration = ot.calibrate(model.eval(), data, windows=20)
    low, high = calibration.bands["8+shift", "patch"].bounds[0.9]
    assert all(map(math.isinf, high))
    assert all(map(math.isfinite, low))


def test_what_can_not_be_calibrated(make_domain, make_model, pairs):
    domain = make_domain()
    with pytest.raises(ot.OvertoneError, match="has no patches, so it can't disagree"):
        ot.calibrate(ot.baseline("persistence", domain=domain, context=1), pairs(domain, 2))
    with pytest.raises(ot.OvertoneError, match="there are no windows to calibrate with"):
        ot.calibrate(make_model(), [])
