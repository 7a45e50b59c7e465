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


def wave(variance, mean=0.0):
    """A field of this unbiased variance and mean, float64."""
    x = torch.sin(2 * math.pi * torch.arange(64, dtype=torch.float64) / 64)
    return mean + x * math.sqrt(variance) / x.std()


@pytest.mark.parametrize(
    ("variance", "mean", "expected"),
    [
        (1.0, 0.0, 1e-7),
        (1e-12, 1.0, 1e-7),
        (1e-12, 300.0, 1e-7),
        (1e-8, 0.0, 1e-7),  # a flow that is still at rest: as in The Well
        (1.1e-12, 0.0, 1e-7),
        (0.9e-12, 0.0, 0.9e-16),  # below this no such unit was meant: a share of the variance
        (1e-50, 0.0, 1e-54),
        (1e-60, 1e-25, 1e-57),  # a share of the square, where it hardly varies
    ],
)
def test_epsilon_is_the_wells_but_for_tiny_units(variance, mean, expected):
    truth = wave(variance, mean)
    found = metrics.pointwise.epsilon(*metrics.pointwise.powers(truth, 1))
    assert found.item() == pytest.approx(expected, rel=2e-2)
    error = metrics.vmse(truth + 1e-3, truth, ndim=1).item()
    assert error == pytest.approx(1e-6 / (variance + found.item()), rel=1e-6)
    share = metrics.pointwise.epsilon_share(truth, ndim=1).item()
    assert share == pytest.approx(found.item() / variance, rel=1e-3)


@pytest.mark.parametrize("unit", [1e-30, 1e-25, 1e-8, 1e19, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_unit_hides_an_error(unit, dtype):
    prediction, truth = (values.to(dtype) for values in pair())
    for name in ("nmse", "vmse", "vrmse", "pearson"):
        measure = getattr(metrics, name)
        expected = measure(prediction, truth, ndim=2)
        found = measure(unit * prediction, unit * truth, ndim=2)
        assert torch.allclose(found, expected, rtol=2e-4), name
        assert found.dtype == dtype
    for name in ("rmse", "mae"):
        expected = unit * getattr(metrics, name)(prediction, truth, ndim=2).double()
        found = getattr(metrics, name)(unit * prediction, unit * truth, ndim=2).double()
        assert torch.allclose(found, expected, rtol=1e-5, atol=0.0), name


def test_a_wrong_prediction_of_a_small_field_is_seen_and_a_right_one_is_right():
    truth = 1e-25 * pair()[1].float()
    assert float(vrmse(torch.full_like(truth, 4e-4), truth, ndim=2).min()) > 1e20
    assert bool((vrmse(truth, truth, ndim=2) == 0).all())
    assert bool((vrmse(truth, 1e-25 * torch.ones_like(truth), ndim=2) > 1e3).all())


@pytest.mark.parametrize("value", [0.0, 1e-25, 1.0, 1e20])
def test_a_constant_is_right_or_wrong_by_its_own_size(value):
    truth = torch.full((8, 8), value)
    assert vrmse(truth, truth, ndim=2) == 0
    assert metrics.nmse(truth, truth, ndim=2) == 0
    wrong = truth + 0.1 * (value or 1.0)
    assert vrmse(wrong, truth, ndim=2) > 10
    assert metrics.pointwise.epsilon_share(truth, ndim=2) == math.inf


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
