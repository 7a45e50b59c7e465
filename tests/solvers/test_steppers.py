"""Every stepper has the order that its name says, and linear problems are exact where promised."""

import pytest
import torch

from overtone.solvers.steppers import (
    integrating_factor_rk4,
    ssp_rk2,
)

RATE = torch.tensor([-1.0, -3.0, 0.5], dtype=torch.float64)


def bernoulli(y):
    """`dy/dt = λ y + f(y)` with `f = -y²` has a closed solution."""
    return -y.square()


def exact(y, rate, time):
    growth = torch.exp(rate * time)
    return growth * y / (1 + y * (growth - 1) / rate)


def integrate(name, time, num, rate):
    dt, y = time / num, torch.tensor([1.0, 0.7, 0.4], dtype=torch.float64)
    half = torch.exp(rate * dt / 2)
    step = {
        "integrating_factor_rk4": lambda y: integrating_factor_rk4(y, dt, half, bernoulli),
        "ssp_rk2": lambda y: ssp_rk2(y, dt, lambda v: rate * v + bernoulli(v)),
    }[name]
    for _ in range(num):
        y = step(y)
    return y


def slope(sizes, errors):
    """Of a line through the errors in doubly logarithmic axes."""
    x, y = torch.tensor(sizes).double().log(), torch.tensor(errors).double().log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


@pytest.mark.parametrize(("name", "order"), [("integrating_factor_rk4", 4), ("ssp_rk2", 2)])
def test_order_of_convergence(name, order):
    target = exact(torch.tensor([1.0, 0.7, 0.4], dtype=torch.float64), RATE, 2.0)
    counts = [16, 32, 64, 128]
    errors = [(integrate(name, 2.0, n, RATE) - target).abs().max().item() for n in counts]
    assert slope([2.0 / n for n in counts], errors) == pytest.approx(order, abs=0.2)


def test_the_integrating_factor_is_exact_without_other_tendencies():
    y, dt = torch.ones(3, dtype=torch.float64), 0.7
    stepped = integrating_factor_rk4(y, dt, torch.exp(RATE * dt / 2), torch.zeros_like)
    assert torch.allclose(stepped, torch.exp(RATE * dt), rtol=1e-14)


def test_ssp_rk2_of_a_linear_problem_is_the_taylor_polynomial():
    y = ssp_rk2(torch.ones(1, dtype=torch.float64), 0.3, lambda v: -v)
    assert y.item() == pytest.approx(1 - 0.3 + 0.3**2 / 2, abs=1e-15)
