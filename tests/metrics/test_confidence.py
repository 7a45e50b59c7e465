"""Bootstrap intervals against a plain loop, theory and the rules for what is not finite."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
import torch

from overtone.errors import OvertoneError
from overtone.evaluate.results import estimate, estimates
from overtone.metrics.confidence import bootstrap, falls


def test_a_plain_loop_over_the_same_draws_gives_the_same():
    values = torch.randn(7, 3, dtype=torch.float64)
    found = bootstrap(values, seed=5, draws=200)
    drawn = torch.randint(7, (200, 7), generator=torch.Generator().manual_seed(5))
    means = np.sort([values[rows].mean(dim=0).numpy() for rows in drawn], axis=0)
    assert np.allclose(found.value, values.mean(dim=0))
    assert np.allclose(found.low, means[math.floor(0.025 * 199)])
    assert np.allclose(found.high, means[math.ceil(0.975 * 199)])


def test_width_is_that_of_a_normal_mean():
    values = torch.randn(100, 200, dtype=torch.float64)
    found = bootstrap(values)
    half = (found.high - found.low).mean().item() / 2
    assert half == pytest.approx(1.96 / math.sqrt(100), rel=0.1)
    covered = ((found.low < 0) & (found.high > 0)).double().mean().item()
    assert 0.88 < covered < 0.99


def test_one_trajectory_is_a_point_and_equal_ones_are_too():
    only = estimate(torch.tensor([0.3], dtype=torch.float64))
    assert only.low == only.value == only.high == 0.3
    same = estimate(torch.full((9,), 0.1))
    assert same.low == same.value == same.high


def test_the_value_lies_inside_and_seeds_repeat():
    values = torch.rand(5, 40) ** 4
    found = bootstrap(values)
    assert bool((found.low <= found.value).all() & (found.value <= found.high).all())
    again, other = bootstrap(values), bootstrap(values, seed=1)
    assert torch.equal(found.low, again.low)
    assert not torch.equal(found.low, other.low)


def test_nan_is_left_out():
    values = torch.randn(6, 1, dtype=torch.float64)
    gaps = torch.cat([values, torch.full((2, 1), torch.nan)])
    found = bootstrap(gaps)
    assert found.value.item() == pytest.approx(values.mean().item())
    assert values.min() <= found.low < found.high <= values.max()
    alone = bootstrap(torch.tensor([[torch.nan], [0.25], [torch.nan]]))
    assert (alone.low.item(), alone.value.item(), alone.high.item()) == (0.25, 0.25, 0.25)
    nothing = estimate(torch.full((3,), torch.nan))
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.low)


def test_infinity_is_a_value():
    found = estimate(torch.tensor([0.1, 0.2, 0.3, math.inf]))
    assert found.value == math.inf
    assert found.high == math.inf
    assert 0.1 <= found.low <= 0.3  # a draw without the lost one is well below 97.5 % of all
    lost = estimate(torch.full((4,), math.inf))
    assert lost.low == lost.value == lost.high == math.inf


def test_columns_are_judged_alone_and_keep_their_shape():
    values = torch.rand(4, 2, 3)
    assert bootstrap(values).low.shape == (2, 3)
    columns = estimates(values[:, 0])
    assert columns[1] == estimate(values[:, 0, 1])


def test_nothing_is_no_sample():
    with pytest.raises(OvertoneError, match="at least 1 trajectory"):
        bootstrap(torch.zeros(0, 3))


@pytest.mark.parametrize("num", range(8))
def test_a_random_order_falls_by_chance_in_one_of_twenty_at_most(num):
    orders = list(permutations(range(num)))
    found = [order for order in orders if falls(order)]
    assert len(found) < 0.05 * len(orders)
    # No other rule of the same kind would find more: with one more rise allowed, it is too many.
    rises = [sum(a < b for a, b in combinations(order, 2)) for order in orders]
    least = max((r for r, order in zip(rises, orders, strict=True) if falls(order)), default=-1)
    assert sum(r <= least for r in rises) == len(found)
    assert sum(r <= least + 1 for r in rises) >= 0.05 * len(orders)


def test_falling_numbers_may_begin_with_infinity_and_never_stay_equal():
    assert falls([math.inf, 4.0, 3.0, 2.0])
    assert falls([math.nan, 4.0, 3.0, 2.0])
    assert not falls([4.0, 3.0, 2.0, math.nan])
    assert not falls([1.0] * 20)
