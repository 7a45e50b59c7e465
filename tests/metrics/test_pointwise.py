"""The Well's definitions, by formula."""

import math

import numpy as np
import pytest
import torch

import overtone as ot
from overtone import metrics
from overtone.metrics import pearson, time_to_decorrelation, vrmse


def pair(shape=(2, 3, 16, 12)):
    random = torch.Generator().manual_seed(0)
    truth = 3 + torch.randn(shape, generator=random, dtype=torch.float64)
    return truth + 0.3 * torch.randn(shape, generator=random, dtype=torch.float64), truth


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
    assert pearson(torch.ones(4, 4), torch.randn(4, 4), ndim=2) == 0


def test_every_error_is_the_formula_in_numpy():
    prediction, truth = pair()
    for i, j in np.ndindex(2, 3):
        x, y = prediction[i, j].numpy(), truth[i, j].numpy()
        error, variance = np.mean((x - y) ** 2), np.var(y, ddof=1)
        correlation = np.mean((x - x.mean()) * (y - y.mean()))
        expected = {
            "mse": error,
            "rmse": np.sqrt(error),
            "mae": np.abs(x - y).mean(),
            "nmse": error / (np.mean(y**2) + 1e-7),
            "vmse": error / (variance + 1e-7),
            "vrmse": np.sqrt(error / (variance + 1e-7)),
            "pearson": correlation / (np.std(x, ddof=1) * np.sqrt(variance) + 1e-7),
        }
        for name, value in expected.items():
            result = getattr(metrics, name)(prediction, truth, ndim=2)
            assert result.shape == (2, 3)
            assert result[i, j].item() == pytest.approx(value, rel=1e-12), name


def test_epsilon_counts_for_small_fields():
    truth = 1e-4 * torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert metrics.nmse(0 * truth, truth, ndim=1).item() == pytest.approx(1e-8 / 1.1e-7)


def test_time_to_decorrelation_interpolates_between_frames():
    curves = torch.tensor([[0.95, 0.85, 0.65, 0.9], [0.4, 0.3, 0.2, 0.1], [0.99] * 4])
    times = time_to_decorrelation(curves, 0.8, dt=0.5)
    # 0.8 lies a quarter of the way from 0.85 (second frame) to 0.65; a third from 1 to 0.4.
    assert times[:2].tolist() == pytest.approx([0.5 * 2.25, 0.5 / 3])
    assert times[2] == math.inf


def test_a_blow_up_is_decorrelated():
    assert time_to_decorrelation(torch.tensor([0.9, math.nan]), 0.8, dt=1.0) < 2


def test_bad_input():
    with pytest.raises(ot.DomainError, match="differ in shape"):
        vrmse(torch.zeros(3, 8), torch.zeros(1, 8), ndim=1)
    with pytest.raises(ot.OvertoneError, match="threshold is 1.5"):
        time_to_decorrelation(torch.zeros(3), 1.5, dt=1.0)
    with pytest.raises(ot.OvertoneError, match="empty"):
        time_to_decorrelation(torch.zeros(0), 0.5, dt=1.0)
