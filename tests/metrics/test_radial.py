"""Profiles flatten power laws; whitening makes shells equally loud; envelopes see random signs."""

import torch

from overtone.metrics.radial import LOUDEST, envelope, lay_profile, whiten
from overtone.metrics.spectrum import isotropic_spectrum, wavenumber_norm


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
