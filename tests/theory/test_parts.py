"""What disagreements see of an error, and a simulation that agrees."""

import math

import pytest
import torch

import overtone as ot
from overtone.theory.parts import Parts, error_ratio, simulate_parts


def test_disagreement_bounds_the_error_if_less_is_shared_than_the_other_has_of_its_own():
    assert Parts(shared=0.0, own=1.0, other=2.0).disagreement == pytest.approx(math.sqrt(5))
    assert Parts(shared=1.9, own=1.0, other=2.0).bounded
    assert not Parts(shared=2.1, own=1.0, other=2.0).bounded
    # A coarser patch that makes all errors of the finer one, and more: own part for own part.
    nested = Parts(shared=0.0, own=1.0, other=2.0, likeness=0.5)
    assert nested.disagreement == pytest.approx(math.sqrt(3))
    assert nested.bounded
    assert not Parts(shared=0.0, own=1.0, other=1.0, likeness=0.9).bounded


@pytest.mark.parametrize(
    "parts",
    [
        Parts(0.0, 1.0, 2.0),
        Parts(1.0, 1.0, 1.0, likeness=0.3),
        Parts(0.5, 1.0, 1.5, own_persistence=0.7),
        Parts(0.5, 1.0, 1.5, likeness=-0.5, shared_persistence=0.5, propagation=1.05),
        Parts(0.3, 1.0, 1.0, propagation=0.8 + 0.3j),
    ],
)
def test_the_ratio_of_error_to_disagreement_is_that_of_simulated_rollouts(parts):
    energy, seen = simulate_parts(parts, 20, trials=40_000, seed=1)
    found = (energy.mean(dim=0) / seen.mean(dim=0)).sqrt()
    assert torch.allclose(found, error_ratio(parts, 20), rtol=0.02)


def test_ratios_of_independent_and_of_shared_errors():
    apart = error_ratio(Parts(0.0, 1.0, 2.0), 30)
    assert torch.allclose(apart, torch.full((30,), 1 / math.sqrt(5)).double())
    # What both get wrong alike, again and again, grows with the square root of the steps.
    alike = error_ratio(Parts(1.0, 0.0, 1.0), 30)
    assert torch.allclose(alike, torch.arange(1, 31).double().sqrt())
    blind = error_ratio(Parts(1.0, 0.0, 0.0), 3)
    assert bool(blind.isinf().all())


def test_wrong_parts():
    with pytest.raises(ot.OvertoneError, match="likeness is 2; expected -1 to 1"):
        Parts(0, 1, 1, likeness=2)
    with pytest.raises(ot.OvertoneError, match="has a negative part"):
        Parts(-1, 1, 1)
