import pytest
import torch

import overtone as ot
from overtone.assess.predicted import judge
from overtone.data.frames import Frames
from overtone.metrics import vrmse


def frames_of(fields, channels=("a", "b")):
    """Frames `(N, T, C, *space)` in memory as if they were read."""
    return Frames("made", tuple(fields.shape[3:]), (fields.shape[1],) * len(fields),
                  fields.shape[2], channels, None, lambda n, t: fields[n, t].double())  # fmt: skip


@pytest.fixture
def made(make_model, make_window):
    """A model, a window, and its own rollout at patch 16 behind it, `(N, T, C, *space)`."""
    model = make_model().eval()
    window = make_window(model.domain)
    frames = list(ot.rollout(model, window, steps=4, schedule=16))
    return model, window, torch.cat([window.fields, torch.stack(frames, dim=1)], dim=1)


def test_a_prediction_is_compared_with_what_the_model_would_have_made(made):
    model, window, fields = made
    found = judge(model, frames_of(fields))
    assert found.value.shape == (2, 4)
    total = torch.zeros(2, 2).double()
    for step in range(4):
        own = model(window, 4)
        frame = fields[:, 3 + step]
        total += vrmse(own, frame, ndim=2).double().square()
        window = window.slide(frame)
        assert torch.allclose(found.value[:, step], total.sqrt().mean(dim=1), rtol=1e-4)
    assert not found.calibrated
    assert "not calibrated" in found.sentence


def test_the_models_own_prediction_at_the_finest_patch_is_compared_with_the_next(made):
    model, window, _ = made
    own = torch.stack(list(ot.rollout(model, window, steps=2, schedule=4)), dim=1)
    found = judge(model, frames_of(torch.cat([window.fields, own], dim=1)))
    expected = vrmse(model(window, 8), own[:, 0], ndim=2).mean(dim=1)
    assert torch.allclose(found.value[:, 0], expected.double(), rtol=1e-4)


def test_a_bad_step_is_found(made):
    model, _, fields = made
    spoilt = fields.clone()
    spoilt[1, 6] += 3 * torch.randn_like(spoilt[1, 6])
    found = judge(model, frames_of(spoilt))
    assert found.sentence.endswith("the hardest step is frame 6 of sample 1")


def test_fields_are_found_by_their_names(made):
    model, _, fields = made
    found = judge(model, frames_of(fields))
    turned = judge(model, frames_of(fields[:, :, [1, 0]], ("b", "a")))
    assert torch.equal(found.value, turned.value)


def test_what_can_not_be_judged(made):
    model, _, fields = made
    with pytest.raises(ot.DataError, match=r"has the fields \('a', 'c'\), the model needs"):
        judge(model, frames_of(fields, ("a", "c")))
    with pytest.raises(ot.DataError, match=r"lies on \(16, 48\) cells"):
        judge(model, frames_of(fields[..., :16, :]))
    with pytest.raises(ot.DataError, match="has 3 frames; a model with a context of 3"):
        judge(model, frames_of(fields[:, :3]))
