"""The tabulated closure against quadrature of the density it stands for."""

import math

import pytest
import torch

from overtone.solvers.bingham import fourth_moment, shape_function


def moments(kappa, angle, c):
    """c, q and r of ψ ∝ exp(κ cos(2θ - angle)) by the trapezoidal rule, which is exact here."""
    theta = torch.arange(4000, dtype=torch.float64) * 2 * math.pi / 4000
    psi = torch.exp(kappa * (torch.cos(2 * theta - angle) - 1))
    psi = c * psi / psi.sum()
    turn = torch.exp(2j * theta)
    return c, (turn * psi).sum(), (turn**2 * psi).sum()


@pytest.mark.parametrize("kappa", [1e-3, 0.03, 0.4, 1.0, 3.0, 10.0, 60.0, 700.0])
def test_fourth_moment_is_that_of_the_density(kappa):
    for angle, concentration in ((0.0, 1.0), (1.1, 0.7), (-2.5, 3.0)):
        c, q, r = moments(kappa, angle, concentration)
        closed = fourth_moment(torch.tensor([c], dtype=torch.float64), q[None])
        assert (closed - r).abs().max() < 1e-9 * c


def test_limits():
    ends = shape_function(torch.tensor([0.0, 1.0, 1.3], dtype=torch.float64))
    assert torch.allclose(ends, torch.tensor([0.5, 1.0, 1.0]).double(), atol=1e-12)
    inside = shape_function(torch.linspace(0, 1, 1001, dtype=torch.float64))
    assert bool((inside.diff() > 0).all())


def test_isotropic_rods_have_no_fourth_moment():
    zero = torch.zeros(3, dtype=torch.complex128)
    assert torch.equal(fourth_moment(torch.ones(3, dtype=torch.float64), zero), zero)
