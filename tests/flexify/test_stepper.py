"""A flexible model behind the interface of all models."""

import copy

import pytest
import torch
from torch import nn

import overtone as ot
from overtone.models.flops import call_flops
from overtone.normalize import statistics


@pytest.fixture
def model():
    """Reads two frames of two fields; linear, and without position embedding."""
    parts = nn.Conv2d(4, 6, 8, 8), nn.ConvTranspose2d(6, 2, 8, 8)
    return ot.flexify(nn.Sequential(*parts), "0", "1", patches=(4, 8, 16))


@pytest.fixture
def stepper(model, make_domain):
    return ot.FlexibleStepper(model, domain=make_domain(), context=2).eval()


def test_frames_are_joined_into_channels(stepper, model, make_domain, make_window):
    window = make_window(make_domain())
    with ot.patch(model, 4):
        expected = model(window.fields[:, 1:].flatten(1, 2))
    assert torch.equal(stepper(window, 4), expected)
    assert stepper.patches == (4, 8, 16)


def test_a_rollout_with_a_cycle(stepper, model, make_domain, make_window):
    window = make_window(make_domain())
    frames = list(ot.rollout(stepper, window, steps=4, schedule=ot.Cycle(4, 8, 16)))
    history = list(window.fields.unbind(1))
    for frame, size in zip(frames, (4, 8, 16, 4), strict=True):
        with torch.no_grad(), ot.patch(model, size):
            history.append(model(torch.cat(history[-2:], dim=1)))
        assert torch.equal(frame, history[-1])


def test_shifts_are_undone(stepper, model, make_domain, make_window):
    window = make_window(make_domain())
    moved = window.fields[:, 1:].roll((-3, -5), dims=(3, 4)).flatten(1, 2)
    with ot.patch(model, 8):
        expected = model(moved).roll((3, 5), dims=(2, 3))
    assert torch.equal(stepper(window, 8, (3, 5)), expected)
    assert torch.equal(stepper(window, 8, (8, 16)), stepper(window, 8))
    assert torch.equal(stepper(window, 8, (11, -3)), stepper(window, 8, (3, 5)))


def test_predicting_a_change(model, make_domain, make_window):
    stepper = ot.FlexibleStepper(model, domain=make_domain(), context=2, predicts="change").eval()
    window = make_window(make_domain())
    recent = window.fields[:, 1:]
    stats = statistics(recent, causal=False)
    with ot.patch(model, 4):
        change = model(stats.normalise(recent).flatten(1, 2))
    expected = stats.last().add_change(recent[:, -1:], change[:, None])[:, 0]
    assert torch.allclose(stepper(window, 4), expected)
    # units do not matter
    scaled = ot.Window(1e3 * window.fields + 7, window.domain)
    assert torch.allclose(stepper(scaled, 4), 1e3 * expected + 7, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("predicts", ["frame", "change"])
def test_the_change_that_training_sees_is_that_of_the_frame(
    model, make_domain, make_window, predicts
):
    stepper = ot.FlexibleStepper(model, domain=make_domain(), context=2, predicts=predicts)
    window = make_window(make_domain())
    change, stats = stepper.predict_change(window, 8, (1, 2))
    assert change.shape == (2, 1, 2, 32, 48)
    frame = stats.add_change(window.fields[:, -1:], change)[:, 0]
    assert torch.allclose(frame, stepper(window, 8, (1, 2)), atol=1e-4)


def test_finer_patches_cost_more(make_plain, make_domain):
    model = make_plain(channels=2)
    ot.flexify(model, "embed", "head", patches=(4, 8), decoder_axes="p1 p2 c")
    stepper = ot.FlexibleStepper(model, domain=make_domain(), context=1)
    fine, coarse = (call_flops(stepper, make_domain(), size, frames=2) for size in (4, 8))
    assert fine > 3 * coarse


def test_models_with_other_layouts(make_domain, make_window):
    """Channels last, and a dictionary as output."""

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.write = nn.Conv2d(2, 6, 8, 8), nn.ConvTranspose2d(6, 2, 8, 8)

        def forward(self, x):
            return {"y": self.write(self.read(x.movedim(-1, 1))).movedim(1, -1)}

    model = ot.flexify(Last(), "read", "write", patches=(4, 8))
    stepper = ot.FlexibleStepper(
        model,
        domain=make_domain(),
        to_input=lambda fields: fields[:, -1].movedim(1, -1),
        to_frame=lambda output: output["y"].movedim(-1, 1),
    )
    window = make_window(make_domain())
    assert copy.deepcopy(stepper)(window, 4).shape == (2, 2, 32, 48)


def test_wrong_windows(stepper, model, make_domain, make_window):
    window = make_window(make_domain())
    with pytest.raises(ot.DomainError, match="without a batch axis"):
        stepper(ot.Window(window.fields[0], window.domain), 8)
    with pytest.raises(ot.DomainError, match="has 1 frames; the model reads 2"):
        stepper(window.last(1), 8)
    with pytest.raises(ot.DomainError, match="fields"):
        stepper(make_window(make_domain(fields=("x", "y"))), 8)
    with pytest.raises(ot.DomainError, match="dt is 0.5"):
        stepper(make_window(make_domain(dt=0.5)), 8)
    broken = window.fields.clone()
    broken[0, 2, 1, 3, 4] = float("nan")
    with pytest.raises(ot.DomainError, match="field 'b', cell"):
        stepper(ot.Window(broken, window.domain), 8)
    with pytest.raises(ot.PatchError, match="patch 16 does not divide axis 0 of 40"):
        stepper(make_window(make_domain((40, 48))), 16)
    assert stepper(make_window(make_domain((40, 48))), 8).shape == (2, 2, 40, 48)


def test_shifts_need_periodic_axes(model, make_domain, make_window):
    domain = make_domain(boundaries=("periodic", "wall"))
    stepper = ot.FlexibleStepper(model, domain=domain, context=2)
    window = make_window(domain)
    assert stepper(window, 8, (3, 0)).shape == (2, 2, 32, 48)
    assert stepper(window, 8, (3, 8)).shape == (2, 2, 32, 48)  # a whole patch is no shift
    with pytest.raises(ot.PatchError, match="shifted along axis 1, which is not periodic"):
        stepper(window, 8, (0, 3))


def test_an_output_of_another_grid_is_refused(make_domain, make_window):
    model = nn.Sequential(nn.Conv2d(2, 6, 8, 8), nn.ConvTranspose2d(6, 2, 8, 8), nn.AvgPool2d(2))
    ot.flexify(model, "0", "1", patches=(4, 8))
    stepper = ot.FlexibleStepper(model, domain=make_domain())
    with pytest.raises(ot.DomainError, match=r"\(2, 2, 16, 24\), expected.*= \(2, 2, 32, 48\)"):
        stepper(make_window(make_domain()), 4)


def test_wrong_steppers(model, make_domain):
    with pytest.raises(ot.OvertoneError, match="0 flexible models"):
        ot.FlexibleStepper(nn.Linear(1, 1), domain=make_domain())
    with pytest.raises(ot.OvertoneError, match="predicts is 'both'"):
        ot.FlexibleStepper(model, domain=make_domain(), predicts="both")
    with pytest.raises(ot.OvertoneError, match="context is 0"):
        ot.FlexibleStepper(model, domain=make_domain(), context=0)
    with pytest.raises(ot.DomainError, match="the domain is 1D, the model's patches are 2D"):
        ot.FlexibleStepper(model, domain=make_domain((32,)))
    csm = ot.flexify(nn.Sequential(nn.Conv2d(2, 6, 8, 8)), "0", None, patches=(4,), mode="csm")
    with pytest.raises(ot.DomainError, match="boundaries=domain.boundaries"):
        ot.FlexibleStepper(csm, domain=make_domain(boundaries="wall"))
