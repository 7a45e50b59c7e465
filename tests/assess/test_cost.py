"""Prices add up, and are those that are counted elsewhere."""

import pytest

import overtone as ot
from overtone.assess.cost import Cost, Costs, read_limits
from overtone.errors import OvertoneError
from overtone.evaluate import Candidate
from overtone.models.flops import call_flops


@pytest.fixture
def walled(make_domain, make_model, make_window):
    domain = make_domain((32, 16), boundaries=("periodic", "wall"))
    model = make_model(domain, patches=(4, 8)).eval()
    return Candidate("m", model), make_window(domain, batch=1), domain


@pytest.mark.parametrize("text", ["4", "4-8", "8+shift", "warmup:4-4:8+shift", "bursts:8:4:3"])
def test_tokens_are_the_schedules_own(text, walled):
    candidate, window, domain = walled
    costs = Costs(candidate, window, measure=lambda choice: 0.5)
    schedule = ot.parse_schedule(text)
    cost = costs.of(schedule, 7)
    assert cost.tokens == schedule.tokens(domain, 7)
    flops = sum(
        call_flops(candidate.model, domain, choice.patch, frames=3, shift=choice.shift)
        for choice in (schedule(step).on(domain) for step in range(7))
    )
    assert cost.flops == flops
    assert cost.seconds == 3.5


def test_a_grid_is_measured_once_however_it_is_moved(walled):
    candidate, window, _ = walled
    measured = []
    costs = Costs(candidate, window, measure=lambda choice: measured.append(choice) or 1.0)
    costs.of(ot.parse_schedule("8+shift"), 30)
    # At rest along the wall, and moved there, which takes a token more.
    assert len(measured) == 2


def test_the_clock_runs(walled):
    candidate, window, _ = walled
    costs = Costs(candidate, window)
    assert costs.of(ot.Constant(4), 5).seconds == pytest.approx(
        5 * costs.step(ot.Choice(4)).seconds
    )
    assert costs.step(ot.Choice(4)).seconds > 0


def test_costs_and_limits():
    cost = Cost(10, 100, 0.5) + Cost(1, 2, 0.25).times(2)
    assert cost == Cost(12, 104, 1.0)
    assert cost.within({"tokens": 12, "seconds": 1.0})
    assert not cost.within({"tokens": 12, "flops": 103})
    assert read_limits(None, 5, None) == {"flops": 5}
    with pytest.raises(OvertoneError, match="seconds is True"):
        read_limits(None, None, True)
