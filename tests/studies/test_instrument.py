"""Instruments that are known to be good, bad or blind, measured."""

import itertools
import math

import pytest
import torch

from studies.instrument import (
    correlation,
    detection,
    front_error,
    map_likeness,
    perfect_error,
    quality,
)


def drawn(n=400, steps=5, spread=0.2, seed=0):
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(n, steps, generator=random).double().exp()
    return values * (spread * torch.randn(n, steps, generator=random).double()).exp(), values


def test_a_good_instrument():
    errors, values = drawn()
    bounds = {0.9: (values * math.exp(-1.645 * 0.2), values * math.exp(1.645 * 0.2))}
    found = quality(errors, values, bounds)
    assert found["correlation"] == pytest.approx(1 / math.sqrt(1 + 0.04), abs=0.01)
    assert found["by_step"] == pytest.approx(found["correlation"], abs=0.01)
    assert found["coverage"]["0.9"] == pytest.approx(0.9, abs=0.02)
    assert found["sharpness"]["0.9"] == pytest.approx(math.exp(2 * 1.645 * 0.2))
    assert found["ratio"] == pytest.approx(1, abs=0.03)


def test_a_blind_one_and_one_that_is_off():
    errors, _ = drawn()
    _, values = drawn(seed=1)
    assert abs(quality(errors, values, {})["correlation"]) < 0.1
    off = quality(errors, errors / 3, {0.5: (errors / 4, errors / 2)})
    assert off["ratio"] == pytest.approx(1 / 3)
    assert off["coverage"]["0.5"] == 0


def test_growth_alone_is_not_taken_for_knowledge():
    """An estimate that knows the step and nothing of the sample."""
    random = torch.Generator().manual_seed(0)
    growth = torch.linspace(0.1, 3, 30).double()
    errors = growth * (0.3 * torch.randn(50, 30, generator=random).double()).exp()
    found = quality(errors, growth * (1 + 1e-3 * torch.rand(50, 30, generator=random).double()), {})
    assert found["correlation"] > 0.9
    assert abs(found["by_step"]) < 0.1


def test_lost_rollouts_do_not_count():
    errors, values = drawn(4, 3)
    errors[0] = math.inf
    assert math.isfinite(quality(errors, values, {})["correlation"])
    nothing = quality(errors[:1], values[:1], {0.9: (values[:1], values[:1])})
    assert math.isnan(nothing["correlation"])


def test_correlations_of_too_little():
    assert math.isnan(correlation(torch.ones(2), torch.ones(2)))
    assert math.isnan(correlation(torch.ones(9), torch.arange(9.0)))


def test_maps():
    error = torch.rand(2, 3, 8, 8)
    assert map_likeness(5 * error, error) == pytest.approx(1)
    assert map_likeness(1 - error, error) == pytest.approx(-1)
    lost = error.clone()
    lost[0] = math.nan
    assert map_likeness(lost, error) == pytest.approx(1)


def test_detection():
    assert detection([1, 2, 3, 4], [5, 6])["area"] == 1
    assert detection([1, 2, 3, 4], [math.nan, 6])["area"] == 1
    half = detection([1, 2, 3, 4], [1, 2, 3, 4])
    assert half["area"] == 0.5
    assert half["found"][0] == 0
    assert half["found"][-1] == 1
    # With one false alarm of four allowed, scores above 3 are found.
    assert half["found"][5] == 0.25
    assert math.isnan(detection([], [1])["area"])


def test_the_front_of_open_loops():
    points = [(1.0, 4.0), (4.0, 2.0), (2.0, 3.9), (16.0, 1.9), (8.0, 2.5)]
    assert front_error(points, 1.0) == 4.0
    assert front_error(points, 2.0) == pytest.approx(3.0)  # half-way from 1 to 4 in logarithms
    assert front_error(points, 4.0) == 2.0
    assert front_error(points, 100.0) == 1.9
    assert front_error(points, 0.5) == math.inf
    assert front_error([(1.0, math.inf)], 2.0) == math.inf


def test_a_perfect_choice_shares_tokens_out_where_they_gain_most():
    """Two trajectories, schedules of 1 and 3 tokens: one gains 6 by the dearer, one gains 2."""
    each = [(1.0, [10.0, 5.0]), (3.0, [4.0, 3.0])]
    assert perfect_error(each, 1.0) == 7.5
    assert perfect_error(each, 2.0) == (4 + 5) / 2
    assert perfect_error(each, 1.5) == (7 + 5) / 2  # half-way to the first
    assert perfect_error(each, 2.5) == (4 + 4) / 2
    assert perfect_error(each, 99.0) == (4 + 3) / 2
    assert perfect_error(each, 0.9) == math.inf


def test_a_perfect_choice_is_the_best_of_all_assignments():
    """By trying all: with as many tokens as an assignment has, it is at least as good."""
    random = torch.Generator().manual_seed(3)
    tokens, errors = [1.0, 2.0, 4.0, 7.0], torch.rand(4, 3, generator=random).tolist()
    each = [*zip(tokens, errors, strict=True)]
    best: dict[float, float] = {}
    for picks in itertools.product(range(4), repeat=3):
        spent = sum(tokens[p] for p in picks) / 3
        error = sum(errors[p][row] for row, p in enumerate(picks)) / 3
        best[spent] = min(best.get(spent, math.inf), error)
    for spent, error in best.items():
        assert perfect_error(each, spent) <= error + 1e-9
    assert perfect_error(each, 7.0) == pytest.approx(min(best.values()))


def test_a_schedule_that_blew_up_is_no_choice():
    assert perfect_error([(1.0, [2.0]), (3.0, [math.inf])], 9.0) == 2.0
    assert perfect_error([(1.0, [math.inf])], 9.0) == math.inf
