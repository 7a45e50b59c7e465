"""Which windows make up which batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import ConfigError
from overtone.train.sampler import Share, Windows


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
