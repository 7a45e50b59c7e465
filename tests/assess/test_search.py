"""Halving, fronts, and a choice that is not luck."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.assess.cost import Cost
from overtone.assess.search import Trial, choose, halve, left_out, pareto

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(POINTS)
def test_a_front_is_what_nothing_beats(points):
    front = pareto(points)

    def beats(a, b):
        return a[0] <= b[0] and a[1] <= b[1] and a != b

    for i, j in itertools.product(front, range(len(points))):
        assert not beats(points[j], points[i])
    for j in set(range(len(points))) - set(front):
        assert any(beats(points[i], points[j]) or points[i] == points[j] for i in front)
    assert len({points[i] for i in front}) == len(front)


class Table:
    """A bench whose errors are known."""

    def __init__(self, errors):
        self.table, self.flights, self.done = errors, range(errors.shape[1]), 0

    def errors(self, schedules, flights):
        self.done += len(schedules) * len(flights)
        rows = [schedule.patch - 1 for schedule in schedules]
        return self.table[rows][:, list(flights)][..., None].double()


def test_halving_keeps_the_best_and_saves_most_of_the_work():
    errors = torch.linspace(1, 3, 64)[:, None] * torch.tensor([1.0, 5, 2, 1, 1, 1, 2, 3])
    bench = Table(errors)
    trials = [Trial(ot.Constant(i + 1), Cost(tokens=i + 1)) for i in range(64)]
    told = []
    left = halve(trials, bench, "tokens", lambda *what: told.append(what))
    assert trials[0] in left
    assert all(len(trial.errors) == 8 for trial in left)
    assert [(len(own), list(flights)) for own, flights in told] == [
        (64, [0, 1]), (32, [2, 3]), (16, [4, 5, 6, 7])]  # fmt: skip
    assert bench.done == 64 * 2 + 32 * 2 + 16 * 4 < 64 * 8


def test_halving_keeps_cheap_schedules_for_the_front():
    """Errors fall with the price, so that all are on the front, and half stay for that alone."""
    errors = torch.linspace(3, 1, 64)[:, None] * torch.ones(4)
    trials = [Trial(ot.Constant(i + 1), Cost(tokens=i + 1)) for i in range(64)]
    left = halve(trials, Table(errors), "tokens", lambda *_: None)
    assert trials[-1] in left
    assert len(left) == 32


def schedules(*texts):
    return [ot.parse_schedule(text) for text in texts]


def test_the_simplest_within_the_standard_error():
    own = schedules("4-8-16", "bursts:16:4:5", "warmup:4-4:16")
    noise = torch.tensor([1.0, -1, 1, -1, 1, -1])
    base = torch.tensor([1.0, 2, 3, 4, 5, 6])
    errors = torch.stack([base, base * (1 - 0.01 + 0.05 * noise), base * 1.5])
    told = {"searched": [False] * 3, "unseen": range(6)}
    assert choose(errors, own, **told) == 0
    errors[1] = base * (1 - 0.06 + 0.01 * noise)
    assert choose(errors, own, **told) == 1
    errors[1] = base * (1 - 0.001)  # sure, but nothing to speak of
    assert choose(errors, own, **told) == 0


def test_a_hard_trajectory_does_not_outvote_the_others():
    own = schedules("4-8-16", "bursts:16:4:5")
    errors = torch.tensor([[1.0, 1, 1, 1, 50], [0.8, 0.8, 0.8, 0.8, 51]])
    assert choose(errors, own, searched=[False] * 2, unseen=range(5)) == 1


def test_a_sequence_must_win_where_it_was_not_searched():
    own = schedules("4-8-16", "explicit:4-8")
    told = {"searched": [False, True]}
    lucky = torch.tensor([[1.0, 1, 1, 1], [0.2, 0.2, 1.01, 1.01]])
    assert choose(lucky, own, **told, unseen=[2, 3]) == 0
    assert choose(lucky, own, **told, unseen=[0, 1]) == 1
    assert choose(lucky, own, **told, unseen=[0]) == 0  # one trajectory proves nothing
    worse_elsewhere = torch.tensor([[1.0, 1, 1, 1], [1.3, 1.3, 0.9, 0.9]])
    assert choose(worse_elsewhere, own, **told, unseen=[2, 3]) == 0


def test_what_blows_up_loses():
    own = schedules("4", "4-8-16")
    errors = torch.tensor([[0.1, torch.inf], [0.5, 0.5]])
    assert choose(errors, own, searched=[False] * 2, unseen=[0, 1]) == 1


def test_what_is_expected_of_a_choice_is_not_what_it_was_chosen_for():
    """Errors that are noise alone: the best of many looks good, what is left out tells."""
    random = torch.Generator().manual_seed(0)
    own = [ot.Constant(n + 1) for n in range(30)]
    told = {"searched": [False] * 30, "unseen": range(6)}
    chosen, expected = [], []
    for _ in range(20):
        errors = torch.exp(0.3 * torch.randn(30, 6, generator=random))
        chosen.append(errors[choose(errors, own, **told)].mean())
        expected.append(left_out(errors, own, **told).mean())
    mean = torch.exp(torch.tensor(0.3**2 / 2))
    assert torch.stack(chosen).mean() < 0.85 * mean
    assert 0.93 * mean < torch.stack(expected).mean() < 1.07 * mean
    assert left_out(errors[:, :2], own, **told | {"unseen": []}).shape == (2,)
    with pytest.raises(ValueError, match="min"):
        choose(errors[:0], [], searched=[], unseen=[])
