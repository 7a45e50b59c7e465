"""Single modes, Parseval, windows.

Profiles flatten power laws; whitening makes shells equally loud; envelopes see random signs.

The Well's bands: edges, sums, and single modes in the right one.
"""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import (
    axis_spectrum,
    band_edges,
    band_energy,
    bsmse,
    bsnmse,
    isotropic_spectrum,
    mode_power,
)
from overtone.metrics.spectrum import (
    LOUDEST,
    envelope,
    hann,
    lay_profile,
    wavenumber_norm,
    whiten,
)

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


def red_field(shape, slope, num=4, seed=0):
    random = torch.Generator().manual_seed(seed)
    space = tuple(range(-len(shape), 0))
    scale = wavenumber_norm(shape).clamp(min=1 / max(shape)) ** (-slope / 2)
    noise = torch.randn(num, *shape, generator=random, dtype=torch.float64)
    return torch.fft.ifftn(torch.fft.fftn(noise, dim=space) * scale, dim=space).real


def test_a_power_law_is_flattened_to_zero():
    k = wavenumber_norm((32, 48)).flatten()
    profile = lay_profile(k, k > 0)
    assert profile.flatten(-6 * k.clamp(min=1e-3).log())[1:].abs().max() < 1e-6


def test_shells_hold_every_mode_once():
    k = wavenumber_norm((24, 40)).flatten()
    modes = torch.cat(lay_profile(k, k > 0).shells)
    assert sorted(modes.tolist()) == list(range(1, 24 * 40))


def test_whitening_a_steep_field_makes_its_spectrum_flat():
    white = whiten(red_field((64, 64), 6), 2)
    spectrum = isotropic_spectrum(white, ndim=2)
    # Modes in a ring of radius r grow like r, so power by r is constant.
    level = spectrum.power.mean(dim=0)[2:31] / spectrum.wavenumber[2:31]
    assert level.max() / level.min() < 3
    assert torch.allclose(white.square().mean(dim=(-2, -1)), torch.ones(4, dtype=torch.float64))


def test_empty_shells_stay_empty():
    """Rounding errors beyond the edge of a band must not be made loud."""
    field, k = red_field((64, 64), 0), wavenumber_norm((64, 64))
    band = torch.fft.ifftn(torch.fft.fftn(field, dim=(-2, -1)) * (k < 0.2), dim=(-2, -1)).real
    power = torch.fft.fftn(whiten(band, 2), dim=(-2, -1)).abs().square()
    assert power[:, k > 0.3].max() < 1e-9 * power.max()


def test_an_envelope_does_not_depend_on_signs_or_units():
    field = red_field((32, 32), 3)
    one = envelope(field, (True, True))
    assert torch.allclose(one, envelope(-1e6 * field, (True, True)))
    assert 0.9 < one.mean() <= 1
    assert one.max() <= LOUDEST**2
    assert not envelope(torch.full((2, 16, 16), 3.0), (True, True)).any()


def test_ends_that_do_not_meet_make_no_spike():
    """A ramp has a jump at the seam; mirrored, its ends are as quiet as the rest."""
    ramp = torch.linspace(0, 100, 64, dtype=torch.float64)[:, None] + red_field((64, 64), 2)
    open_ends = envelope(ramp, (False, True))[:, [0, -1]].mean()
    joined_ends = envelope(ramp, (True, True))[:, [0, -1]].mean()
    assert joined_ends > 3 * open_ends


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


@pytest.mark.parametrize("unit", [1e-30, 1e-25, 1e30])
def test_units_do_not_matter_to_bands_and_spectra(unit, red_noise):
    truth = red_noise(2, (16, 24)).float()
    prediction = truth + 0.1 * torch.randn_like(truth)
    # In tiny units eps is the same share of a band's energy, else The Well's.
    same = 1e-9 if unit < 1 else 1.0
    expected = bsnmse(same * prediction.double(), same * truth.double(), ndim=2).float()
    found = bsnmse(unit * prediction, unit * truth, ndim=2)
    assert torch.allclose(found, expected, rtol=1e-2)
    power = isotropic_spectrum(unit * truth, ndim=2).power / unit**2
    assert torch.allclose(power, isotropic_spectrum(truth, ndim=2).power, rtol=1e-4)
