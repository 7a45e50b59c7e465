import pytest
import torch

from overtone.metrics import vrmse


def test_predicting_the_mean_has_error_one():
    truth = torch.randn(2, 3, 64, 64)
    mean = truth.mean((-2, -1), keepdim=True).expand_as(truth)
    # The unbiased variance is larger than the mean square by n / (n - 1).
    assert torch.allclose(vrmse(mean, truth, ndim=2), torch.ones(2, 3), rtol=2e-4)


def test_known_value():
    truth = torch.tensor([0.0, 1.0, 2.0, 3.0])
    # MSE 0.25, unbiased variance 5/3
    assert vrmse(truth + 0.5, truth, ndim=1).item() == pytest.approx((0.25 / (5 / 3)) ** 0.5)


def test_constant_truth_is_finite():
    assert vrmse(torch.ones(4, 4), torch.ones(4, 4), ndim=2) == 0
