"""Taylor-Green vortices, whose residuals and budgets are known, and orders of derivatives."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import physics
from overtone.solvers import ShearFlow

K = 2 * math.pi


def vortices(system, steps):
    """Frames `(T, C, *space)` of Taylor-Green vortices."""
    x = (torch.arange(system.shape[0], dtype=torch.float64) + 0.5) / system.shape[0]
    z = (torch.arange(system.shape[1], dtype=torch.float64) + 0.5) / system.shape[1] * 2 - 1
    x, z = torch.meshgrid(x, z, indexing="ij")
    u, w = torch.sin(K * x) * torch.cos(K * z), -torch.cos(K * x) * torch.sin(K * z)
    state = system.state(u[None], w[None], torch.zeros_like(u)[None])
    return torch.cat(list(system.evolve(state, steps)))


def grid(shape, boundaries, extent=None):
    return ot.Domain(shape, extent or (1.0,) * len(shape), boundaries, ("a",))


def test_taylor_green_obeys_both_laws():
    system = ShearFlow(shape=(16, 32), reynolds=100.0, dt=0.01)
    frames = vortices(system, 5)
    velocity, pressure = frames[:, 2:], frames[:, 1]
    mass = physics.mass_residual(velocity, system.domain)
    momentum = physics.momentum_residual(velocity, pressure, system.domain, viscosity=0.01)
    assert mass.shape == (5, 16, 32)
    assert momentum.shape == (3, 16, 32)
    # Frames are float32; derivatives amplify their rounding by the largest wavenumber.
    assert mass.max() < 1e-4
    assert momentum.max() < 1e-3
    wrong = physics.momentum_residual(velocity, 0 * pressure, system.domain, viscosity=0.01)
    assert wrong.mean() > 0.5


def test_momentum_residual_is_of_second_order_in_the_frame_interval():
    def residual(dt):
        """Mean residual over mean speed, at the middle one of three frames."""
        system = ShearFlow(shape=(16, 32), reynolds=10.0, dt=dt)
        frames = vortices(system, 3)
        velocity, pressure = frames[:, 2:], frames[:, 1]
        miss = physics.momentum_residual(velocity, pressure, system.domain, viscosity=0.1)
        return (miss.mean() / velocity[1].double().norm(dim=0).mean()).item()

    # u decays like exp(-rate t): a central difference misses rate³ dt²/6 of it.
    rate = 2 * K**2 / 10
    assert residual(0.02) == pytest.approx(rate**3 * 0.02**2 / 6, rel=0.02)
    assert math.log2(residual(0.04) / residual(0.02)) == pytest.approx(2, abs=0.05)


def test_energy_decays_at_the_rate_that_enstrophy_sets():
    system = ShearFlow(shape=(16, 32), reynolds=50.0, dt=0.1)
    velocity = vortices(system, 4)[:, 2:]
    energy = physics.kinetic_energy(velocity, system.domain)
    enstrophy = physics.enstrophy(velocity, system.domain)
    # ½ |u|² has the mean 1/4 over an area of 2; ω² is k² |u|² summed over both axes.
    assert energy[0].item() == pytest.approx(0.5, rel=1e-6)
    assert enstrophy[0].item() == pytest.approx(2 * K**2 * 0.5, rel=1e-6)
    decay = torch.exp(-4 * K**2 / 50.0 * 0.1 * torch.arange(4.0)).double()
    assert torch.allclose(energy, energy[0] * decay, rtol=1e-5)
    # dE/dt = -2 ν Z
    rate = (energy[1:].log() - energy[:-1].log()) / 0.1
    assert torch.allclose(rate, -2 * enstrophy[:-1] / energy[:-1] / 50.0, rtol=1e-4)


@pytest.mark.parametrize("boundary", ["wall", "open"])
def test_finite_differences_are_of_fourth_order(boundary):
    def error(n):
        domain = grid((n, 8), (boundary, "periodic"))
        x = (torch.arange(n, dtype=torch.float64) + 0.5)[:, None].expand(n, 8) / n
        slope = physics.derivative(torch.sin(5 * x), 0, domain)
        return (slope - 5 * torch.cos(5 * x)).abs().max()

    assert math.log2(error(32) / error(64)) == pytest.approx(4, abs=0.4)


def test_unequal_cells_differentiate_polynomials_exactly():
    y = (torch.rand(12, dtype=torch.float64)).sort()[0]
    domain = grid((8, 12), ("periodic", "wall"))
    field = (y**4 - y).expand(8, 12)
    slope = physics.derivative(field, 1, domain, coordinates={1: y})
    assert torch.allclose(slope, (4 * y**3 - 1).expand(8, 12), atol=1e-6)


def test_spectral_derivatives_are_exact_and_batched():
    domain = grid((16, 12), "periodic", (1.0, 2.0))
    x = torch.arange(16, dtype=torch.float64)[:, None] / 16
    y = torch.arange(12, dtype=torch.float64)[None] / 6
    field = (torch.sin(2 * K * x) * torch.cos(K * y)).expand(2, 3, 16, 12)
    slopes = physics.gradient(field, domain)
    assert slopes.shape == (2, 3, 2, 16, 12)
    assert torch.allclose(slopes[0, 0, 0], 2 * K * torch.cos(2 * K * x) * torch.cos(K * y))
    assert torch.allclose(slopes[0, 0, 1], -K * torch.sin(2 * K * x) * torch.sin(K * y))
    assert torch.allclose(physics.laplacian(field, domain), -5 * K**2 * field)


def test_vorticity_in_three_dimensions_has_no_divergence():
    domain = grid((8, 8, 8), "periodic")
    spin = physics.vorticity(torch.randn(2, 3, 8, 8, 8), domain)
    assert spin.shape == (2, 3, 8, 8, 8)
    assert physics.divergence(spin, domain).abs().max() < 1e-10 * spin.abs().max()
    turn = torch.zeros(3, 8, 8, 8, dtype=torch.float64)
    angle = K * torch.arange(8, dtype=torch.float64) / 8
    turn[1] = torch.sin(angle)[:, None, None]
    spin = physics.vorticity(turn, domain)
    assert torch.allclose(spin[2, :, 0, 0], K * torch.cos(angle))
    assert spin[:2].abs().max() < 1e-12


def test_totals_of_a_uniform_gas():
    domain = grid((4, 8), "open", (2.0, 3.0))
    one = torch.ones(5, 4, 8)
    velocity = torch.stack([2 * one, -one], dim=1)
    assert torch.allclose(physics.total(3 * one, domain), torch.full((5,), 18.0).double())
    momentum = physics.total_momentum(velocity, domain, density=3 * one)
    assert momentum[0].tolist() == pytest.approx([36.0, -18.0])
    energy = physics.total_energy(velocity, 3 * one, 4 * one, domain, gamma=1.4)
    assert energy[0].item() == pytest.approx(6 * (3 * 5 / 2 + 4 / 0.4))


def test_bad_input():
    domain = grid((8, 8), "periodic")
    with pytest.raises(ot.DomainError, match="2 components"):
        physics.divergence(torch.zeros(3, 8, 8), domain)
    with pytest.raises(ot.DomainError, match="the domain's grid is"):
        physics.derivative(torch.zeros(8, 9), 0, domain)
    with pytest.raises(ot.DomainError, match="at least three frames"):
        physics.momentum_residual(
            torch.zeros(2, 2, 8, 8), torch.zeros(2, 8, 8), domain, viscosity=1.0
        )
    with pytest.raises(ot.DomainError, match="no vorticity"):
        physics.vorticity(torch.zeros(1, 8), grid((8,), "periodic"))
    with pytest.raises(ot.DomainError, match="5 or more"):
        physics.derivative(torch.zeros(4, 8), 0, grid((4, 8), ("wall", "periodic")))


@pytest.mark.parametrize("weight", [1.0, -2.0])
def test_a_fluid_at_rest_carries_its_weight_by_pressure(weight):
    """Nothing moves where the gradient of pressure is the force, and everything where it is not."""
    domain = grid((8, 12), ("periodic", "wall"))
    height = (torch.arange(12, dtype=torch.float64) + 0.5) / 12
    velocity = torch.zeros(3, 2, 8, 12, dtype=torch.float64)
    pressure = (weight * height).expand(3, 8, 12)
    force = torch.zeros_like(velocity)
    force[:, 1] = weight
    still = physics.momentum_residual(velocity, pressure, domain, viscosity=0.1, force=force)
    assert still.max() < 1e-12
    falling = physics.momentum_residual(velocity, 0 * pressure, domain, viscosity=0.1, force=force)
    torch.testing.assert_close(falling, torch.full_like(falling, abs(weight)))


def test_terms_bound_residuals_and_meet_them_where_nothing_cancels():
    """Of u = (sin x, 0): its divergence is its one term; with -sin y as well, two of them."""
    domain = ot.Domain((32, 32), (2 * math.pi, 2 * math.pi), "periodic", ("u", "v"), 0.1)
    x = torch.arange(32, dtype=torch.float64) * 2 * math.pi / 32
    zero = torch.zeros(32, 32, dtype=torch.float64)
    alone = torch.stack([torch.sin(x)[:, None].expand(32, 32), zero])
    assert torch.allclose(physics.mass_terms(alone, domain), physics.mass_residual(alone, domain))
    both = torch.stack([alone[0], -torch.sin(x)[None, :].expand(32, 32)])
    slopes = torch.cos(x).abs()
    assert torch.allclose(physics.mass_terms(both, domain), slopes[:, None] + slopes[None, :])
    assert bool((physics.mass_residual(both, domain) <= physics.mass_terms(both, domain)).all())


def test_momentum_terms_are_each_what_they_say():
    """Frames at rest in time: u = (sin y, 0) has no advection, ν u as diffusion; p = cos x."""
    domain = ot.Domain((32, 32), (2 * math.pi, 2 * math.pi), "periodic", ("u", "v"), 0.1)
    x = torch.arange(32, dtype=torch.float64) * 2 * math.pi / 32
    u = torch.stack([torch.sin(x)[None, :].expand(32, 32), torch.zeros(32, 32).double()])
    velocity = torch.stack([0.9 * u, u, 1.1 * u])
    pressure = torch.cos(x)[:, None].expand(3, 32, 32)
    found = physics.momentum_terms(velocity, pressure, domain, viscosity=0.3)
    speed = torch.sin(x).abs()
    expected = (1.0 + 0.3) * speed[None, :] + speed[:, None]
    assert torch.allclose(found[0], expected)
    lifted = physics.momentum_terms(
        velocity, pressure, domain, viscosity=0.3,
        force=physics.gradient(pressure, domain),
    )  # fmt: skip
    assert torch.allclose(lifted[0], (1.3 * speed)[None, :].expand(32, 32))
