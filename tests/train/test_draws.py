"""Random draws that depend on their place alone.

Which windows make up which batch.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import ConfigError
from overtone.train.draws import Share, Windows, draw_patch, draw_shift, seed_torch, stream


def test_the_same_place_gives_the_same_numbers_and_others_give_others():
    draws = {
        tuple(stream(seed, purpose, *counter).integers(2**60, size=4).tolist())
        for seed in (0, 1)
        for purpose in ("patch", "shift")
        for counter in ((0,), (1,), (0, 1), (1, 1), (0, 0, 1))
    }
    assert len(draws) == 20
    again = stream(1, "shift", 1).integers(2**60, size=4)
    assert tuple(again.tolist()) in draws


def test_long_draws_at_neighbouring_places_do_not_overlap():
    one, two = (set(stream(0, "x", i).integers(2**60, size=5000).tolist()) for i in (0, 1))
    assert not one & two


def test_patches_are_drawn_uniformly_or_by_weight():
    drawn = [draw_patch(0, update, 0, (4, 8, 16), None) for update in range(3000)]
    counts = [drawn.count(patch) for patch in (4, 8, 16)]
    assert all(abs(count - 1000) < 5 * (3000 * 2 / 9) ** 0.5 for count in counts)
    drawn = [draw_patch(0, update, 0, (4, 8, 16), (3, 1, 0)) for update in range(2000)]
    assert drawn.count(16) == 0
    assert abs(drawn.count(4) - 1500) < 5 * (2000 * 3 / 16) ** 0.5


def test_unrolled_steps_have_patches_of_their_own():
    pairs = {tuple(draw_patch(0, u, s, (4, 8), None) for s in (0, 1)) for u in range(40)}
    assert len(pairs) == 4


def test_shifts_stay_below_the_patch_and_reach_every_offset():
    drawn = {draw_shift(0, update, 0, (4, 3)) for update in range(300)}
    assert drawn == {(a, b) for a in range(4) for b in range(3)}


def test_a_share_of_the_shifts_is_kept_and_the_rest_is_none():
    updates = range(2000)
    all_moved = [draw_shift(0, update, 0, (16, 16)) for update in updates]
    some = [draw_shift(0, update, 0, (16, 16), 0.25) for update in updates]
    moved = [(one, other) for one, other in zip(some, all_moved, strict=True) if one != (0, 0)]
    assert all(one == other for one, other in moved)
    share = 0.25 * (1 - 1 / 256)  # a drawn offset may be none, too
    assert abs(len(moved) - 2000 * share) < 5 * (2000 * share * (1 - share)) ** 0.5


def test_torch_is_seeded_by_the_part_of_the_batch():
    values = []
    for part in (0, 1, 0):
        seed_torch(5, 7, part)
        values.append(torch.rand(3))
    assert torch.equal(values[0], values[2])
    assert not torch.equal(values[0], values[1])


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_an_epoch_is_every_window_once_over_all_ranks(num, size, accumulate, world):
    batch = size * accumulate * world
    samplers = [
        Windows(num, Share(batch, accumulate, rank, world), seed=3, start=0, stop=2 * num)
        for rank in range(world)
    ]
    seen = []
    for update in range(2 * num):
        for turn in range(accumulate):
            for sampler in samplers:
                seen += sampler.indices(update, turn)
    for epoch in range(len(seen) // num):
        assert sorted(seen[epoch * num : (epoch + 1) * num]) == list(range(num))


def test_two_ranks_take_what_one_takes_in_two_parts():
    one = Windows(17, Share(6, 2), seed=0, start=0, stop=9)
    two = [Windows(17, Share(6, 1, rank, 2), seed=0, start=0, stop=9) for rank in (0, 1)]
    for update in range(9):
        assert [one.indices(update, 0), one.indices(update, 1)] == [
            w.indices(update, 0) for w in two
        ]


def test_a_resumed_sampler_is_the_tail_of_the_whole():
    whole = list(Windows(10, Share(4), seed=1, start=0, stop=20))
    tail = Windows(10, Share(4), seed=1, start=13, stop=20)
    assert list(tail) == whole[13:]
    assert len(tail) == 7


def test_epochs_and_seeds_are_in_different_orders():
    first, second = (Windows(50, Share(50), seed=s, start=0, stop=2) for s in (0, 1))
    orders = [first.indices(0, 0), first.indices(1, 0), second.indices(0, 0)]
    assert len({tuple(order) for order in orders}) == 3


def test_a_batch_that_can_not_be_divided():
    with pytest.raises(ConfigError, match=r"train\.batch 6 .* 2 ranks in 2 parts.*multiple of 4"):
        Share(6, 2, 0, 2)
