"""Equality with the metrics of the installed `the_well` package."""

import pytest
import torch

from overtone import metrics

pytestmark = pytest.mark.slow


class Meta:
    """What The Well's metrics need to know of a dataset."""

    def __init__(self, ndim):
        self.n_spatial_dims = ndim


def pair(shape):
    truth = 2 + torch.randn(2, 3, *shape)
    return truth + 0.3 * torch.randn(2, 3, *shape), truth


def channels_last(field, ndim):
    return torch.movedim(field, -ndim - 1, -1)


@pytest.mark.parametrize("shape", [(24,), (16, 20), (8, 6, 10)])
@pytest.mark.parametrize("name", ["MSE", "RMSE", "NMSE", "VMSE", "VRMSE", "PearsonR"])
def test_pointwise(name, shape):
    theirs = pytest.importorskip("the_well.benchmark.metrics.spatial")
    ndim = len(shape)
    prediction, truth = pair(shape)
    ours = {"PearsonR": metrics.pearson}.get(name) or getattr(metrics, name.lower())
    expected = getattr(theirs, name).eval(
        channels_last(prediction, ndim), channels_last(truth, ndim), Meta(ndim)
    )
    assert torch.allclose(ours(prediction, truth, ndim=ndim), expected, rtol=2e-5)


@pytest.mark.parametrize("shape", [(24,), (16, 20), (8, 6, 10)])
def test_bands(shape):
    theirs = pytest.importorskip("the_well.benchmark.metrics.spectral")
    ndim = len(shape)
    prediction, truth = pair(shape)
    expected = theirs.binned_spectral_mse.eval(
        channels_last(prediction, ndim), channels_last(truth, ndim), Meta(ndim)
    )
    for kind, ours in (("mse", metrics.bsmse), ("nmse", metrics.bsnmse)):
        bands = ours(prediction, truth, ndim=ndim)
        for band in range(3):
            wanted = expected[f"spectral_error_{kind}_per_bin_{band}"]
            assert torch.allclose(bands[..., band], wanted, rtol=1e-4)
