"""The potential of isolated masses against closed forms."""

import math

import pytest
import torch

from overtone.solvers.base import cell_centres
from overtone.solvers.gravity import MEAN_INVERSE_DISTANCE, acceleration, potential


def gaussian(n, length=10.0, width=1.0, mass=3.0):
    """Density of a Gaussian ball, distance from its centre, and the coordinates."""
    x = torch.stack(
        torch.meshgrid(*[cell_centres(n, length, start=-length / 2)] * 3, indexing="ij")
    )
    r = x.square().sum(0).sqrt()
    density = mass * torch.exp(-(r**2) / (2 * width**2)) / (2 * math.pi * width**2) ** 1.5
    return density[None], r, x


def errors(n, length=10.0, width=1.0, mass=3.0, constant=0.7):
    density, r, x = gaussian(n)
    spacing = (length / n,) * 3
    exact = -constant * mass * torch.erf(r / (math.sqrt(2) * width)) / r
    phi = potential(density, spacing, constant)[0, 1:-1, 1:-1, 1:-1]
    slope = math.sqrt(2 / math.pi) / width * torch.exp(-(r**2) / (2 * width**2)) / r
    pull = -constant * mass * (torch.erf(r / (math.sqrt(2) * width)) / r**2 - slope) * x / r
    force = acceleration(density, spacing, constant)[0]
    return ((phi - exact).abs().max() / exact.abs().max()).item(), (
        (force - pull).abs().max() / pull.abs().max()
    ).item()


def test_a_gaussian_ball_has_its_exact_potential_and_pull_to_second_order():
    coarse, fine = errors(16), errors(32)
    assert fine[0] < 0.005
    assert fine[1] < 0.03
    for large, small in zip(coarse, fine, strict=True):
        assert math.log2(large / small) > 1.7


def test_a_far_cell_is_a_point_mass_on_every_side_of_the_box():
    density = torch.zeros(1, 8, 10, 12, dtype=torch.float64)
    density[0, 0, 2, 3] = 5.0
    phi = potential(density, (0.5, 0.5, 0.5), 2.0)
    assert phi.shape == (1, 10, 12, 14)
    mass = 5.0 * 0.125
    for cell in ((7, 9, 11), (-1, 2, 3), (8, 2, 3), (0, -1, 3), (0, 10, 3), (0, 2, -1), (0, 2, 12)):
        distance = 0.5 * math.dist(cell, (0, 2, 3))
        value = phi[0, cell[0] + 1, cell[1] + 1, cell[2] + 1].item()
        assert value == pytest.approx(-2.0 * mass / distance, rel=1e-12)


def test_forces_are_opposite_so_that_momentum_is_conserved():
    density = torch.rand(2, 6, 8, 7, dtype=torch.float64)
    force = density[:, None] * acceleration(density, (0.3, 0.2, 0.25), 1.0)
    assert force.abs().max() > 0.01
    assert force.sum((2, 3, 4)).abs().max() < 1e-12


def test_the_mean_inverse_distance_in_a_cube():
    """By the divergence theorem 1/r integrates over a cube to 6 pyramids of 1/2 ∫ 1/(2 r) dA."""
    n = 400
    y = cell_centres(n, 1.0, start=-0.5)
    face = 1 / (0.25 + y[:, None] ** 2 + y[None, :] ** 2).sqrt()
    # ∇·(r/(2|r|)) = 1/|r|, so the integral is the flux of r/(2|r|) through the six faces.
    assert 6 * (0.25 * face).mean().item() == pytest.approx(MEAN_INVERSE_DISTANCE, rel=1e-5)
