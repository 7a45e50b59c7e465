"""Which period is found, along which axes, in which statistic; and when none is."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import PeriodFinder, find_period
from overtone.solvers import KuramotoSivashinsky, ShearFlow
from tests.metrics.artifacts.noise import random_field

GRID = (64, 64)
FEW = (2, 3, 4, 5, 6, 8, 12, 16)


def flow(shape=GRID, slope=3.0, seed=0, **options):
    """Steep fields, as flows are."""
    return random_field(shape, slope, seed, **options)


def comb(patch, shape=GRID):
    """1 on the first cell of every patch along any axis, 0 elsewhere."""
    lines = [torch.arange(n) % patch == 0 for n in shape]
    return torch.stack(torch.meshgrid(*lines, indexing="ij")).any(dim=0).double()


def waves(harmonics, patch):
    """Some harmonics of a period along both axes."""
    x = torch.arange(GRID[0], dtype=torch.float64)
    lines = sum(torch.cos(2 * math.pi * m * x / patch + m) for m in harmonics)
    return lines[:, None] + lines


def random_signs(patch, num, seed=0):
    """A comb whose amplitude is drawn anew for each patch."""
    random = torch.Generator().manual_seed(seed)
    sizes = [n // patch for n in GRID]
    size = torch.randn(num, *sizes, generator=random, dtype=torch.float64)
    return comb(patch) * size.repeat_interleave(patch, -2).repeat_interleave(patch, -1)


def periods(make, seeds=range(1000, 1010)):
    """What is found in a field of each seed."""
    return [find_period(make(seed), FEW, ndim=2) for seed in seeds]


@pytest.mark.parametrize(("patch", "amplitude"), [(4, 0.1), (8, 0.2), (16, 0.5)])
def test_weak_combs_in_a_steep_spectrum_are_found_with_their_full_period(patch, amplitude):
    """The finest harmonics stand out most; the period is the coarsest one's all the same."""
    found = periods(lambda seed: flow(seed=seed) + amplitude * comb(patch))
    assert sum(entry.patch == patch for entry in found) >= 9


@pytest.mark.parametrize(
    ("harmonics", "of", "period"),
    [((1, 3), 16, 16), ((2, 6), 16, 8), ((5, 7), 16, 16), ((4, 8), 16, 4), ((2, 4), 8, 4)],
)
def test_combs_with_some_harmonics_only(harmonics, of, period):
    """Few lines need several frames; what is found of them has the right period."""
    lines = 0.6 * waves(harmonics, of)
    found = periods(lambda seed: flow(seed=seed, num=8) + lines, range(1000, 1006))
    assert sum(entry.sizes == (period, period) for entry in found) >= 5
    assert all(entry.patch in (None, period) for entry in found)


def test_two_combs_have_their_least_common_period():
    grids = comb(4, (60, 60)) + comb(6, (60, 60))
    found = find_period(flow((60, 60)) + 0.5 * grids, range(2, 16), ndim=2)
    assert (found.patch, found.sizes) == (12, (12, 12))


def test_periods_that_differ_by_axis():
    lines = ((torch.arange(64) % 8 == 0)[:, None] | (torch.arange(64) % 16 == 0)).double()
    assert find_period(flow() + lines, FEW, ndim=2).sizes == (8, 16)
    along_x = (torch.arange(64) % 8 == 0).double()[:, None].expand(GRID)
    assert find_period(flow() + along_x, FEW, ndim=2).sizes == (8, 1)
    assert find_period(flow() + along_x.T, FEW, ndim=2).sizes == (1, 8)


@pytest.mark.parametrize("patch", [8, 16])
@pytest.mark.parametrize("slope", [3, 6])
def test_artifacts_of_random_sign_are_found_by_their_energy(patch, slope):
    field = flow(slope=slope, num=4) + 0.6 * random_signs(patch, 4)
    found = find_period(field, FEW, ndim=2)
    assert (found.patch, found.statistic) == (patch, "energy")


def test_noise_that_is_louder_at_the_edges_of_patches():
    noise = torch.randn(4, *GRID, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = find_period(flow(num=4) + 0.3 * comb(8) * noise, FEW, ndim=2)
    assert (found.patch, found.statistic) == (8, "energy")


def test_combs_are_found_by_their_lines():
    assert find_period(flow() + comb(8), FEW, ndim=2).statistic == "lines"


def test_the_amplitude_from_which_combs_are_found():
    """Below the threshold nothing is said, above it the period is right: no third outcome."""
    for num, amplitudes in ((1, (0.01, 0.03, 0.3, 1.0)), (16, (0.01, 0.03, 0.1, 0.3))):
        found = [
            find_period(flow(num=num, seed=5) + a * comb(8), FEW, ndim=2).patch for a in amplitudes
        ]
        assert found == [None, None, 8, 8]


@pytest.mark.parametrize("patch", [4, 8])
def test_stride_modulated_models_show_their_patch(make_model, patch):
    """CSM at patch 4 strides by 2 and 2; its period is 4, not 2."""
    system = ShearFlow(shape=(64, 64), reynolds=5e3)
    frames = torch.stack(list(system.trajectory(1, 3, seed=0)), dim=1)
    model = make_model(system.domain)
    with torch.no_grad():
        change = model(ot.Window(frames, system.domain), patch) - frames[:, -1]
    assert find_period(change, FEW, ndim=2).patch == patch


def test_one_by_one_is_the_same_as_all_at_once():
    fields = flow(num=6) + 0.5 * comb(8)
    finder = PeriodFinder(FEW, ndim=2)
    for part in fields.split(2):
        finder.update(part)
    whole, parts = find_period(fields, FEW, ndim=2), finder.result()
    assert parts.patch == whole.patch == 8
    assert parts.excess == pytest.approx(whole.excess)
    assert parts.z == pytest.approx(whole.z)


def quiet_fields(seeds):
    """Ten fields without an artifact for each seed, of the kinds that could be taken for one."""
    for seed in seeds:
        for slope in (3, 4, 5, 6):
            yield flow((32, 32), slope, 10 * seed)
            yield flow((32, 48), slope, 10 * seed + 1).float()
        yield flow((48, 48), 0, seed, band=(0.1, 0.2, 0.3, 0.45)[seed % 4])
        truth = flow((32, 32), 4, seed)
        yield truth - truth.roll((1 + seed % 8, seed % 3), dims=(-2, -1))


def alarms(seeds):
    return sum(find_period(field, ndim=2).patch is not None for field in quiet_fields(seeds))


def test_few_false_alarms():
    assert alarms(range(100, 105)) == 0


@pytest.mark.slow
def test_false_alarms_are_rarer_than_one_in_a_hundred():
    assert alarms(range(60)) < 6


def test_pooled_fields_raise_no_alarm_in_either_statistic():
    """Pooling narrows the spread, so a small bias would show here."""
    for slope in (0, 4):
        assert find_period(flow(slope=slope, num=48), FEW, ndim=2).patch is None
    truth = flow(slope=4, num=48)
    for shift in (4, 8, 12, 16):
        residual = truth - truth.roll(shift, dims=-1)
        assert find_period(residual, FEW, ndim=2).patch is None


def test_one_chaotic_trajectory_against_another_raises_no_alarm():
    system = KuramotoSivashinsky()
    *_, frame = system.trajectory(16, 60, seed=3)
    residual = frame[:8] - frame[8:]
    assert find_period(residual, range(2, 17), ndim=1).patch is None
    flow = ShearFlow(shape=(64, 64), reynolds=5e3, dt=0.5)
    *_, frame = flow.trajectory(2, 7, seed=2)
    assert find_period(frame[0] - frame[1], FEW, ndim=2).patch is None


def test_bad_input():
    finder = PeriodFinder([4], ndim=2)
    with pytest.raises(ot.OvertoneError, match="call update first"):
        finder.result()
    finder.update(flow((32, 32)))
    with pytest.raises(ot.DomainError, match="after ones of"):
        finder.update(flow((16, 32)))
    with pytest.raises(ot.PatchError, match="does not fit"):
        find_period(flow((32, 32)), [64], ndim=2)
