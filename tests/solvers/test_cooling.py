"""Exact cooling against closed forms, and its limits."""

import math

import pytest
import torch

import overtone as ot
from overtone.solvers.cooling import CoolingCurve


def power_law(power, low=0.01, high=1e4):
    return CoolingCurve((low, 1.0, high), tuple(2.0 * t**power for t in (low, 1.0, high)))


@pytest.mark.parametrize("power", [-0.7, 0.0, 0.5, 1.0, 2.0])
def test_power_laws_cool_as_their_closed_forms(power):
    """dT/dt = -s 2 T^a, with the step going through a node."""
    temperature = torch.tensor([0.5, 3.0, 50.0], dtype=torch.float64)
    strength = torch.tensor([0.01, 0.4, 0.2], dtype=torch.float64)
    if power == 1.0:
        exact = temperature * torch.exp(-2 * strength)
    else:
        b = 1 - power
        base = temperature**b - 2 * b * strength
        exact = base.clamp(min=0.01**b if b > 0 else 0.0) ** (1 / b)
    assert torch.allclose(power_law(power).cool(temperature, strength), exact, rtol=1e-7)


def test_a_bent_curve_agrees_with_many_small_steps_and_steps_add_up():
    curve = CoolingCurve((1.0, 10.0, 30.0, 1000.0), (0.1, 50.0, 8.0, 90.0))
    start = torch.logspace(0.1, 2.9, 12, dtype=torch.float64)
    euler = start.clone()
    for _ in range(2000):
        rate = torch.tensor([curve.rate(t) for t in euler.tolist()], dtype=torch.float64)
        euler = (euler - 2e-3 * rate).clamp(min=1.0)
    assert torch.allclose(curve.cool(start, 4.0), euler, rtol=5e-3)
    once, twice = curve.cool(start, 4.0), curve.cool(curve.cool(start, 1.5), 2.5)
    assert torch.allclose(once, twice, rtol=1e-9)


def test_nothing_cools_below_the_lowest_or_above_the_highest_node():
    curve = power_law(0.5, low=2.0 / 4, high=100.0)
    cooled = curve.cool(torch.tensor([0.1, 0.5, 0.6, 99.0, 101.0], dtype=torch.float64), 1e9)
    assert torch.allclose(cooled, torch.tensor([0.1, 0.5, 0.5, 0.5, 101.0], dtype=torch.float64))
    assert curve.cool(torch.tensor([7.0], dtype=torch.float64), 0.0).item() == pytest.approx(7.0)


def test_a_floor_cuts_the_curve_but_does_not_change_it():
    curve = CoolingCurve((1.0, 10.0, 100.0), (0.1, 50.0, 9.0))
    cut = curve.above(4.0)
    assert cut.temperatures == (4.0, 10.0, 100.0)
    assert cut.rate(4.0) == pytest.approx(0.1 * 4.0 ** math.log10(500))
    hot = torch.tensor([60.0, 90.0], dtype=torch.float64)
    assert torch.allclose(cut.cool(hot, 1.0), curve.cool(hot, 1.0), rtol=1e-12)
    assert torch.equal(cut.cool(hot, 1e9), torch.full_like(hot, 4.0))
    assert curve.above(0.5) is curve


def test_bad_curves():
    with pytest.raises(ot.OvertoneError, match="increasing"):
        CoolingCurve((2.0, 1.0), (1.0, 1.0))
    with pytest.raises(ot.OvertoneError, match="positive rate"):
        CoolingCurve((1.0, 2.0), (1.0, 0.0))
    with pytest.raises(ot.OvertoneError, match="less than 100"):
        CoolingCurve((1.0, 100.0), (1.0, 1.0)).above(200.0)
