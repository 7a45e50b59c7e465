"""Predictions with a known artifact, and without one."""

import gc
import math

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data.frames import Frames
from overtone.evaluate import survey
from overtone.evaluate.diagnose import diagnose

GRID = (48, 64)


def comb(patch, shape=GRID):
    lines = [torch.arange(n) % patch == 0 for n in shape]
    return torch.stack(torch.meshgrid(*lines, indexing="ij")).any(dim=0).double()


def frames(values, channels=(), name="a", domain=None):
    """Frames from a tensor `(n, T, C, *S)`."""
    return Frames(
        name,
        tuple(values.shape[3:]),
        (values.shape[1],) * len(values),
        values.shape[2],
        channels,
        domain,
        lambda sample, step: values[sample, step],
    )


@pytest.fixture(scope="module")
def truth(red_noise):
    return red_noise(24, GRID, slope=4).reshape(2, 6, 2, *GRID)


@pytest.fixture(scope="module")
def error(red_noise):
    return red_noise(24, GRID, seed=1).reshape(2, 6, 2, *GRID)


STEPS = torch.arange(1, 7, dtype=torch.float64)[:, None, None, None]


@pytest.mark.parametrize("growth", [0, 2])
def test_a_comb_with_its_period_share_and_growth(truth, error, growth):
    grid = comb(8) - comb(8).mean()
    artifact = 0.5 * STEPS ** (growth / 2) * grid
    case = diagnose(frames(truth + 0.1 * error + artifact), frames(truth))
    found = case.diagnosis.artifact
    assert case.diagnosis.found
    assert found.period == (8, 8)
    assert found.exponent == pytest.approx(growth, abs=0.1)
    scale = truth.var(dim=(-2, -1)).mean(dim=(0, 1))
    expected = [(artifact[n].square().mean() / scale).mean().item() for n in (0, 5)]
    assert [found.power_by_step[n] for n in (0, 5)] == pytest.approx(expected, rel=0.1)
    shares = artifact.square().mean(dim=(-2, -1)) / (0.1 * error + artifact).var(dim=(-2, -1))
    assert found.share == pytest.approx(shares.mean().item(), abs=0.03)
    assert found.p_value < 1e-6
    cell = torch.tensor(found.cell)
    assert min(cell[0].min(), cell[:, 0].min()) > cell[1:, 1:].max()
    assert case.residual.shape == GRID
    assert case.diagnosis.sentence.startswith("Grid artifact of period 8 cells on both axes: ")


def test_no_artifact(truth, error):
    diagnosis = diagnose(frames(truth + 0.1 * error), frames(truth)).diagnosis
    assert (diagnosis.found, diagnosis.artifact) == (False, None)
    assert diagnosis.sentence == "No grid artifact found (periods 2 to 12, 16 tested)."
    assert diagnosis.tested == (*range(2, 13), 16)
    assert len(diagnosis.error_by_step) == diagnosis.steps == 6


def test_a_patch_that_is_asked_for(truth, error):
    prediction = frames(truth + 0.1 * error + 0.1 * comb(8))
    assert diagnose(prediction, frames(truth), patch=8).diagnosis.artifact.period == (8, 8)
    # Of the harmonics of 16 only those of 8 are there.
    assert diagnose(prediction, frames(truth), patch=(8, 16)).diagnosis.artifact.period == (8, 8)
    other = diagnose(prediction, frames(truth), patch=6).diagnosis
    assert not other.found
    assert other.artifact.period == (6, 6)
    assert other.sentence == "No grid artifact found (period 6 tested)."


def test_random_signs(truth, error):
    sizes = torch.randn(2, 6, 2, 6, 8, dtype=torch.float64)
    sizes = sizes.repeat_interleave(8, -2).repeat_interleave(8, -1)
    prediction = truth + 0.1 * error + 0.1 * STEPS * comb(8) * sizes
    found = diagnose(frames(prediction), frames(truth)).diagnosis.artifact
    assert (found.period, found.statistic) == ((8, 8), "energy")
    assert math.isnan(found.share)
    assert found.exponent == pytest.approx(2, abs=0.5)
    assert found.contrast > 0


def test_patches_that_disagree(truth, error):
    """Each patch is off by a number of its own: no lines, and energy that other errors hide."""
    off = torch.randn(2, 6, 2, 6, 8, dtype=torch.float64)
    off = off.repeat_interleave(8, -2).repeat_interleave(8, -1)
    case = diagnose(frames(truth + 0.1 * STEPS * (error + 0.2 * off)), frames(truth))
    found = case.diagnosis.artifact
    assert (found.period, found.statistic) == ((8, 8), "seams")
    assert found.excess > 2
    assert found.exponent == pytest.approx(2, abs=0.3)
    assert len(found.excess_by_step) == len(found.power_by_step) == 6
    assert case.diagnosis.sentence.startswith("Seams between patches, period 8 cells on both axes")
    assert diagnose(frames(truth + 0.1 * STEPS * error), frames(truth)).diagnosis.artifact is None


def blocks(patch, shape, num, seed):
    """Patches `(num, 1, 1, *shape)` that are each off by a number of their own."""
    random = torch.Generator().manual_seed(seed)
    off = torch.randn(num, 1, 1, *(n // patch for n in shape), generator=random).double()
    return off.repeat_interleave(patch, -2).repeat_interleave(patch, -1)


@pytest.mark.parametrize(
    ("shape", "patch", "finer"),
    [((64, 64), 32, None), ((32, 64), 16, None), ((64, 64), 16, 4), ((32, 64), 16, 4)],
)
def test_few_patches_are_not_taken_for_their_parts(red_noise, shape, patch, finer):
    """Two patches along an axis suffice, also where a decoder leaves blocks within them."""
    truth = red_noise(6, shape, 5).reshape(6, 1, 1, *shape)
    error = red_noise(6, shape, 5, seed=1).reshape(truth.shape) + 0.3 * blocks(patch, shape, 6, 2)
    if finer is not None:
        error += 0.1 * blocks(finer, shape, 6, 3)
    found = diagnose(frames(truth + 0.1 * error), frames(truth), boundaries="periodic")
    assert found.diagnosis.artifact.period == (patch, patch)


def test_a_strong_quarter_is_one_of_the_lines_of_sixteen(red_noise):
    shape = (32, 64)
    truth = red_noise(6, shape, 4).reshape(6, 1, 1, *shape)
    error = red_noise(6, shape, seed=1).reshape(truth.shape)
    for axis, n in enumerate(shape):
        x = 2 * math.pi * torch.arange(n, dtype=torch.float64) / 16
        lines = sum((1.0 if m == 4 else 0.1) * torch.cos(m * x + m) for m in range(1, 9))
        error = error + (lines[:, None] if axis == 0 else lines)
    found = diagnose(frames(truth + 0.1 * error), frames(truth), boundaries="periodic").diagnosis
    assert (found.artifact.period, found.artifact.statistic) == ((16, 16), "lines")


def test_flows_that_repeat_half_a_domain_apart_are_no_grid(red_noise):
    """Two shear layers have the period of two patches."""
    layers = (torch.arange(64, dtype=torch.float64) * 4 * math.pi / 64).sin().square() + 0.1
    truth = red_noise(8, (64, 64), 4).reshape(8, 1, 1, 64, 64)
    error = layers * red_noise(8, (64, 64), 4, seed=1).reshape(truth.shape)
    prediction = frames(truth + 0.1 * error)
    assert not diagnose(prediction, frames(truth), boundaries="periodic").diagnosis.found


@pytest.mark.parametrize(("shape", "patch"), [((256,), 8), ((24, 24, 24), 6)])
def test_one_and_three_dimensions(red_noise, shape, patch):
    truth = red_noise(4, shape, 4).reshape(1, 4, 1, *shape)
    prediction = truth + 0.1 * red_noise(4, shape, seed=1).reshape(truth.shape)
    found = diagnose(frames(prediction + 0.1 * comb(patch, shape)), frames(truth)).diagnosis
    assert found.artifact.period == (patch,) * len(shape)
    assert not diagnose(frames(prediction), frames(truth)).diagnosis.found


def test_blow_up_is_a_step_and_what_is_before_it_counts(truth, error):
    prediction = truth + 0.1 * error + 0.3 * comb(8)
    prediction[1, 3:, 0, 5, 5] = math.nan
    diagnosis = diagnose(frames(prediction), frames(truth)).diagnosis
    assert diagnosis.blow_up == 4
    assert diagnosis.found
    assert diagnosis.sentence.endswith("The prediction blows up (NaN or infinite) at step 4.")
    assert diagnosis.steps == 6  # the other sample goes on
    prediction[0, 4:] = math.inf
    assert diagnose(frames(prediction), frames(truth)).diagnosis.steps == 4
    with pytest.raises(ot.DataError, match="nothing to diagnose"):
        diagnose(frames(prediction * math.nan), frames(truth))


def test_constant_fields_are_left_out(truth, error):
    flat = truth.clone()
    flat[:, :, 1] = 3.0
    prediction = frames(flat + 0.1 * error, ("a", "b"))
    diagnosis = diagnose(prediction, frames(flat)).diagnosis
    assert diagnosis.fields == ("a",)
    assert "Constant in the truth and left out: b." in diagnosis.notes
    with pytest.raises(ot.DataError, match="constant in space"):
        diagnose(prediction, frames(flat), field="b")


def test_boundaries_given_known_or_judged(truth, error):
    prediction = frames(truth + 0.1 * error)
    ramp = truth + torch.linspace(0, 20, GRID[1], dtype=torch.float64)
    open_in_y = diagnose(frames(ramp + 0.1 * error), frames(ramp)).diagnosis
    assert open_in_y.periodic == (True, False)
    assert "x periodic, y open" in open_in_y.notes[-1]
    given = diagnose(prediction, frames(truth), boundaries=["wall", "periodic"]).diagnosis
    assert (given.periodic, given.notes) == ((False, True), ())
    domain = ot.Domain(GRID, (1.0, 1.0), "open", ("a", "b"))
    known = diagnose(prediction, frames(truth, domain=domain)).diagnosis
    assert (known.periodic, known.notes) == ((False, False), ())


def test_the_artifact_is_found_on_open_axes(truth, error):
    ramp = truth + torch.linspace(0, 20, GRID[1], dtype=torch.float64)
    prediction = frames(ramp + 0.1 * error + 2 * comb(8))
    assert diagnose(prediction, frames(ramp)).diagnosis.artifact.period == (8, 8)


def test_a_very_long_axis_is_cropped(monkeypatch, truth, error):
    monkeypatch.setattr(survey, "MOST_CELLS", {2: 48})
    prediction = frames(truth + 0.1 * error + 0.3 * comb(8))
    diagnosis = diagnose(prediction, frames(truth)).diagnosis
    assert diagnosis.periodic == (True, False)
    assert "Only a box of (48, 48) of (48, 64) cells is looked at." in diagnosis.notes
    assert diagnosis.artifact.period == (8, 8)


def test_units_do_not_matter(truth, error):
    prediction = truth + 0.1 * error + 0.1 * comb(8)
    one = diagnose(frames(prediction), frames(truth), patch=8).diagnosis.artifact
    units = torch.tensor([1e-6, 1e6])[:, None, None]
    other = diagnose(frames(units * prediction), frames(units * truth), patch=8)
    assert other.diagnosis.artifact.share == pytest.approx(one.share)
    assert other.diagnosis.artifact.power_by_step == pytest.approx(one.power_by_step)


def held_numbers(base, steps):
    """Numbers in tensors that are alive while a prediction of so many steps is diagnosed."""

    def read(shift):
        def frame(sample, step):
            values = np.roll(base[0], step, axis=0) + shift * np.roll(base[1], 3 * step, axis=1)
            return torch.from_numpy(values[None])

        return Frames("a", (32, 32), (steps,), 1, (), None, frame)

    held = []

    def progress(done, total):
        held.append(sum(t.numel() for t in _tensors()) if done in (2, total) else 0)

    diagnose(read(0.1), read(0.0), patch=8, progress=progress)
    return max(held)


def _tensors():
    return [entry for entry in gc.get_objects() if type(entry) is torch.Tensor]


def test_memory_does_not_grow_with_the_length(red_noise):
    base = red_noise(2, (32, 32)).numpy()
    held_numbers(base, 10)  # tables that are kept
    assert held_numbers(base, 60) <= 1.1 * held_numbers(base, 10)


def test_bad_patches(truth, error):
    prediction = frames(truth + 0.1 * error)
    with pytest.raises(ot.PatchError, match=r"patch 65 does not fit a grid of \(48, 64\)"):
        diagnose(prediction, frames(truth), patch=65)
    with pytest.raises(ot.PatchError, match="too few patches"):
        diagnose(prediction, frames(truth), patch=(48, 64))
    with pytest.raises(ot.DomainError, match="expected one int, or one for each of 2"):
        diagnose(prediction, frames(truth), patch=(4, 4, 4))


@pytest.mark.parametrize("units", [(1e-25, 1e20), (1e30, 1e-30)])
def test_units_may_be_mixed(truth, error, units):
    """A comb in one field, and ends that meet in one field, are seen whatever their units are."""
    units = torch.tensor(units, dtype=torch.float64)[:, None, None]
    true = truth.clone()
    true[:, :, 1] += torch.linspace(0, 40, GRID[0], dtype=torch.float64)[:, None]
    predicted = true + 0.1 * error + 0.5 * (comb(8) - comb(8).mean())
    one, other = (diagnose(frames(u * predicted), frames(u * true)).diagnosis for u in (1.0, units))
    assert one.found
    assert other.artifact.period == one.artifact.period == (8, 8)
    assert other.periodic == one.periodic
    assert other.artifact.excess_by_step == pytest.approx(one.artifact.excess_by_step, abs=1e-6)
