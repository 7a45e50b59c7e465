"""Sums of what steps give, for frames whose numbers are known."""

import math

import pytest
import torch

import overtone as ot
from overtone.evaluate.tally import Tally
from overtone.metrics import (
    axis_spectrum,
    bsnmse,
    harmonic_excess,
    harmonic_swell,
    isotropic_spectrum,
    vrmse,
)

DOMAIN = ot.Domain((16, 32), (1.0, 2.0), "periodic", ("a", "b"), 0.5)
AT_REST = ot.Choice((4, 4), (0, 0))


def filled(num=3, steps=12, patches=(4,)):
    tally = Tally(DOMAIN, num, steps, patches, seed=0)
    frames, truths = torch.randn(2, steps, num, 2, *DOMAIN.shape)
    for step in range(1, steps + 1):
        frame, truth = frames[step - 1], truths[step - 1]
        tally.record(step, range(num), frame, truth, AT_REST)
        tally.record_seconds(step, 0.3, num)
    tally.close(range(num))
    return tally, frames, truths


def test_averages_are_plain_means():
    tally, frames, truths = filled()
    errors = vrmse(frames, truths, ndim=2).double()
    assert [e.value for e in tally.vrmse] == pytest.approx(errors.mean((1, 2)).tolist())
    assert tally.vrmse_up_to(10).value == pytest.approx(errors[:10].mean().item())
    assert tally.vrmse_up_to(12).value == pytest.approx(errors.mean().item())
    assert tally.vrmse_up_to(99) == tally.vrmse_up_to(12)
    assert tally.fields["b"].value == pytest.approx(errors[..., 1].mean().item())
    bands = bsnmse(frames, truths, ndim=2).mean((0, 1, 2))
    assert [e.value for e in tally.bsnmse.values()] == pytest.approx(bands.tolist(), rel=1e-4)
    assert tally.seconds == pytest.approx(12 * 0.1)


def test_energy_is_the_prediction_s_over_the_truth_s():
    """Doubled at every scale it is 4, with a scale removed 0 there; means do not count."""
    tally = Tally(DOMAIN, 1, 2, (4,), seed=0)
    truth = torch.randn(1, 2, *DOMAIN.shape)
    tally.record(1, [0], 2 * truth + 7, truth, AT_REST)
    smooth = torch.fft.fftn(truth, dim=(-2, -1))
    k = torch.fft.fftfreq(16)[:, None].abs().maximum(torch.fft.fftfreq(32).abs())
    smooth = torch.fft.ifftn(torch.where(k < 0.2, smooth, 0), dim=(-2, -1)).real
    tally.record(2, [0], smooth, truth, AT_REST)
    assert {band: e[0].value for band, e in tally.energy.items()} == pytest.approx(
        dict.fromkeys(("low", "mid", "high"), 4.0), rel=1e-5
    )
    ends = [tally.energy[band][1].value for band in ("low", "high")]
    assert ends[0] == pytest.approx(1, rel=1e-3)
    assert ends[1] < 0.2


def test_spectra_of_first_middle_and_last_step():
    tally, frames, truths = filled(steps=9)
    assert [seen.step for seen in tally.spectra] == [1, 5, 9]
    scale = truths[4].double().std(dim=(-2, -1), keepdim=True)
    residual = (frames[4] - truths[4]) / scale
    expected = isotropic_spectrum(residual, ndim=2, spacing=(1.0, 1.0))
    middle = tally.spectra[1]
    assert middle.wavenumber == pytest.approx(expected.wavenumber.tolist())
    assert middle.power == pytest.approx(expected.power.mean((0, 1)).tolist(), rel=1e-4)
    bounds = zip(middle.low, middle.power, middle.high, strict=True)
    assert all(low <= power <= high for low, power, high in bounds)
    assert middle.low != middle.high
    mean_square = (truths[4] / scale).square().mean().item()
    assert sum(middle.truth) == pytest.approx(mean_square, rel=1e-4)


def test_spectra_along_axes_at_the_middle_step():
    """Of each field, in units of its truth, with the swell of periods that fit an axis."""
    tally, frames, truths = filled(steps=9, patches=(4, 8))
    found = {(seen.field, seen.axis): seen for seen in tally.axis_spectra}
    assert list(found) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    scale = truths[4].double().std(dim=(-2, -1), keepdim=True)
    residual = (frames[4] - truths[4]) / scale
    seen, expected = found["b", 1], axis_spectrum(residual, 1, ndim=2).power[:, 1]
    assert seen.step == 5
    assert seen.wavenumber[:3] == pytest.approx((0, 1 / 32, 2 / 32))
    assert seen.power == pytest.approx(expected.mean(0).tolist(), rel=1e-5)
    assert sum(seen.truth) == pytest.approx((truths[4] / scale)[:, 1].square().mean().item())
    assert list(seen.swell) == [8]
    assert seen.swell[8].value == pytest.approx(harmonic_swell(expected, 8, 32).mean().item())
    assert found["b", 0].swell == {}


def test_harmonics_are_of_residuals_in_units_of_the_truth():
    tally, frames, truths = filled(num=1, steps=2)
    (seen,) = tally.harmonics
    assert seen.patch == 4
    assert len(seen.excess) == 2
    assert len(seen.cell) == len(seen.cell[0]) == 4
    both = (frames - truths) / truths.std(dim=(-2, -1), keepdim=True)
    assert sum(map(sum, seen.cell)) / 16 == pytest.approx(both.square().mean().item(), rel=1e-4)  # pyright: ignore[reportCallIssue]
    assert math.isfinite(seen.overall)
    assert 0 <= seen.p_value <= 1


def test_every_average_has_an_interval_that_shrinks_to_a_point_for_one_trajectory():
    many, _, _ = filled(num=5, steps=3)
    one, _, _ = filled(num=1, steps=3)
    for tally, is_point in ((many, False), (one, True)):
        for e in tally.harmonics[0].excess:
            assert e.low <= e.value <= e.high
            assert (e.low == e.high) == is_point


def test_a_grid_artifact_is_seen():
    tally = Tally(DOMAIN, 1, 1, (4, 8), seed=0)
    truth = torch.randn(1, 2, *DOMAIN.shape)
    comb = (torch.arange(16) % 4 == 0).float()[:, None] * (torch.arange(32) % 4 == 0).float()
    frame = truth + 0.5 * comb + 0.01 * torch.randn_like(truth)
    tally.record(1, [0], frame, truth, AT_REST)
    tally.close([0])
    four = tally.harmonics[0]
    residual = (frame - truth) / truth.std(dim=(-2, -1), keepdim=True)
    alone = harmonic_excess(residual, 4, ndim=2)
    assert four.excess[0].value > 15
    assert four.excess[0].value == pytest.approx(alone.excess.mean().item(), abs=3)
    assert four.share > 0.5


def blocks(patch, shift):
    """A residual of random steps between patches, on a grid that is moved."""
    coarse = torch.randn(1, 2, *(n // patch for n in DOMAIN.shape))
    fine = coarse.repeat_interleave(patch, -2).repeat_interleave(patch, -1)
    return fine.roll(shift, dims=(-2, -1))


def test_seams_are_looked_for_where_the_grid_of_the_step_lies():
    """Patches of 4 and of 8, moved in another way at each step."""
    choices = [ot.Choice((4, 4), (0, 0)), ot.Choice((4, 4), (3, 1)), ot.Choice((8, 8), (5, 6))]
    own, at_rest = (Tally(DOMAIN, 1, 3, (4, 8), seed=0) for _ in range(2))
    for step, choice in enumerate(choices, start=1):
        truth = torch.randn(1, 2, *DOMAIN.shape)
        frame = truth + blocks(choice.patch[0], choice.shift) + 0.1 * torch.randn_like(truth)
        own.record(step, [0], frame, truth, choice)
        at_rest.record(step, [0], frame, truth, ot.Choice(choice.patch, (0, 0)))
    own.close([0])
    assert all(e.value > 10 for e in own.seams)
    assert at_rest.seams[0] == own.seams[0]
    assert all(e.value < 0 for e in at_rest.seams[1:])
    worst = {h.patch: [e.value for e in h.worst_seams] for h in own.harmonics}
    assert worst[4][:2] == pytest.approx([e.value for e in own.seams[:2]])
    assert worst[8][2] == pytest.approx(own.seams[2].value)


def test_a_model_without_patches_has_no_seams_of_its_own():
    tally = Tally(DOMAIN, 1, 1, (4,), seed=0)
    frame, truth = torch.randn(2, 1, 2, *DOMAIN.shape)
    tally.record(1, [0], frame, truth, ot.Choice((1, 1), (0, 0)))
    tally.close([0])
    assert tally.seams == ()
    assert len(tally.harmonics[0].worst_seams) == 1


def test_patches_that_the_grid_can_not_tell_are_left_out():
    tally = Tally(DOMAIN, 1, 1, (1, 4, (16, 32), 24), seed=0)
    assert tally.patches == (4,)
    bare = Tally(DOMAIN, 1, 1, (1,), seed=0)
    frame, truth = torch.randn(2, 1, 2, *DOMAIN.shape)
    bare.record(1, [0], frame, truth, AT_REST)
    bare.close([0])
    assert bare.harmonics == ()


def test_who_is_lost_counts_no_more_but_costs_the_average():
    tally = Tally(DOMAIN, 2, 3, (4,), seed=0)
    truth = torch.randn(2, 2, *DOMAIN.shape)
    for step, rows in ((1, [0, 1]), (2, [1])):
        frame = truth[rows] + step
        tally.record(step, rows, frame, truth[rows], AT_REST)
        tally.record_laws(step, rows, {"mass": torch.full((len(rows),), float(step)).double()})
    tally.lose(3)
    tally.lose(2)
    tally.close([0, 1])
    assert tally.blow_up == 2
    assert len(tally.vrmse) == 2
    assert tally.vrmse[1].value == pytest.approx(vrmse(truth + 2, truth, ndim=2)[1].mean().item())
    assert tally.vrmse_up_to(1).value < math.inf
    assert tally.vrmse_up_to(2).value == math.inf
    assert tally.vrmse_up_to(2).low < math.inf
    assert tally.bsnmse["low"].value == math.inf
    assert [e.value for e in tally.physics["mass"]] == [1.0, 2.0]
    assert [seen.step for seen in tally.spectra] == [1, 2]


def test_everything_lost_at_once():
    tally = Tally(DOMAIN, 2, 3, (4,), seed=0)
    tally.lose(1)
    tally.close([0, 1])
    assert (tally.vrmse, tally.harmonics, tally.spectra, tally.physics) == ((), (), (), {})
    assert tally.vrmse_up_to(10).low == math.inf
    assert tally.seconds == 0


def test_residuals_are_measured_in_the_fields_own_units():
    """Cells, spectra and seams of fields of 1e-25 and 1e20 are those of fields of order one."""
    truth, frame = torch.randn(2, 1, 2, *DOMAIN.shape)
    found = []
    for units in ((1.0, 1.0), (1e-25, 1e20)):
        tally, scale = Tally(DOMAIN, 1, 1, (4,), seed=0), torch.tensor(units)[:, None, None]
        tally.record(1, [0], scale * frame, scale * truth, AT_REST)
        tally.close([0])
        (harmonics,), (spectrum,) = tally.harmonics, tally.spectra
        seams = [e.value for e in tally.seams]
        found.append([*(x for row in harmonics.cell for x in row), *spectrum.power, *seams])
        found[-1] += [e.value for e in (*tally.vrmse, *tally.fields.values())]
    assert found[1] == pytest.approx(found[0], rel=1e-3)
