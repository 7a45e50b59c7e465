"""Combs are found with their period; nothing else is."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import find_period, harmonic_excess
from overtone.metrics.artifacts.lattice import patch_power
from overtone.solvers import ShearFlow
from tests.metrics.artifacts.noise import random_field


def comb(shape, patch, offset=0):
    """1 on the first cell of every patch along any axis, 0 elsewhere."""
    lines = [(torch.arange(n) - offset) % patch == 0 for n in shape]
    grid = torch.meshgrid(*lines, indexing="ij")
    return torch.stack(grid).any(dim=0).double()


@pytest.mark.parametrize("patch", [4, 8, 16])
@pytest.mark.parametrize("slope", [0, 3, 6])
def test_a_comb_is_found_with_its_period(patch, slope):
    field = random_field((64, 64), slope, seed=patch + slope) + comb((64, 64), patch, offset=3)
    found = find_period(field, ndim=2)
    assert found.patch == patch
    assert found.p_value < 1e-3
    assert found.excess > 10


@pytest.mark.parametrize(("shape", "patch"), [((512,), 16), ((32, 32, 32), 8), ((48, 96), 12)])
def test_combs_in_one_two_and_three_dimensions(shape, patch):
    field = random_field(shape, 3, num=4) + comb(shape, patch)
    assert find_period(field, ndim=len(shape)).patch == patch


def test_a_weak_coarse_comb_wins_over_a_strong_fine_one():
    field = random_field((64, 64), 3) + comb((64, 64), 4) + 0.5 * comb((64, 64), 16)
    assert find_period(field, ndim=2).patch == 16


@pytest.mark.parametrize("patch", [16, 10])
def test_axes_without_wrap_and_patches_that_do_not_divide(patch):
    ramp = torch.linspace(0, 5, 100, dtype=torch.float64)[:, None]
    field = random_field((100, 128), 3) + ramp + comb((100, 128), patch)
    found = find_period(field, ndim=2, periodic=(False, True))
    assert found.patch == patch
    assert harmonic_excess(field, patch, ndim=2, periodic=(False, True)).z > 5


@pytest.mark.parametrize(("tokenizer", "patch"), [("fixed", 8), ("csm", 16), ("ckm", 4)])
def test_the_grid_of_an_untrained_emulator_is_found(make_model, tokenizer, patch):
    """A real artifact: modulated by the flow, with side lines next to the lattice."""
    system = ShearFlow(shape=(64, 128), reynolds=5e3)
    frames = torch.stack(list(system.trajectory(2, 3, seed=0)), dim=1)
    patches = (patch,) if tokenizer == "fixed" else (4, 8, 16)
    model = make_model(system.domain, tokenizer=tokenizer, patches=patches)
    with torch.no_grad():
        change = model(ot.Window(frames, system.domain), patch) - frames[:, -1]
    assert find_period(change, ndim=2).patch == patch
    assert bool((harmonic_excess(change, patch, ndim=2).excess > 10).all())


def quiet_fields():
    """200 fields without an artifact, of the kinds that could be taken for one."""
    for seed in range(20):
        for slope in (0, 3, 4.5, 6):
            yield random_field((32, 48), slope, seed)
            yield random_field((48, 32), slope, 1000 + seed).float()
        yield random_field((64, 64), 0, seed, band=(0.1, 0.2, 0.3, 0.4)[seed % 4])
        truth = random_field((32, 32), 4, seed)
        yield truth - truth.roll((1 + seed % 8, seed % 3), dims=(-2, -1))


def test_false_alarms_are_rarer_than_one_in_a_hundred():
    fields = list(quiet_fields())
    alarms = sum(find_period(field, ndim=2).patch is not None for field in fields)
    assert len(fields) == 200
    assert alarms < 2


def test_pooled_fields_of_one_kind_raise_no_alarm():
    """Pooling narrows the spread, so a small bias would show here."""
    for slope in (0, 3, 6):
        assert find_period(random_field((64, 64), slope, num=64), ndim=2).patch is None
    truth = random_field((64, 64), 4, num=64)
    for shift in (1, 4, 8, 16):
        residual = truth - truth.roll(shift, dims=-1)
        assert find_period(residual, ndim=2).patch is None


def test_one_flow_against_another_raises_no_alarm():
    system = ShearFlow(shape=(64, 128), reynolds=5e3, dt=0.5)
    *_, frame = system.trajectory(2, 7, seed=2)
    assert find_period(frame[0] - frame[1], ndim=2).patch is None
    for channel in range(4):
        assert find_period(frame[0, channel] - frame[1, channel], ndim=2).patch is None


def test_a_flow_that_repeats_in_the_domain_raises_no_alarm():
    """Only even modes: every other mode is empty, on any lattice."""
    tile = random_field((64, 32), 3, num=8)
    assert find_period(torch.cat([tile, tile], dim=-1), range(2, 17), ndim=2).patch is None


def test_one_strong_wave_is_no_lattice():
    x = torch.arange(64, dtype=torch.float64)
    wave = 100 * torch.sin(2 * math.pi * x / 16)[:, None]
    assert find_period(random_field((64, 64), 3) + wave, ndim=2).patch is None


def test_excess_grows_with_the_amplitude_and_is_near_zero_without():
    field, grid = random_field((64, 64), 4), comb((64, 64), 8)
    amplitudes = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    fields = torch.cat([field + a * grid for a in amplitudes])
    verdict = harmonic_excess(fields, 8, ndim=2)
    assert verdict.excess.shape == verdict.z.shape == (7,)
    assert abs(verdict.excess[0]) < 4
    assert bool((verdict.excess[1:].diff() > 0).all())
    # Well above the background, ten times the amplitude is 20 dB.
    assert (verdict.excess[6] - verdict.excess[4]).item() == pytest.approx(20, abs=1)
    assert verdict.p_value[0] > 0.01
    assert verdict.p_value[-1] < 1e-6


def test_artifact_power_is_that_of_the_comb():
    grid = comb((64, 64), 8)
    verdict = harmonic_excess(random_field((64, 64), 6) + grid, 8, ndim=2)
    assert verdict.power.item() == pytest.approx(grid.var().item(), rel=0.05)
    assert 0 < verdict.share.item() < 1


def test_without_artifact_the_scores_are_those_of_the_null():
    verdict = harmonic_excess(random_field((64, 64), 3, num=200), 8, ndim=2)
    assert 0 < verdict.excess.mean() < 2
    assert verdict.z.mean().abs() < 1
    assert (verdict.p_value < 0.01).double().mean() <= 0.02


def test_artifacts_of_random_sign_show_in_the_energy():
    random = torch.Generator().manual_seed(0)
    sign = torch.randn(4, 8, 8, generator=random, dtype=torch.float64).sign()
    residual = comb((64, 64), 8) * sign.repeat_interleave(8, -2).repeat_interleave(8, -1)
    assert find_period(residual.square(), ndim=2).patch == 8


@pytest.mark.parametrize("value", [0.0, 0.1, -3e5])
@pytest.mark.parametrize("periodic", [True, False])
def test_constant_residuals_have_no_artifact(value, periodic):
    residual = torch.full((2, 64, 64), value)
    verdict = harmonic_excess(residual, 8, ndim=2, periodic=periodic)
    for values in (verdict.excess, verdict.z, verdict.power, verdict.share):
        assert torch.equal(values, torch.zeros(2, dtype=torch.float64))
    assert find_period(residual, ndim=2, periodic=periodic).patch is None


def test_patches_may_differ_by_axis():
    lines = ((torch.arange(64) % 8 == 0)[:, None] | (torch.arange(64) % 16 == 0)).double()
    verdict = harmonic_excess(random_field((64, 64), 3) + lines, (8, 16), ndim=2)
    assert verdict.patch == (8, 16)
    assert verdict.z > 5


def test_bad_input():
    field = random_field((32, 32))
    with pytest.raises(ot.PatchError, match="patch 64 does not fit a grid of"):
        harmonic_excess(field, 64, ndim=2)
    with pytest.raises(ot.PatchError, match="too few patches"):
        harmonic_excess(field, 32, ndim=2)
    with pytest.raises(ot.PatchError, match="give candidates"):
        find_period(random_field((3, 3)), ndim=2)
    with pytest.raises(ot.DomainError, match="NaN"):
        harmonic_excess(field * math.nan, 4, ndim=2)


@pytest.mark.parametrize(("shape", "patch"), [((64, 64), 8), ((256,), 16)])
def test_several_looks_at_a_lattice_are_paid_for(shape, patch):
    """The best of n looks is n times as likely to stand out by chance as one of them."""
    ndim = len(shape)
    field = random_field(shape, 3, num=40)
    found = harmonic_excess(field, patch, ndim=ndim)
    _, lattice = patch_power(field, (patch,) * ndim, (True,) * ndim)
    num = len(lattice.looks)
    assert num > 1 or ndim == 1
    expected = [min(1.0, num * 0.5 * math.erfc(z / math.sqrt(2))) for z in found.z.tolist()]
    assert found.p_value.tolist() == pytest.approx(expected)
