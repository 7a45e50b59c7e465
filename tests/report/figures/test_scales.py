"""Common scales and planes of frames."""

import numpy as np
import pytest
import torch
from matplotlib.colors import LogNorm, Normalize

from overtone.domain import Domain
from overtone.errors import OvertoneError
from overtone.report.figures.scales import common_scale, flat, view_name, visible


def test_the_truth_sets_the_fields_scale_and_residuals_are_symmetric():
    truth = np.linspace(-1, 3, 20)
    scale = common_scale(truth, [truth + 0.5, truth - 0.2])
    assert (scale.field.vmin, scale.field.vmax) == (-1, 3)
    assert (scale.residual.vmin, scale.residual.vmax) == pytest.approx((-0.5, 0.5))
    assert not scale.clipped


def test_a_diverged_or_blown_up_prediction_does_not_spoil_the_scale():
    truth = np.linspace(-1, 3, 20)
    scale = common_scale(truth, [truth + 1e6, np.full(20, np.nan)])
    assert (scale.field.vmax, scale.residual.vmax) == (3, 4)
    assert scale.clipped


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0])
def test_constant_fields_have_a_range_around_them(value):
    truth = np.full(20, value)
    scale = common_scale(truth, [truth])
    assert scale.field.vmin < value < scale.field.vmax
    assert scale.residual.vmin < 0 < scale.residual.vmax
    scale = common_scale(truth, [truth + np.linspace(0, 1, 20)])
    assert scale.residual.vmax == pytest.approx(1)


def test_positive_fields_over_many_decades_are_logarithmic():
    scale = common_scale(np.geomspace(1e-9, 1e3, 30), [])
    assert isinstance(scale.field, LogNorm)
    assert scale.field.vmin == pytest.approx(1e-3)
    np.testing.assert_allclose(visible(np.array([-1.0, 1.0]), scale.field), [1e-3, 1.0])
    assert np.isnan(visible(np.array([np.nan]), Normalize(0, 1))).all()


def test_planes_of_three_axes():
    domain = Domain((4, 5, 6), (1.0, 1.0, 3.0), "periodic", ("a",))
    frames = torch.randn(2, 4, 5, 6)
    np.testing.assert_array_equal(flat(frames, domain), frames[..., 3].double())
    np.testing.assert_allclose(flat(frames, domain, "projection"), frames.double().mean(-1))
    assert view_name(domain, "slice") == "slice at z = 1.75"
    assert view_name(domain, "projection") == "mean along z"
    with pytest.raises(OvertoneError, match="view"):
        flat(frames, domain, "side")
    plane = Domain((4, 5), (1.0, 1.0), "periodic", ("a",))
    assert flat(frames[..., 0], plane).shape == (2, 4, 5)
    assert view_name(plane, "slice") == ""
