"""Single modes, Parseval, windows."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import axis_spectrum, isotropic_spectrum, mode_power
from overtone.metrics.spectrum import hann

SHAPES = [(30,), (31,), (16, 24), (15, 8), (8, 6, 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_parseval(shape):
    field = 2 + torch.randn(2, 3, *shape, dtype=torch.float64)
    ndim = len(shape)
    square = field.square().flatten(-ndim).mean(dim=-1)
    assert torch.allclose(mode_power(field, ndim=ndim).flatten(-ndim).sum(dim=-1), square)
    assert torch.allclose(isotropic_spectrum(field, ndim=ndim).power.sum(dim=-1), square)
    for axis in range(ndim):
        assert torch.allclose(axis_spectrum(field, axis, ndim=ndim).power.sum(dim=-1), square)


def test_single_modes_land_in_their_bins():
    x, y = torch.meshgrid(torch.arange(32.0), torch.arange(64.0), indexing="ij")
    wave = 3 * torch.cos(2 * math.pi * (4 * x / 32 + 6 * y / 64)) + 5
    spectrum = isotropic_spectrum(wave, ndim=2)
    # |k| = 2π/64 · |(8, 6)|: shell 10 of width 1/64.
    assert spectrum.power[10].item() == pytest.approx(4.5, rel=1e-5)
    assert spectrum.wavenumber[10].item() == pytest.approx(10 / 64)
    assert spectrum.power[0].item() == pytest.approx(25)
    for axis, mode, n in ((0, 4, 32), (1, 6, 64)):
        along = axis_spectrum(wave, axis, ndim=2)
        assert along.power.argsort(descending=True)[:2].tolist() == [0, mode]
        assert along.wavenumber[mode].item() == pytest.approx(mode / n)


def test_spacing_gives_physical_wavenumbers():
    y = torch.arange(64) / 64 * 10.0
    wave = torch.sin(2 * math.pi * 0.3 * y).expand(32, 64)
    spectrum = isotropic_spectrum(wave, ndim=2, spacing=(0.05, 10 / 64))
    assert spectrum.wavenumber[spectrum.power.argmax()].item() == pytest.approx(0.3)


def test_windows_keep_the_mean_square_and_confine_a_line():
    assert hann(20).square().mean().item() == pytest.approx(1)
    line = torch.cos(2 * math.pi * 8 * torch.arange(64) / 64)
    power = axis_spectrum(line, 0, ndim=1, periodic=False).power
    assert power.sum().item() == pytest.approx(0.5, rel=1e-6)
    assert power[7:10].sum() == pytest.approx(0.5, rel=1e-6)
    noise = torch.randn(400, 32, 32)
    total = mode_power(noise, ndim=2, periodic=(False, True)).sum(dim=(-2, -1)).mean()
    assert total.item() == pytest.approx(noise.square().mean().item(), rel=0.02)


def test_a_ramp_does_not_fill_the_spectrum_of_an_axis_without_wrap():
    ramp = torch.linspace(0, 1, 64)
    high = slice(16, None)
    plain = axis_spectrum(ramp, 0, ndim=1).power[high].sum()
    assert axis_spectrum(ramp, 0, ndim=1, periodic=False).power[high].sum() < 1e-3 * plain


def test_bad_input():
    with pytest.raises(ot.DomainError, match="axis is 2"):
        axis_spectrum(torch.zeros(8, 8), 2, ndim=2)
    with pytest.raises(ot.DomainError, match="one for each of 2"):
        mode_power(torch.zeros(8, 8), ndim=2, periodic=(True,))
