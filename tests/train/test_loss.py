"""The loss, and what it may not see."""

import pytest
import torch

import overtone as ot
from overtone.normalize import statistics
from overtone.train.loss import FLOOR, LOSSES, nmse, supervise


def test_nmse_by_hand():
    target = torch.tensor([[[[1.0, -1.0], [2.0, 2.0]]]])  # (1, 1, 2 fields, 2 cells)
    prediction = target + torch.tensor([0.5, 1.0]).reshape(1, 1, 2, 1)
    expected = (0.25 / (1 + FLOOR) + 1.0 / (4 + FLOOR)) / 2
    assert nmse(prediction, target).item() == pytest.approx(expected)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_perfect_prediction_has_no_loss(kind):
    domain = ot.Domain((8,), (1.0,), "periodic", ("u",), 0.1)
    frames = torch.randn(2, 5, 1, 8)
    window = ot.Window(frames[:, :4], domain)
    stats = statistics(window.fields)
    changes = stats.change_between(frames[:, :4], frames[:, 1:])
    assert supervise(kind, changes, stats, window, frames[:, 1:]).item() == 0
    last = supervise(kind, changes[:, -1:], stats.last(), window, frames[:, 1:])
    assert last.item() == 0


def test_the_first_frame_is_not_supervised_when_all_are():
    domain = ot.Domain((8,), (1.0,), "periodic", ("u",), 0.1)
    frames = torch.randn(1, 4, 1, 8)
    window, stats = ot.Window(frames[:, :3], domain), statistics(frames[:, :3])
    changes = stats.change_between(frames[:, :3], frames[:, 1:])
    changes[:, 0] += 100
    assert supervise("mse", changes, stats, window, frames[:, 1:]).item() == 0
    changes[:, 1] += 1
    assert supervise("mse", changes, stats, window, frames[:, 1:]).item() == pytest.approx(0.5)


@pytest.mark.parametrize("kind", LOSSES)
def test_the_loss_of_a_frame_does_not_depend_on_the_models_unit(kind):
    domain = ot.Domain((8,), (1.0,), "periodic", ("u", "v"), 0.1)
    frames = torch.randn(2, 5, 2, 8)
    window, following = ot.Window(frames[:, :4], domain), frames[:, 1:]
    predicted = following + 0.1 * torch.randn(2, 4, 2, 8)
    found = []
    for pace in (None, torch.tensor([0.3, 20.0])):
        stats = statistics(window.fields, pace=pace)
        changes = stats.change_between(window.fields, predicted)
        found.append(supervise(kind, changes, stats, window, following))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("processor", ["vit", "axial"])
def test_no_target_leaks_into_its_own_prediction(processor):
    """Perturbing the last frame leaves the predictions of all earlier frames unchanged."""
    domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("u", "v"), 0.1)
    model = ot.build(processor, domain=domain, patches=(4, 8), context=4, layer_scale=1.0)
    fields = torch.randn(2, 4, 2, 16, 16)
    other = fields.clone()
    other[:, -1] += torch.randn(2, 2, 16, 16)
    for patch in (4, 8):
        one, units = model.predict_change(ot.Window(fields, domain), patch)
        two, others = model.predict_change(ot.Window(other, domain), patch)
        torch.testing.assert_close(one[:, :-1], two[:, :-1])
        torch.testing.assert_close(units.change[:, :-1], others.change[:, :-1])
        assert not torch.allclose(one[:, -1], two[:, -1])
