"""The last change, for ever."""

import pytest
import torch

import overtone as ot


def test_a_rollout_is_a_straight_line(make_baseline, make_domain):
    domain = make_domain((9, 7), "wall")
    first, slope = torch.randn(2, 2, 1, 2, 9, 7).unbind()
    window = ot.Window(first + slope * torch.arange(3.0).reshape(3, 1, 1, 1), domain)
    model = make_baseline("extrapolation", domain)
    for step, frame in enumerate(ot.rollout(model, window, steps=3, schedule=ot.Constant(1))):
        torch.testing.assert_close(frame, (first + (3 + step) * slope)[:, 0])
    assert model.num_parameters == 0


def test_steady_windows_and_too_few_frames(make_baseline, make_domain):
    window = ot.Window(torch.randn(1, 1, 2, 16, 24).expand(1, 3, 2, 16, 24), make_domain((16, 24)))
    assert torch.equal(make_baseline("extrapolation")(window), window.fields[:, -1])
    with pytest.raises(ot.OvertoneError, match="needs at least 2 frames"):
        make_baseline("extrapolation", context=1)
