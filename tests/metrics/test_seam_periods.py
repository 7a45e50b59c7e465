"""Which distance of seams is found, along which axes; and when none is."""

import pytest
import torch

import overtone as ot
from overtone.metrics import SeamFinder, find_seams
from overtone.solvers import ShearFlow

GRID = (64, 64)


@pytest.fixture(scope="module")
def smooth(red_noise):
    def make(shape=GRID, slope=5.0, seed=0, num=4):
        return red_noise(num, shape, slope, seed)

    return make


def blocks(patch, shape=GRID, seed=1, num=4):
    """Patches `(num, *shape)` that are each off by a number of their own."""
    sizes = ot.domain.per_axis(patch, len(shape), "patch")
    random = torch.Generator().manual_seed(seed)
    counts = [-(-n // p) for n, p in zip(shape, sizes, strict=True)]
    values = torch.randn(num, *counts, generator=random, dtype=torch.float64)
    for axis, (n, p) in enumerate(zip(shape, sizes, strict=True), start=1):
        values = values.repeat_interleave(p, axis).narrow(axis, 0, n)
    return values


@pytest.mark.parametrize("patch", [3, 4, 8, 16])
def test_patches_that_disagree_are_found_by_their_seams(smooth, patch):
    found = find_seams(smooth() + 0.1 * blocks(patch), ndim=2)
    assert found.sizes == (patch, patch)
    assert found.p_value < 1e-3
    assert find_seams(smooth(), ndim=2).sizes == ()


@pytest.mark.parametrize("patch", [(8, 64), (64, 8), (4, 16)])
def test_axes_have_distances_of_their_own(smooth, patch):
    expected = tuple(1 if size == 64 else size for size in patch)
    assert find_seams(smooth() + 0.2 * blocks(patch), ndim=2).sizes == expected


def test_blocks_within_blocks_have_the_period_of_the_louder_ones(smooth):
    louder = smooth() + 0.3 * blocks(16) + 0.03 * blocks(4)
    assert find_seams(louder, ndim=2).sizes == (16, 16)
    alike = smooth() + 0.2 * blocks(4)
    assert find_seams(alike, [16, 8, 4], ndim=2).sizes == (4, 4)


@pytest.mark.parametrize(("shape", "patch"), [((256,), 8), ((24, 24, 24), 6), ((60, 44), 8)])
def test_other_numbers_of_axes_and_grids_that_patches_do_not_divide(smooth, shape, patch):
    field = smooth(shape) + 0.2 * blocks(patch, shape)
    assert find_seams(field, ndim=len(shape), periodic=False).sizes == (patch,) * len(shape)
    quiet = find_seams(smooth(shape), ndim=len(shape), periodic=False)
    assert quiet.sizes == ()


def test_a_front_that_lies_on_a_border_is_no_comb(smooth):
    field = smooth()
    field[:, 16:] += 1.0
    assert find_seams(field, ndim=2).sizes == ()


def test_few_false_alarms(smooth):
    fields = [
        smooth(shape, slope, seed, num)
        for seed in range(12)
        for slope in (0, 2, 4, 6)
        for shape, num in (((32, 32), 1), ((32, 48), 16))
    ]
    assert not any(find_seams(field, ndim=2).sizes for field in fields)


def test_one_flow_against_another_raises_no_alarm():
    flow = ShearFlow(shape=(64, 64), reynolds=5e3, dt=0.5)
    *_, frame = flow.trajectory(2, 7, seed=2)
    assert find_seams(frame[0] - frame[1], ndim=2).sizes == ()


def test_one_by_one_is_the_same_as_all_at_once(smooth):
    field = smooth(num=6) + 0.1 * blocks(8, num=6)
    finder = SeamFinder(ndim=2)
    for part in field.split(2):
        finder.update(part)
    whole, parts = find_seams(field, ndim=2), finder.result()
    assert parts.sizes == whole.sizes == (8, 8)
    assert parts.p_value == pytest.approx(whole.p_value)


def test_units_do_not_matter(smooth):
    field = smooth() + 0.1 * blocks(8)
    assert find_seams(1e-9 * field, ndim=2).p_value == pytest.approx(
        find_seams(field, ndim=2).p_value
    )


def test_too_few_borders_and_bad_input(smooth):
    assert find_seams(smooth((16, 16)) + blocks(8, (16, 16)), [8], ndim=2).sizes == ()
    assert find_seams(torch.zeros(2, 32, 32), ndim=2).sizes == ()
    finder = SeamFinder(ndim=2)
    with pytest.raises(ot.OvertoneError, match="call update first"):
        finder.result()
    finder.update(smooth((32, 32)))
    with pytest.raises(ot.DomainError, match="after ones of"):
        finder.update(smooth((16, 32)))
    with pytest.raises(ot.PatchError, match="does not fit"):
        find_seams(smooth(), [65], ndim=2)
