"""Budgets: what is used, when it validates, and an ETA that agrees with the clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.train.budget import Budget
from overtone.train.config import MOST
from overtone.train.recipes import recipe
from overtone.train.settings import change
from overtone.train.state import RunProgress


def budget(**changes):
    base = {"train.updates": MOST, "train.unroll": 1, "train.unroll_from": 0.0}
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return Budget(change(recipe("kuramoto-sivashinsky-mini"), base | dotted))


def simulate(own, seconds, validation, cpu=1.0):
    """A run on a clock of our own: (clock, progress) after each update; the clock at the end.

    `seconds` is what a step takes; validation is counted by the clock alone, as in training.
    """
    clock, progress, states = 0.0, RunProgress(), []
    train, validated = own.config.train, 0
    while own.done(progress) < 1:
        before = own.done(progress)
        steps = train.unroll if before >= train.unroll_from else 1
        progress = RunProgress(
            update=progress.update + 1,
            seconds=progress.seconds + steps * seconds,
            cpu_seconds=progress.cpu_seconds + cpu * steps * seconds,
            flops=progress.flops + 1e9 * steps,
            patches={"4": progress.patches.get("4", 0) + steps},
        )
        clock += steps * seconds
        states.append((clock, progress, validated))
        if own.validates(before, progress):
            clock, validated = clock + validation, validated + 1
    return states, clock, validated


@pytest.mark.parametrize(
    "limit",
    [
        {"train__max_minutes": 2.0},
        {"train__max_cpu_minutes": 2.0},
        {"train__max_flops": 3e11},
        {"train__updates": 317},
        {"train__updates": 317, "train__unroll": 4, "train__unroll_from": 0.6},
        {"train__max_minutes": 2.0, "train__unroll": 4, "train__unroll_from": 0.6},
    ],
    ids=str,
)
@pytest.mark.parametrize("when", [{"valid__points": 10}, {"valid__every": 40}], ids=str)
def test_the_time_left_is_what_passes_on_the_clock(limit, when):
    own = budget(**limit, **when)
    states, end, _ = simulate(own, seconds=0.37, validation=5.0)
    start = RunProgress()
    for clock, progress, _ in states[len(states) // 4 :]:
        left = own.seconds_left(progress, start, validation=5.0)
        assert left == pytest.approx(end - clock, rel=0.05, abs=6.0)


def test_a_resumed_run_tells_the_time_by_what_it_did_itself():
    own = budget(train__updates=1000, valid__every=10**6)
    begun = RunProgress(update=500, seconds=5000.0)  # on a machine ten times slower
    now = RunProgress(update=600, seconds=5100.0)
    assert own.seconds_left(now, begun, validation=0.0) == pytest.approx(400.0)


@given(st.integers(1, 12), st.integers(1, 700))
def test_every_budget_of_updates_has_its_points(points, updates):
    own = budget(train__updates=updates, valid__points=points)
    _, _, validated = simulate(own, seconds=1.0, validation=0.0)
    assert validated == min(points, updates)


@pytest.mark.parametrize("limit", ["train__max_minutes", "train__max_cpu_minutes"])
def test_every_budget_of_minutes_has_its_points(limit):
    _, _, validated = simulate(budget(**{limit: 3.0}, valid__points=10), 0.9, 2.0)
    assert validated == 10


def test_what_is_used_is_said_in_the_budgets_own_unit():
    progress = RunProgress(update=120, seconds=192.0, cpu_seconds=96.0, flops=2e15)
    said = {
        "3.2/15 min": {"train__max_minutes": 15},
        "1.6/15 CPU min": {"train__max_cpu_minutes": 15},
        "2/4 PFLOP": {"train__max_flops": 4e15},
        "120/1000": {"train__updates": 1000},
    }
    for words, limit in said.items():
        assert budget(**limit).used(progress) == words
    assert str(budget(train__max_minutes=15)) == "15 min"
    assert str(budget(train__max_minutes=15, train__updates=2000)) == "15 min or 2,000 updates"
