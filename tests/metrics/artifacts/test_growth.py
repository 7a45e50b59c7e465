"""Folding, and tracking an artifact whose growth is known."""

import pytest
import torch

import overtone as ot
from overtone.metrics import HarmonicPool, HarmonicTracker, fold, harmonic_excess
from overtone.metrics.artifacts.growth import growth_exponent


def test_folding_a_repeated_cell_gives_the_cell():
    cell = torch.randn(4, 6, dtype=torch.float64)
    folded = fold(cell.repeat(3, 2)[None], (4, 6), ndim=2)
    assert torch.allclose(folded.mean[0], cell)
    assert torch.allclose(folded.mean_square[0], cell.square())


def test_folding_takes_part_of_the_last_patch_where_there_is_one():
    folded = fold(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), 3, ndim=1)
    assert folded.mean.tolist() == [2.5, 3.5, 3.0]
    assert folded.mean_square.tolist() == [8.5, 14.5, 9.0]


def test_contrast_of_a_cell():
    loud = torch.tensor([10.0, 1.0, 1.0, 1.0]).repeat(8)
    assert fold(loud, 4, ndim=1).contrast.item() == pytest.approx(20.0)
    assert fold(torch.zeros(2, 8, 8), 4, ndim=2).contrast.tolist() == [0.0, 0.0]


def test_fold_in_three_dimensions_keeps_the_mean():
    residual = torch.randn(2, 3, 8, 12, 8)
    folded = fold(residual, 4, ndim=3)
    assert folded.mean.shape == (2, 3, 4, 4, 4)
    assert torch.allclose(folded.mean.mean((-3, -2, -1)).float(), residual.mean((-3, -2, -1)))


def frames(steps, growth):
    random = torch.Generator().manual_seed(0)
    line = (torch.arange(64) % 8 == 0).double()
    grid = torch.maximum(line[:, None], line)
    for step in range(1, steps + 1):
        noise = torch.randn(2, 64, 64, generator=random, dtype=torch.float64)
        yield 0.1 * noise + step ** (growth / 2) * grid


@pytest.mark.parametrize("growth", [1, 2])
def test_tracker_measures_the_growth(growth):
    tracker = HarmonicTracker([8, 16], ndim=2)
    for frame in frames(12, growth):
        tracker.update(frame)
    seen = tracker.results()
    assert tracker.num_steps == 12
    assert seen[8].exponent == pytest.approx(growth, abs=0.05)
    assert len(seen[8].excess) == 12
    assert seen[8].excess[-1] > seen[8].excess[0]
    assert seen[8].overall.p_value < 1e-6
    assert seen[8].fold.mean.shape == (8, 8)
    assert seen[8].fold.mean[0].mean() > 1 > seen[8].fold.mean[1:, 1:].abs().max()


def test_tracker_of_one_frame_is_the_frame_alone():
    (frame,) = frames(1, 1)
    tracker = HarmonicTracker([8], ndim=2)
    tracker.update(frame[0])
    alone, seen = harmonic_excess(frame[0], 8, ndim=2), tracker.results()[8]
    assert seen.excess[0] == pytest.approx(alone.excess.item())
    assert seen.power[0] == pytest.approx(alone.power.item())
    assert seen.overall.z.item() == pytest.approx(alone.z.item())


def test_tracker_holds_no_frames():
    tracker = HarmonicTracker([8], ndim=2)

    def held():
        track = tracker._tracks[0]
        tensors = [value for value in vars(track).values() if isinstance(value, torch.Tensor)]
        return sum(t.numel() for t in tensors)

    sizes = []
    for frame in frames(5, 1):
        tracker.update(frame)
        sizes.append(held())
    assert len(set(sizes)) == 1


def test_growth_exponent_needs_two_steps():
    assert growth_exponent([1.0, 4.0, 9.0]) == pytest.approx(2.0)
    assert growth_exponent([0.0, 1.0]) != growth_exponent([0.0, 1.0])  # NaN


def test_bad_input():
    with pytest.raises(ot.PatchError, match="does not fit"):
        fold(torch.zeros(8, 8), 9, ndim=2)
    tracker = HarmonicTracker([4], ndim=2)
    with pytest.raises(ot.OvertoneError, match="call update first"):
        tracker.results()
    tracker.update(torch.zeros(16, 16))
    with pytest.raises(ot.DomainError, match="after ones of"):
        tracker.update(torch.zeros(32, 32))
    with pytest.raises(ot.OvertoneError, match="at least one"):
        HarmonicTracker([], ndim=2)


def track(residuals):
    tracker = HarmonicTracker([8], ndim=2)
    for residual in residuals:
        tracker.update(residual)
    return tracker


def test_a_pool_of_equal_rollouts_is_one_of_them():
    alone = track(frames(6, 1)).results()[8]
    pool = HarmonicPool()
    for _ in range(3):
        pool.add(track(frames(6, 1)))
    joint = pool.results()[8]
    assert joint.excess == pytest.approx(alone.excess)
    assert joint.exponent == pytest.approx(alone.exponent)
    assert joint.overall.excess.item() == pytest.approx(alone.overall.excess.item())
    assert torch.allclose(joint.fold.mean_square, alone.fold.mean_square)


def test_a_pool_means_over_those_that_got_there():
    long, short = torch.randn(2, 5, 64, 64, dtype=torch.float64)
    pool = HarmonicPool()
    assert pool.results() == {}
    pool.add(track(short[:2]))
    pool.add(track(long))
    joint = pool.results()[8]
    one, two = track(long).results()[8], track(short[:2]).results()[8]
    assert joint.excess[0] == pytest.approx((one.excess[0] + two.excess[0]) / 2)
    assert joint.excess[2:] == pytest.approx(one.excess[2:])
    mean = (5 * one.fold.mean_square + 2 * two.fold.mean_square) / 7
    assert torch.allclose(joint.fold.mean_square, mean)


def test_the_fold_of_a_rollout_is_the_mean_of_its_samples_and_steps():
    """However many samples a step has, and however they come."""
    steps = [torch.randn(3, 2, 16, 16, dtype=torch.float64) for _ in range(2)]
    expected = fold(torch.stack(steps), 4, ndim=2)
    for parts in (1, 3):
        tracker = HarmonicTracker([4], ndim=2)
        for step in steps:
            tracker.update(step.chunk(parts))
        found = tracker.results()[4].fold
        torch.testing.assert_close(found.mean, expected.mean.mean(dim=(0, 1, 2)))
        torch.testing.assert_close(found.mean_square, expected.mean_square.mean(dim=(0, 1, 2)))
