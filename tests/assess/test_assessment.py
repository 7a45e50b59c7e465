import pytest
import torch

import overtone as ot
from overtone.metrics import vrmse


@pytest.fixture
def model(make_model):
    return make_model().eval()


def test_it_is_the_estimates_of_all_steps(model, make_window):
    window = make_window(model.domain)
    found = ot.assess(model, window, "4-8-16+shift", steps=3)
    frames = ot.rollout(model, window, steps=3, schedule="4-8-16+shift", estimate=True)
    kept = []
    for step, frame in enumerate(frames):
        kept.append(frame)
        assert torch.equal(found.value[:, step], frames.estimate.value)
        assert torch.equal(found.fields[:, step], frames.estimate.fields)
        assert torch.equal(found.local[:, step], frames.estimate.local)
    assert torch.equal(found.last, kept[-1])
    assert torch.equal(found.map, frames.estimate.map)
    assert found.tokens == frames.tokens
    assert found.patches() == [["4", "8", "16"]] * 2
    assert "not calibrated" in repr(found)


def test_with_a_calibration_it_has_intervals(model, make_window):
    window = make_window(model.domain, batch=20, frames=6)
    data = [(ot.Window(w[:3], model.domain), w[3:]) for w in window.fields]
    model.calibration = ot.calibrate(model, data)
    found = ot.assess(model, ot.Window(window.fields[:, :3], model.domain), "adaptive:1", steps=5)
    assert found.calibrated
    assert found.horizon == 3
    assert set(found.bounds) == {0.5, 0.9}
    low, high = found.bounds[0.9]
    assert low.shape == high.shape == found.value.shape == (20, 5)
    assert bool(((low <= found.value) & (found.value <= high)).all())
    assert "calibrated up to step 3" in repr(found)
    assert "tokens a sample" in repr(found)


def test_against_a_second_rollout(model, make_window):
    window = make_window(model.domain)
    found = ot.assess(model, window, 8, steps=2, against="16")
    pairs = zip(*(ot.rollout(model, window, steps=2, schedule=s) for s in (8, 16)), strict=True)
    expected = torch.stack([vrmse(b, a, ndim=2).mean(dim=1) for a, b in pairs], dim=1)
    assert torch.allclose(found.value, expected.double())
    assert (found.schedule, found.against) == ("8", "16")


def test_what_can_not_be_assessed(model, make_window):
    window = make_window(model.domain)
    with pytest.raises(ot.OvertoneError, match="steps is 0"):
        ot.assess(model, window, "4", steps=0)
    with pytest.raises(ot.OvertoneError, match="against is not given"):
        ot.assess(model, window, "4", steps=1, against=False)
    bare = ot.baseline("persistence", domain=model.domain, context=1)
    with pytest.raises(ot.OvertoneError, match="has no patches"):
        ot.assess(bare, window, "4", steps=1)
