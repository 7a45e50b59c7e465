from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import overtone as ot
from overtone.schedules.kinds import MAX_LISTED, MAX_STEPS

GRID = ot.Domain((64, 64), (1.0, 1.0), "periodic", ("u",))


def sizes(schedule, steps):
    return [schedule(step).patch for step in range(steps)]


def test_the_papers_families():
    assert sizes(ot.Cycle(4, 8, 16), 5) == [4, 8, 16, 4, 8]
    assert sizes(ot.Dwell((4, 8, 16), each=2), 8) == [4, 4, 8, 8, 16, 16, 4, 4]
    warmup = ot.Warmup((4, 4, 8, 8), then=16)
    assert sizes(warmup, 10) == [4, 4, 8, 8, 16, 16, 16, 16, 16, 16]
    assert sizes(warmup.reverse(10), 10) == [16, 16, 16, 16, 16, 16, 8, 8, 4, 4]
    bursts = ot.Bursts(coarse=16, fine=4, every=5)
    assert sizes(bursts, 10) == [16, 16, 16, 16, 4, 16, 16, 16, 16, 4]


def test_a_cycle_of_one_is_a_constant():
    assert sizes(ot.Cycle(16), 7) == sizes(ot.Constant(16), 7)
    assert ot.parse_schedule(str(ot.Cycle(16))) == ot.Constant(16)


def test_random_choice_is_uniform_and_differs_by_seed():
    drawn = sizes(ot.RandomChoice((4, 8, 16), seed=3), 3000)
    # Three standard deviations of a binomial with n = 3000, p = 1/3.
    assert all(abs(drawn.count(p) - 1000) < 78 for p in (4, 8, 16))
    assert drawn != sizes(ot.RandomChoice((4, 8, 16), seed=4), 3000)


def test_stratified_shifts_use_every_offset_once_before_any_repeats():
    schedule = ot.Shifted(ot.Cycle(4, 8, 16))
    for patch in (4, 8, 16):
        steps = [step for step in range(200) if schedule(step).patch == patch]
        for axis in range(3):
            shifts = [schedule(step).shift[axis] for step in steps]
            rounds = [shifts[i : i + patch] for i in range(0, len(shifts) - patch, patch)]
            assert all(sorted(offsets) == list(range(patch)) for offsets in rounds)
            assert rounds[0] != rounds[1]  # each round in an order of its own


def test_random_shifts_stay_within_the_patch_and_vary():
    schedule = ot.Shifted(ot.Constant((4, 8)), kind="random", seed=1)
    shifts = [schedule(step).shift for step in range(200)]
    assert {s[0] for s in shifts} == set(range(4))
    assert {s[1] for s in shifts} == set(range(8))


def test_explicit_offsets_come_in_turn():
    schedule = ot.Shifted(ot.Constant(16), offsets=[(3, 5), (0, 8)])
    assert [schedule(step).shift for step in range(3)] == [(3, 5), (0, 8), (3, 5)]
    assert str(schedule) == "16+shift:at:3x5-0x8"


def test_token_budget():
    domain = ot.Domain((128, 256), (1, 2), "periodic", ("u",))
    assert ot.Cycle(4, 8, 16).tokens(domain, 6) == 2 * (2048 + 512 + 128)
    assert ot.Constant((4, 8)).tokens(domain, 1) == 32 * 32
    assert ot.Shifted(ot.Constant(16)).tokens(domain, 40) == 40 * 128
    # Beside a wall a shifted grid needs one more token along the axis, unless the shift is 0.
    walls = ot.Domain((32, 32), (1, 1), ("wall", "periodic"), ("u",))
    schedule = ot.Shifted(ot.Constant(16), offsets=[(0, 3), (5, 3)])
    assert schedule.tokens(walls, 2) == 2 * 2 + 3 * 2


def test_explicit_schedule_ends():
    with pytest.raises(ot.PatchError, match="has 2 steps, step 2 was asked for"):
        ot.Explicit([4, 8])(2)


def test_offset_with_too_few_axes():
    domain = ot.Domain((16, 16), (1, 1), "periodic", ("u",))
    with pytest.raises(ot.PatchError, match="1 entries; the domain has 2 axes"):
        ot.Shifted(ot.Constant(4), offsets=[(1,)])(0).on(domain)


def test_offsets_of_huge_patches_are_never_listed():
    """Every offset comes once, in steps round a ring."""
    schedule = ot.parse_schedule("4-1000000000+shift")
    shifts = [schedule(step).shift for step in range(1, 400, 2)]
    assert len({shift[0] for shift in shifts}) == len(shifts)
    assert all(0 <= s < 10**9 for shift in shifts for s in shift)
    with pytest.raises(ot.PatchError, match="patch 1000000000 does not fit axis 0 of 64 cells"):
        schedule.tokens(GRID, 40)
    size = MAX_LISTED + 2
    whole = ot.Shifted(ot.Constant((size,)))
    for first in (0, size):
        offsets = [whole(first + use).shift[0] for use in range(size)]
        assert sorted(offsets) == list(range(size))


def test_steps_that_nobody_goes_through_are_refused():
    for text in ("4-8", "4-8+shift", "dwell:4-8:1000000000000"):
        with pytest.raises(ot.PatchError, match="steps is 1000000000000; the choices of at most"):
            ot.parse_schedule(text).tokens(GRID, 10**12)
    shifted = ot.parse_schedule("4-8+shift")
    with pytest.raises(ot.PatchError, match="step 1000000000000 was asked for after 0 others"):
        shifted(10**12)
    assert shifted(MAX_STEPS).patch == 4
    assert shifted(MAX_STEPS + 5).patch == 8  # a rollout goes on step by step
    assert ot.parse_schedule("4-8")(10**12).patch == 4


def test_a_patch_may_be_a_number_of_numpy_and_nothing_like_one():
    for four in (np.int64(4), np.uint8(4)):
        assert ot.parse_schedule(four) == ot.Constant(four) == ot.Constant(4)
        assert ot.Cycle(four, (four, 8)) == ot.Cycle(4, (4, 8))
        assert str(ot.Dwell(np.array([4, 8]), each=four)) == "dwell:4-8:4"
        assert type(ot.Constant(four).patch) is int
        shifted = ot.Shifted(ot.Constant(16), offsets=np.array([[3, 5]]), seed=four)
        assert str(shifted) == "16+shift:at:3x5"
    assert ot.parse_schedule(ot.Cycle(4, 8)) == ot.Cycle(4, 8)
    for wrong in (4.0, np.float32(4), True, None, "4", [], (4, 8.0), 1j):
        with pytest.raises(ot.PatchError, match="patch is|schedule is"):
            ot.Constant(wrong)
        if not isinstance(wrong, str):
            with pytest.raises(ot.PatchError, match="schedule is"):
                ot.parse_schedule(wrong)
    with pytest.raises(ot.PatchError, match="an offset is 3.5"):
        ot.Shifted(ot.Constant(16), offsets=[(3.5, 1)])
    with pytest.raises(ot.PatchError, match="patches is 4"):
        ot.Dwell(4)
    with pytest.raises(ot.PatchError, match="each is 2.0"):
        ot.Dwell((4, 8), each=2.0)


def test_threads_may_share_a_schedule():
    schedule = ot.Shifted(ot.Cycle(4, 8, 16))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda step: schedule(step).shift, [*range(3000)] * 4))
    again = ot.Shifted(ot.Cycle(4, 8, 16))
    assert found == [again(step).shift for step in range(3000)] * 4


def test_schedules_may_be_within_each_other():
    nested = ot.Shifted(ot.Shifted(ot.Cycle(4, 8)), kind="stratified")
    assert [nested(step).patch for step in range(3)] == [4, 8, 4]


@pytest.mark.parametrize("kind", ["stratified", "random"])
def test_every_axis_is_shifted_by_offsets_of_its_own(kind):
    """On diagonal shifts alone most of the grids' positions would never be used."""
    schedule = ot.Shifted(ot.Constant(8), kind=kind)
    shifts = [schedule(step).shift for step in range(200)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        pairs = {(shift[one], shift[other]) for shift in shifts}
        assert len(pairs) > 40  # of 64; 8 on a diagonal


def test_huge_patches_are_shifted_by_offsets_of_their_own_on_every_axis():
    schedule = ot.Shifted(ot.Constant(10**9))
    assert len(set(schedule(3).shift)) == 3
