"""Every stepper has its order; linear problems and steady states are exact where promised."""

import math
from fractions import Fraction

import pytest
import torch

from overtone.solvers.steppers import ExponentialRK4, phi, ssp_rk2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_phi_has_all_its_digits(order):
    def exact(z):
        z, total, term = Fraction(z), Fraction(0), Fraction(1, math.factorial(order))
        for n in range(1, 160):
            total, term = total + term, term * z / (n + order)
        return float(total)

    z = [0.0, -1e-12, -1e-4, -0.3, -0.999, -1.0, -1.5, -7.0, -25.0]
    expected = torch.tensor([exact(value) for value in z], dtype=torch.float64)
    assert torch.allclose(phi(torch.tensor(z, dtype=torch.float64), order), expected, rtol=5e-15)


def test_fourth_order_on_a_stiff_nonlinear_pair():
    rates = torch.tensor([0.5, 20.0], dtype=torch.float64)

    def f(y):
        return torch.stack([y[0] * y[1], 10 * torch.sin(y[0])])

    def final(steps):
        scheme = ExponentialRK4.of(-rates, 1 / steps)
        y = torch.tensor([1.0, 0.3], dtype=torch.float64)
        for _ in range(steps):
            y = scheme.step(y, f)
        return y

    reference = final(1000)
    errors = [(final(n) - reference).abs().max().item() for n in (80, 160)]
    assert 3.8 < math.log2(errors[0] / errors[1]) < 4.3


def test_decay_is_exact_and_steady_states_stay_however_stiff():
    rates = torch.tensor([0.0, 1.0, 1e5], dtype=torch.float64)
    scheme, y = ExponentialRK4.of(-rates, 0.3), torch.ones(3, dtype=torch.float64)
    assert torch.allclose(scheme.step(y, torch.zeros_like), torch.exp(-rates * 0.3), rtol=1e-14)
    # f = R y* is balanced by the decay at y*.
    assert torch.allclose(scheme.step(2 * y, lambda _: 2 * rates), 2 * y, rtol=1e-13)


@pytest.mark.parametrize(
    "rates",
    [
        torch.tensor([0.0, -1e-9, -0.3, -1e5], dtype=torch.float64),
        torch.tensor([0.0, 1e-8j, 2.0j, -0.5 + 3j, -1e4 + 1j], dtype=torch.complex128),
    ],
    ids=["real", "complex"],
)
def test_linear_problems_with_constant_forcing_are_exact(rates):
    y = torch.linspace(1, 2, len(rates)).to(rates)
    dt = 0.7
    scheme = ExponentialRK4.of(rates, dt)
    free = scheme.step(y, torch.zeros_like)
    assert torch.allclose(free, torch.exp(rates * dt) * y, rtol=1e-14, atol=1e-14)
    forced = scheme.step(y, torch.ones_like)
    # For |λ dt| ≪ 1 the quotient is replaced by its expansion.
    tiny = rates.abs() < 1e-6
    safe = torch.where(tiny, 1.0, rates)
    response = torch.where(tiny, dt + rates * dt**2 / 2, torch.expm1(safe * dt) / safe)
    assert torch.allclose(forced - free, response, rtol=1e-13, atol=1e-14)


def test_phi_of_complex_numbers_is_that_of_real_ones_on_the_real_axis():
    z = torch.tensor([1e-3, 0.999999, 1.000001, -0.999999, -1.000001, 3.0]).double()
    for order in (1, 2, 3):
        assert torch.allclose(phi(z + 0j, order).real, phi(z, order), rtol=1e-13)


def test_ssp_rk2_is_of_second_order():
    """`dy/dt = y (1 - y)` has a closed solution."""

    def error(steps):
        y = torch.tensor([0.1], dtype=torch.float64)
        for _ in range(steps):
            y = ssp_rk2(y, 3.0 / steps, lambda v: v * (1 - v))
        return abs(y.item() - 1 / (1 + 9 * math.exp(-3.0)))

    assert 1.9 < math.log2(error(40) / error(80)) < 2.1


def test_ssp_rk2_of_a_linear_problem_is_the_taylor_polynomial():
    y = ssp_rk2(torch.ones(1, dtype=torch.float64), 0.3, lambda v: -v)
    assert y.item() == pytest.approx(1 - 0.3 + 0.3**2 / 2, abs=1e-15)
