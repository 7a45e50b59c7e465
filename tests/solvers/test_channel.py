"""The basis between walls: orthonormal, without divergence, with the exact rates of Stokes flow."""

import math

import pytest
import torch

from overtone.ops.chebyshev import gauss_quadrature, interpolation_matrix
from overtone.solvers.channel import channel


@pytest.fixture(scope="module")
def box():
    return channel(16, 4.0, 24, torch.device("cpu"))


def test_modes_are_orthonormal(box):
    # On quadrature points that the basis was not made with.
    points, weight = gauss_quadrature(60)
    matrix = interpolation_matrix(24, points)
    u, v, theta = (matrix @ modes for modes in (box.u, box.v, box.theta))
    gram = u.mT @ (weight[:, None] * u) + v.mT @ (weight[:, None] * v)
    expected = torch.diag_embed((box.velocity_rates > 0).double())
    assert torch.allclose(gram, expected, atol=1e-12)
    assert (box.velocity_rates > 0).sum(dim=1).tolist() == [22] + 7 * [21]
    assert torch.allclose(theta.mT @ (weight[:, None] * theta), torch.eye(23).double(), atol=1e-12)


def test_modes_have_no_divergence_and_keep_to_the_walls(box):
    along, across = box.k[:, None, None] * box.u, box.derivative @ box.v
    assert (along - across).abs().max() < 1e-13 * (box.derivative @ box.u).abs().max()
    for modes in (box.u, box.v, box.theta):
        assert (modes[..., [0, -1], :] == 0).all()


def test_rates_of_the_scalar_and_of_the_mean_flow_are_those_of_sines(box):
    j = torch.arange(1, 9, dtype=torch.float64)
    assert torch.allclose(box.velocity_rates[0, :8], (math.pi * j) ** 2, rtol=1e-9)
    expected = (math.pi * j) ** 2 + box.k[3] ** 2
    assert torch.allclose(box.scalar_rates[3, :8], expected, rtol=1e-9)


def test_rates_of_the_velocity_solve_the_equation_of_stokes_modes(box):
    # ψ = cos(σy) - c cosh(ky) about mid-height, λ = σ² + k²; even and odd modes alternate.
    for k, rates in zip(box.k[1:], box.velocity_rates[1:], strict=True):
        sigma = (rates[:6] - k**2).sqrt()
        even = k * torch.tanh(k / 2) * torch.cos(sigma / 2) + sigma * torch.sin(sigma / 2)
        odd = k * torch.sin(sigma / 2) - sigma * torch.tanh(k / 2) * torch.cos(sigma / 2)
        assert (even[0::2].abs() < 1e-10 * sigma[0::2]).all()
        assert (odd[1::2].abs() < 1e-10 * sigma[1::2]).all()
