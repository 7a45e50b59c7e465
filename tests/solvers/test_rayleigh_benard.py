"""The solver against linear stability theory, the equations themselves and the heat flux."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.polynomial import chebyshev as cheb

import overtone as ot
from overtone.solvers import RayleighBenard
from overtone.solvers.channel import chebyshev_nodes, differentiation_matrix, quadrature_weights

CRITICAL = 1707.76
ROLL = 2  # pairs of rolls in the box: k = π, next to the critical wavenumber 3.117


def roll(system, amplitude):
    """A state whose only wave is that of two pairs of rolls."""
    state = torch.zeros_like(system.initial(1, seed=0))
    state[:, 1, ROLL, 0] = amplitude
    return state


def growth_rate(rayleigh, prandtl, k, degree=30):
    """Largest growth rate of linear stability theory, by Chebyshev tau in numpy.

    Unknowns are the series of v and b: σ(D² - k²)v = ν(D² - k²)²v - k²b, σb = κ(D² - k²)b + v.
    """
    nu, kappa = (rayleigh / prandtl) ** -0.5, (rayleigh * prandtl) ** -0.5
    n, one = degree + 1, np.eye(degree + 1)
    d2 = np.pad(cheb.chebder(one, 2, scl=2), ((0, 2), (0, 0)))
    laplace = d2 - k**2 * one
    left = np.block([[nu * laplace @ laplace, -(k**2) * one], [one, kappa * laplace]])
    right = np.block([[laplace, 0 * one], [0 * one, one]])
    ends = cheb.chebvander([-1, 1], degree)
    slopes = cheb.chebval([-1, 1], np.pad(cheb.chebder(one), ((0, 1), (0, 0)))).T
    for rows, condition in ((slice(n - 4, n - 2), ends), (slice(n - 2, n), slopes)):
        left[rows], right[rows] = np.hstack([condition, 0 * condition]), 0
    left[2 * n - 2 :], right[2 * n - 2 :] = np.hstack([0 * ends, ends]), 0
    inverse = np.linalg.eigvals(np.linalg.solve(left, right))
    physical = inverse[np.abs(inverse) > 0.1]  # the tau rows add modes at zero
    return float((1 / physical).real.max())


def measured_growth(system, frames):
    state = roll(system, 1e-8)
    for _ in range(frames):
        state = system.advance(state)
    later = system.advance(state)
    return math.log((later[0, 1, ROLL, 0] / state[0, 1, ROLL, 0]).abs().item()) / system.dt


def waves(shape, rayleigh, frames):
    """A system, and a smooth flow of three waves in it after some frames."""
    system = RayleighBenard(shape=shape, rayleigh=rayleigh)
    state = torch.zeros_like(system.initial(1, seed=0))
    state[:, 1, 1:4, 0] = torch.tensor([0.03 + 0.02j, 0.1 + 0.0j, 0.05j])
    for _ in range(frames):
        state = system.advance(state)
    return system, state


@pytest.fixture(scope="module")
def developed():
    """A moving flow that the grid resolves well."""
    return waves((96, 40), rayleigh=5e4, frames=40)


@pytest.fixture(scope="module")
def steady():
    """Steady rolls at Ra = 1e4, Pr = 0.71."""
    system = RayleighBenard(shape=(32, 20), rayleigh=1e4, prandtl=0.71, dt=1.0)
    state = roll(system, 0.1)
    for _ in range(50):
        state = system.advance(state)
    return system, state


def profiles(system, state):
    """Fields at the Chebyshev nodes, in float64, with the matrices to differentiate them."""
    nodes = chebyshev_nodes(system.shape[1])
    n = system.shape[0]
    k = 2 * math.pi * torch.fft.rfftfreq(n, d=4.0 / n, dtype=torch.float64)

    def along(f):
        return torch.fft.irfft(1j * k[:, None] * torch.fft.rfft(f, dim=-2), n=n, dim=-2)

    def across(f):
        return f @ differentiation_matrix(system.shape[1]).T

    return system.sample(state, nodes), along, across


def test_conduction_is_steady_and_hydrostatic():
    system = RayleighBenard(shape=(16, 16), rayleigh=1e6)
    state = torch.zeros_like(system.initial(2, seed=0))
    assert torch.equal(system.advance(state), state)
    b, p, u, v = system.frame(state).unbind(dim=1)
    y = (torch.arange(16, dtype=torch.float64) + 0.5) / 16
    assert torch.allclose(b, (1 - y).expand_as(b), atol=1e-14)
    assert torch.allclose(p, (y - y**2 / 2 - 1 / 3).expand_as(p), atol=1e-13)
    assert u.abs().max() == v.abs().max() == 0


def test_perturbations_decay_below_the_critical_rayleigh_number():
    system = RayleighBenard(shape=(12, 10), rayleigh=1000.0, dt=5.0)
    first = system.initial(3, seed=0)
    state = first
    for _ in range(8):
        state = system.advance(state)
    assert state.abs().max() < 0.05 * first.abs().max()


@pytest.mark.parametrize(("rayleigh", "prandtl"), [(5000.0, 1.0), (5000.0, 7.0), (1e5, 0.3)])
def test_growth_rate_is_that_of_linear_stability_theory(rayleigh, prandtl):
    system = RayleighBenard(shape=(8, 24), rayleigh=rayleigh, prandtl=prandtl)
    expected = growth_rate(rayleigh, prandtl, k=math.pi)
    assert measured_growth(system, frames=50) == pytest.approx(expected, rel=1e-5)


def test_critical_rayleigh_number_is_bracketed():
    assert growth_rate(CRITICAL, 1.0, k=3.117) == pytest.approx(0, abs=1e-6)
    for factor, sign in ((0.995, -1), (1.005, 1)):
        system = RayleighBenard(shape=(8, 16), rayleigh=factor * CRITICAL, dt=1.0)
        assert sign * measured_growth(system, frames=15) > 0


def test_mean_flow_diffuses_without_a_pressure_gradient():
    system = RayleighBenard(shape=(8, 20), rayleigh=1e4)
    state = torch.zeros_like(system.initial(1, seed=0))
    state[:, 0, 0, 0] = 1.0
    start, end = system.frame(state), system.frame(system.advance(state))
    y = (torch.arange(20, dtype=torch.float64) + 0.5) / 20
    profile = math.sqrt(2) * torch.sin(math.pi * y)
    assert torch.allclose(start[0, 2].abs(), profile.expand(8, -1), atol=1e-12)
    decay = math.exp(-system.viscosity * math.pi**2 * system.dt)
    assert torch.allclose(end[0, 2], decay * start[0, 2], atol=1e-12)


def test_boundary_values_and_divergence_hold_to_round_off(developed):
    fields, along, across = profiles(*developed)
    b, _, u, v = fields.unbind(dim=1)
    assert u.abs().max() > 0.2
    for field, floor in ((b, 1.0), (u, 0.0), (v, 0.0)):
        assert (field[..., 0] - floor).abs().max() < 1e-14
        assert field[..., -1].abs().max() < 1e-14
    assert (along(u) + across(v)).abs().max() < 1e-11 * across(u).abs().max()


def test_fields_satisfy_the_equations(developed):
    """Momentum with its pressure, and buoyancy, with time differences of fourth order."""
    system, state = developed
    short = replace(system, dt=0.02)
    states = [state]
    for _ in range(4):
        states.append(short.advance(states[-1]))
    frames = [profiles(short, s)[0] for s in states]
    change = (frames[0] - 8 * frames[1] + 8 * frames[3] - frames[4]) / (12 * short.dt)
    fields, along, across = profiles(short, states[2])
    b, p, u, v = fields.unbind(dim=1)
    for channel, diffusion, force in (
        (0, short.diffusivity, 0),
        (2, short.viscosity, -along(p)),
        (3, short.viscosity, b - across(p)),
    ):
        f = fields[:, channel]
        carried = u * along(f) + v * across(f)
        spread = diffusion * (along(along(f)) + across(across(f)))
        residual = change[:, channel] + carried - spread - force
        assert carried.abs().max() > 0.3
        assert residual.abs().max() < 1e-4
    assert (p.mean(dim=-2) @ quadrature_weights(system.shape[1])).abs().max() < 1e-11


def test_time_stepping_is_of_fourth_order(developed):
    system, state = developed

    def final(courant):
        frame = system.frame(replace(system, courant=courant).advance(state))
        return frame[:, (0, 2, 3)]

    reference = final(0.03)
    errors = [(final(courant) - reference).abs().max().item() for courant in (0.4, 0.1)]
    assert 3.6 < math.log2(errors[0] / errors[1]) / 2 < 4.4


def test_heat_flux_of_steady_rolls(steady):
    """Four definitions of the Nusselt number agree, and with its value on finer grids."""
    system, state = steady
    fields, along, across = profiles(system, state)
    b, _, u, v = fields.unbind(dim=1)
    weights = quadrature_weights(system.shape[1])

    def mean(f):
        return (f.mean(dim=-2) @ weights).item()

    kappa, nu = system.diffusivity, system.viscosity
    gradients = sum(g(f).square() for f in (u, v) for g in (along, across))
    nusselt = [
        1 + mean(v * b) / kappa,
        -across(b)[..., 0].mean().item(),
        -across(b)[..., -1].mean().item(),
        1 + nu * mean(gradients) / kappa,
    ]
    assert nusselt == pytest.approx([2.65513] * 4, rel=3e-4)


@pytest.mark.slow
def test_heat_flux_of_turbulent_convection_agrees_at_the_walls_and_inside():
    system = RayleighBenard(shape=(96, 32), rayleigh=1e6)
    state = 50 * system.initial(2, seed=1)
    inside, walls = [], []
    for step in range(480):
        state = system.advance(state)
        if step >= 160:
            fields, _, across = profiles(system, state)
            b, _, _, v = fields.unbind(dim=1)
            flux = (v * b).mean(dim=(0, -2)) @ quadrature_weights(system.shape[1])
            inside.append(1 + flux.item() / system.diffusivity)
            walls.append(-across(b)[..., [0, -1]].mean().item())
    assert 6 < np.mean(walls) < 11
    assert np.mean(inside) == pytest.approx(np.mean(walls), rel=0.04)


def test_refinement_converges():
    def final(shape):
        system, state = waves(shape, rayleigh=3e4, frames=40)
        fields = system.sample(state, torch.linspace(0, 1, 9, dtype=torch.float64))
        return fields[..., :: shape[0] // 16, :]

    coarse, middle, fine = final((32, 12)), final((48, 18)), final((64, 28))
    errors = [(f - fine).abs().amax().item() for f in (coarse, middle)]
    assert errors[0] < 0.05
    assert errors[1] < 0.1 * errors[0]


def test_seeds_repeat_and_differ():
    system = RayleighBenard(shape=(16, 16))
    a, b, c = ([*system.trajectory(2, 3, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-5)
    assert not torch.allclose(a[0], a[1], atol=1e-5)
    assert a.shape == (2, 4, 16, 16)


def test_a_grid_that_is_too_coarse_is_reported():
    system = RayleighBenard(shape=(16, 8), rayleigh=1e10)
    with pytest.raises(ot.OvertoneError, match="16 x 8 cells do not resolve rayleigh = 1e"):
        list(system.evolve(100 * system.initial(1, seed=0), 200))


def test_layout_is_that_of_the_well():
    system = RayleighBenard()
    assert system.channels == ("buoyancy", "pressure", "velocity_x", "velocity_y")
    assert system.domain.extent == (4.0, 1.0)
    assert system.domain.periodic == (True, False)
    assert system.domain.kinds == (ot.Boundary.WALL,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rayleigh": -1.0}, "positive numbers"),
        ({"prandtl": 0.0}, "positive numbers"),
        ({"dt": math.nan}, "positive numbers"),
        ({"shape": (64, 4)}, r"shape is \(64, 4\); expected at least 4 x 8 cells"),
        ({"shape": (64,)}, "at least 4 x 8"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ot.OvertoneError, match=message):
        RayleighBenard(**options)
