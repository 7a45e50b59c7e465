"""Exact cooling, and the gravity of isolated masses, against closed forms."""

import math

import pytest
import torch

import overtone as ot
from overtone.solvers.base import cell_centres
from overtone.solvers.sources import MEAN_INVERSE_DISTANCE, CoolingCurve, acceleration, potential


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
