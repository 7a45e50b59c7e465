"""Collapse: virial start, what gravity conserves, the free-fall time, cooling and its limit."""

import math

import pytest
import torch

import overtone as ot
from overtone.solvers.interstellar import GRAVITY
from overtone.solvers.turbulence_gravity_cooling import RADIUS, TurbulenceGravityCooling


def small(**parameters):
    return TurbulenceGravityCooling(**({"shape": (12, 12, 12), "dt": 0.3} | parameters))


def test_the_start_is_a_sphere_at_rest_as_a_whole_in_virial_balance():
    system = TurbulenceGravityCooling()
    frame = next(system.trajectory(2, 1, seed=0)).double()
    assert frame.shape == (2, 6, 32, 32, 32)
    mass = frame[:, :1] * math.prod(system.domain.spacing)
    sphere = 4 / 3 * math.pi * RADIUS**3 * system.mean_density
    assert mass.sum().item() / 2 == pytest.approx(sphere, rel=0.1)
    dense = frame[:, :1] > 0.5 * system.mean_density
    velocity = frame[:, 3:] * dense
    assert velocity.sum((2, 3, 4)).abs().max() < 0.05 * velocity.abs().sum((2, 3, 4)).min()
    square = velocity.square().sum((1, 2, 3, 4)) / dense.sum((1, 2, 3, 4))
    assert square.sqrt().tolist() == pytest.approx([system.virial_speed] * 2, rel=0.1)
    # Twice the kinetic energy is 3/5 G M²/R.
    assert system.virial_speed**2 == pytest.approx(0.6 * GRAVITY * sphere / RADIUS, rel=1e-6)
    assert torch.allclose(frame[:, 2], torch.tensor(100.0).double(), rtol=1e-5)


def test_gravity_changes_momentum_and_energy_by_a_kick_alone():
    system = small(Z=0.0)
    state = system.initial(2, seed=0)
    before = system.frame(state)
    after = system.frame(system._sources(state.clone(), 0.5))
    assert torch.allclose(after[:, :3], before[:, :3], rtol=1e-9)
    assert not torch.allclose(after[:, 3:], before[:, 3:], atol=0.05)
    momentum = (after[:, :1] * (after[:, 3:] - before[:, 3:])).sum((2, 3, 4))
    assert momentum.abs().max() < 1e-9


def test_cold_gas_at_rest_falls_in_as_free_fall_says():
    """r̈ = -4πGρr/3 at first, so v = -4πGρ r t/3 inside the sphere."""
    system = small(shape=(20, 20, 20), T0=10.0, Z=0.0, dt=0.5)
    state = system.initial(1, seed=0)
    primitive = system.gas.primitive(state)
    primitive[:, 1:4] = 0
    frame = system.frame(system.advance(system.gas.conserved(primitive)))
    x = (torch.arange(20, dtype=torch.float64) + 0.5) * 3.0 - 30.0
    exact = -4 * math.pi / 3 * GRAVITY * system.mean_density * x * 0.5
    middle = slice(6, 14)  # within 12 pc of the centre, away from the sphere's edge
    for axis in range(3):
        speed = frame[0, 3 + axis].movedim(axis, 0)[middle, 9, 9]
        assert torch.allclose(speed, exact[middle], rtol=0.06, atol=2e-3)


def test_gas_cools_but_not_below_where_the_grid_resolves_collapse():
    system = small()
    density = torch.tensor([1.0, 1000.0], dtype=torch.float64).reshape(2, 1, 1, 1)
    density = density.expand(2, 12, 12, 12)
    rest = torch.zeros(2, 3, 12, 12, 12, dtype=torch.float64)
    state = system.state(density, rest, torch.full_like(density, 5e4))
    cooled = system.frame(system.cool(state, 100.0))
    assert cooled[0, 2].max() < 1000
    sound = (5 / 3 * cooled[1, 1] / cooled[1, 0]).sqrt()
    jeans = sound * (math.pi / (GRAVITY * 1000.0)) ** 0.5
    assert torch.allclose(jeans, torch.tensor(20.0).double(), rtol=1e-6)  # four cells of 5 pc
    adiabatic = small(Z=0.0)
    start = adiabatic.initial(1, seed=0)
    assert torch.allclose(adiabatic.cool(start.clone(), 100.0), start, rtol=1e-12)


def test_a_short_run_collapses_and_stays_positive():
    frames = [*small().trajectory(2, 10, seed=1)]
    for frame in frames:
        assert (frame[:, :3] > 0).all()
    assert frames[-1][:, 0].amax() > 3 * frames[0][:, 0].amax()
    assert frames[-1][:, 2].median() < 60


def test_seeds_repeat_and_differ():
    a, b, c = ([*small().trajectory(2, 3, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, rtol=0.1)
    assert not torch.allclose(a[0], a[1], rtol=0.1)


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="at least 10 K"):
        small(T0=5.0)


@pytest.mark.slow
@pytest.mark.parametrize(("T0", "Z"), [(10.0, 1.0), (1000.0, 0.0)])
def test_the_extreme_parameters_run_to_the_end(T0, Z):
    for frame in TurbulenceGravityCooling(T0=T0, Z=Z).trajectory(1, 50, seed=0):
        assert (frame[:, :3] > 0).all()
