"""The beam search against all sequences there are."""

import itertools
import math

import pytest
import torch

from overtone.assess.cost import Cost, Costs
from overtone.assess.plan_bench import Bench
from overtone.assess.search_beam import Beam, Beginning
from overtone.evaluate import Candidate, Trajectories

TOKENS = {2: 8, 4: 4, 8: 2}


def search(model, still, steps, budget, kind="still"):
    truth = Trajectories(still, model.domain.fields, model.context, {"split": "valid"})
    candidate = Candidate("m", model)
    bench = Bench(candidate, truth, steps=steps)
    costs = Costs(candidate, truth.window([0], 2, 2), measure=lambda choice: 1.0)
    beam = Beam(bench, costs, (2, 4, 8), kind, {"tokens": budget}, "tokens")
    before = model.calls
    found = beam.search([0, 1])
    assert model.calls - before <= beam.num_steps([0, 1])
    return found


@pytest.mark.parametrize("propagation", [1.0, 0.6, -0.9, 1.2])
@pytest.mark.parametrize("budget", [14, 22, 30])
def test_the_best_sequence_of_all(propagation, budget, linear, still):
    model = linear(0.1, 0.2, 0.4, propagation=propagation)
    found = search(model, still, 5, budget)
    errors = [model.errors([own(n).patch for n in range(5)]) for own in found]
    best = min(
        model.errors(sequence)
        for sequence in itertools.product(TOKENS, repeat=5)
        if sum(map(TOKENS.get, sequence)) <= budget  # pyright: ignore[reportCallIssue]
    )
    assert min(errors) == pytest.approx(best)
    assert errors[0] == min(errors)  # the best comes first
    for own in found:
        assert own.tokens(model.domain, 5) <= budget


def test_nothing_fits(linear, still):
    assert search(linear(0.1, 0.2, 0.4), still, 5, 9) == []


def test_long_rollouts_have_words_and_beginnings_are_shared(linear, still):
    model = linear(0.1, 0.2, 0.4)
    found = search(model, still, 12, 60, kind="shifted")
    assert all("+shift" in str(own) for own in found)
    assert model.calls < 12 * 3 * 4 * 8 + 30


def test_a_beginning_is_judged_by_its_error_if_that_stayed_as_it_is():
    errors = torch.tensor([[0.1, 0.3], [0.2, 0.2]], dtype=torch.float64)
    beginning = Beginning((4, 4), (), errors, Cost())
    # Over five steps: 0.1 and four times 0.3; five times 0.2.
    assert beginning.outlook(5) == pytest.approx((math.log(1.3 / 5) + math.log(0.2)) / 2)
