"""The Well's bands: edges, sums, and single modes in the right one."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import band_edges, band_energy, bsmse, bsnmse


def test_edges_are_the_wells():
    edges = band_edges((32, 64))
    low, high = math.log10(2 * math.pi / 64), math.log10(math.pi * math.sqrt(2) + 1e-6)
    assert edges[0] == 0
    assert edges[1:].tolist() == pytest.approx(
        [10 ** (low + (high - low) * i / 3) for i in (1, 2, 3)], rel=1e-12
    )


@pytest.mark.parametrize("shape", [(30,), (16, 24), (17, 8), (8, 6, 7)])
def test_bands_add_up_to_the_mean_square_error(shape):
    prediction, truth = torch.randn(2, 4, *shape, dtype=torch.float64)
    error = (prediction - truth).square().flatten(1).mean(dim=1)
    assert torch.allclose(bsmse(prediction, truth, ndim=len(shape)).sum(dim=-1), error)


def test_a_band_is_the_filtered_field():
    field = torch.randn(16, 24, dtype=torch.float64)
    edges = torch.tensor([0.0, 0.9, 2.0, 5.0])
    kx = 2 * math.pi * torch.fft.fftfreq(16, dtype=torch.float64)[:, None]
    ky = 2 * math.pi * torch.fft.fftfreq(24, dtype=torch.float64)[None]
    k = (kx**2 + ky**2).sqrt()
    for band in range(3):
        inside = (k >= edges[band]) & (k < edges[band + 1])
        filtered = torch.fft.ifft2(torch.fft.fft2(field) * inside).real
        energy = band_energy(field, ndim=2, edges=edges)[band]
        assert energy.item() == pytest.approx(filtered.square().mean().item())


@pytest.mark.parametrize(("mode", "band"), [(0, 0), (2, 0), (9, 1), (30, 2)])
def test_single_modes_fall_into_their_band(mode, band):
    wave = torch.cos(2 * math.pi * mode * torch.arange(64) / 64).expand(64, 64)
    energy = band_energy(wave, ndim=2)
    assert energy.argmax() == band
    assert energy[band].item() == pytest.approx(1.0 if mode == 0 else 0.5, rel=1e-5)


def test_predicting_nothing_has_error_one_in_every_band():
    truth = torch.randn(3, 32, 32, dtype=torch.float64)
    assert torch.allclose(bsnmse(0 * truth, truth, ndim=2), torch.ones(3, 3).double(), rtol=1e-4)
    error, energy = bsmse(truth + 1, truth, ndim=2), band_energy(truth, ndim=2)
    assert torch.allclose(bsnmse(truth + 1, truth, ndim=2), error / (energy + 1e-7))


def test_bad_edges():
    with pytest.raises(ot.OvertoneError, match="ascending"):
        band_energy(torch.zeros(8), ndim=1, edges=torch.tensor([1.0, 0.5]))
