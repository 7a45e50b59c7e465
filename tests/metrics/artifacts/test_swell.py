"""Humps around harmonics: spectra whose swell is known, and fields that have one."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import PatchError
from overtone.metrics import axis_spectrum, harmonic_swell
from overtone.metrics.artifacts.swell import has_swell


def modes(cells):
    return torch.arange(cells // 2 + 1, dtype=torch.float64)


@given(st.sampled_from([(256, 16), (64, 16), (64, 8), (100, 16), (96, 9)]), st.floats(-6, 2))
def test_a_power_law_has_none(sizes, slope):
    cells, patch = sizes
    power = modes(cells).clamp(min=1) ** slope
    assert harmonic_swell(power, patch, cells).item() == pytest.approx(0, abs=1e-6)


def test_the_fall_off_of_a_smooth_field_has_hardly_any():
    power = modes(256).clamp(min=1) ** -3 * torch.exp(-modes(256) / 6)
    assert abs(harmonic_swell(power, 16, 256).item()) < 0.05


@pytest.mark.parametrize(("cells", "patch"), [(256, 16), (64, 8), (128, 8), (100, 10)])
def test_humps_of_a_known_height(cells, patch):
    """Ten times the power within a quarter of the distance of every harmonic is 10 dB."""
    place = modes(cells) * patch / cells
    near = (place - place.round()).abs() <= 0.25
    power = (0.3 * modes(cells).clamp(min=1) ** -2) * torch.where(near, 10.0, 1.0)
    assert harmonic_swell(power, patch, cells).item() == pytest.approx(10, abs=1e-6)


def test_neither_units_nor_other_periods_matter():
    power = torch.rand(3, 129, dtype=torch.float64) + 0.1
    expected = harmonic_swell(power, 16, 256)
    torch.testing.assert_close(harmonic_swell(1e-9 * power, 16, 256), expected)
    assert expected.shape == (3,)
    humps = torch.where((modes(256) % 16 - 8).abs() >= 4, 10.0, 1.0)  # of period 16
    assert harmonic_swell(humps, 16, 256).item() == pytest.approx(10)
    assert harmonic_swell(humps, 8, 256).item() < 1


def test_the_mean_and_the_last_harmonic_do_not_count():
    power = torch.ones(129, dtype=torch.float64)
    power[0] = power[-1] = 1e6
    assert harmonic_swell(power, 16, 256).item() == pytest.approx(0, abs=1e-9)


def test_noise_has_none_on_average():
    noise = torch.randn(200, 8, 256)
    found = harmonic_swell(axis_spectrum(noise, 1, ndim=2).power, 16, 256)
    assert abs(found.mean().item()) < 4 * found.std().item() / math.sqrt(len(found))


def test_steps_that_follow_a_flow_swell_where_lines_are_missing():
    """Patches that are off by a wave of the flow have no power on the harmonics themselves."""
    x = torch.arange(256, dtype=torch.float64) * 2 * math.pi / 256
    wave = (3 * x + 0.4).sin()[::16].repeat_interleave(16)
    power = axis_spectrum(wave + 1e-3 * torch.randn(64, 256), 0, ndim=1).power
    assert harmonic_swell(power, 16, 256).mean().item() > 10
    assert power[:, 16].mean() < 1e-6  # nothing on 1/16 itself, much at 13 and 19 of 256
    assert power[:, 13].mean() > 1e-3


def test_what_it_can_not_tell():
    assert has_swell(8, 32)
    for patch, cells in ((4, 256), (16, 48), (7, 700)):
        assert not has_swell(patch, cells)
        with pytest.raises(PatchError, match=f"axis of {cells} cells with patches of {patch}"):
            harmonic_swell(torch.ones(cells // 2 + 1), patch, cells)
