"""The basis between walls: orthonormal, without divergence, with the exact rates of Stokes flow.

Its polynomials are treated exactly, smooth functions to spectral accuracy.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.solvers.channel import (
    channel,
    chebyshev_nodes,
    differentiation_matrix,
    gauss_quadrature,
    interpolation_matrix,
    quadrature_weights,
)


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


def test_nodes_run_from_end_to_end_and_are_symmetric():
    y = chebyshev_nodes(7, 3.0)
    assert y[0] == 0
    assert y[-1] == 3
    assert (y.diff() > 0).all()
    assert torch.allclose(y + y.flip(0), torch.full_like(y, 3.0), atol=1e-15)


@given(degree=st.integers(1, 24), power=st.integers(0, 24), length=st.floats(0.5, 4.0))
def test_polynomials_up_to_the_degree_are_exact(degree, power, length):
    power = min(power, degree)
    y, points = chebyshev_nodes(degree, length), torch.linspace(0, length, 11, dtype=torch.float64)
    values, scale = y**power, length**power
    slope = power * y ** max(power - 1, 0)
    tolerance = 1e-12 * degree**2
    derivative = differentiation_matrix(degree, length) @ values
    assert torch.allclose(derivative, slope, atol=tolerance * scale / length)
    between = interpolation_matrix(degree, points, length) @ values
    assert torch.allclose(between, points**power, atol=tolerance * scale)
    integral = quadrature_weights(degree, length) @ values
    assert integral.item() == pytest.approx(length ** (power + 1) / (power + 1), rel=1e-12)


def test_one_degree_more_is_not_exact():
    y = chebyshev_nodes(5)
    assert (differentiation_matrix(5) @ y**6 - 6 * y**5).abs().max() > 1e-3


def test_errors_of_smooth_functions_fall_geometrically():
    def errors(degree):
        y, points = chebyshev_nodes(degree, 2.0), torch.linspace(0, 2, 41, dtype=torch.float64)
        f = torch.exp(y) * torch.sin(3 * y)
        slope = torch.exp(y) * (torch.sin(3 * y) + 3 * torch.cos(3 * y))
        between = interpolation_matrix(degree, points, 2.0) @ f
        integral = (math.exp(2) * (math.sin(6) - 3 * math.cos(6)) + 3) / 10
        return (
            (differentiation_matrix(degree, 2.0) @ f - slope).abs().max().item(),
            (between - torch.exp(points) * torch.sin(3 * points)).abs().max().item(),
            abs((quadrature_weights(degree, 2.0) @ f).item() - integral),
        )

    coarse, middle, fine = errors(8), errors(14), errors(24)
    assert all(b < 1e-3 * a for a, b in zip(coarse, middle, strict=True))
    assert fine[0] < 1e-10
    assert max(fine[1:]) < 1e-13


def test_second_derivative_keeps_its_digits_at_high_degree():
    y, matrix = chebyshev_nodes(64), differentiation_matrix(64)
    error = matrix @ (matrix @ torch.sin(9 * y)) + 81 * torch.sin(9 * y)
    assert error.abs().max() < 1e-7


def test_interpolation_at_the_nodes_is_the_identity():
    matrix = interpolation_matrix(9, chebyshev_nodes(9))
    assert torch.equal(matrix, torch.eye(10, dtype=torch.float64))


def test_gauss_points_integrate_twice_their_number():
    points, weights = gauss_quadrature(6, 2.0)
    assert (weights @ points**11).item() == pytest.approx(2**12 / 12, rel=1e-13)
    assert abs((weights @ points**12).item() - 2**13 / 13) > 1e-6


def test_refusals():
    with pytest.raises(ot.OvertoneError, match="between 0 and 1"):
        interpolation_matrix(4, torch.tensor([1.2]))
    with pytest.raises(ot.OvertoneError, match="degree is 0"):
        chebyshev_nodes(0)
