"""The blast: its energy, Sedov's law without cooling, cooling's effect, random media."""

import math

import pytest
import torch

import overtone as ot
from overtone.solvers.base import cell_centres
from overtone.solvers.interstellar import (
    GAS_CONSTANT,
    HYDROGEN,
    SUPERNOVA_ENERGY,
    random_field,
)
from overtone.solvers.supernova_explosion import SupernovaExplosion


def small(**parameters):
    return SupernovaExplosion(**({"shape": (12, 12, 12), "dt": 0.005} | parameters))


def total_energy(system, state):
    return state[:, -1].sum((1, 2, 3)) * math.prod(system.domain.spacing)


def test_layout_and_equation_of_state():
    system = small()
    assert system.channels[:3] == ("density", "pressure", "temperature")
    frame = next(system.trajectory(2, 1, seed=0)).double()
    assert frame.shape == (2, 6, 12, 12, 12)
    assert torch.allclose(frame[:, 1], frame[:, 0] * frame[:, 2] * GAS_CONSTANT, rtol=1e-5)
    assert (frame[:, 3:] == 0).all()
    assert frame[:, 2].min() == pytest.approx(100.0, rel=1e-3)
    assert frame[:, 2].max() > 1e7
    # 1 atom/cm³ at 1 K has a pressure of k: 1.38e-16 erg/cm³ in solar masses, parsec and Myr.
    erg_per_cc = 1.98841e33 * (3.0857e18 / 3.15576e13) ** 2 / 3.0857e18**3
    assert HYDROGEN * GAS_CONSTANT * erg_per_cc == pytest.approx(1.380649e-16, rel=1e-3)
    assert SUPERNOVA_ENERGY * erg_per_cc * 3.0857e18**3 == pytest.approx(1e51, rel=1e-3)


def test_the_energy_is_that_of_a_supernova_and_is_kept_until_the_wave_leaves():
    system = small(Z=0.0, dt=0.002)
    state = system.initial(2, seed=3)
    thermal = state[:, 0].sum((1, 2, 3)) * math.prod(system.domain.spacing)
    thermal = 1.5 * GAS_CONSTANT * system.T0 * thermal
    assert torch.allclose(
        total_energy(system, state) - thermal, torch.tensor(SUPERNOVA_ENERGY).double(), rtol=1e-9
    )
    before = total_energy(system, state)
    assert torch.allclose(total_energy(system, system.advance(state)), before, rtol=1e-3)


def test_metals_radiate_energy_away():
    rich, none = small(Z=1.0), small(Z=0.0)
    start = rich.initial(1, seed=3)
    assert total_energy(rich, rich.advance(start)) < 0.98 * total_energy(none, none.advance(start))


def test_a_blast_in_uniform_gas_follows_sedov():
    system = SupernovaExplosion(shape=(24, 24, 24), Z=0.0, dt=0.03, rho0=4.45)
    x, y, z = torch.meshgrid(*[cell_centres(24, 60.0, start=-30.0)] * 3, indexing="ij")
    r = (x**2 + y**2 + z**2).sqrt()
    density = torch.full((1, 24, 24, 24), system.mean_density, dtype=torch.float64)
    rest = torch.zeros(1, 3, 24, 24, 24, dtype=torch.float64)
    state = system.state(density, rest, torch.full_like(density, system.T0))
    profile = torch.exp(-(r**2) / 9.0)
    state[:, -1] += SUPERNOVA_ENERGY * profile / (profile.sum() * 2.5**3)
    frame = system.frame(system.advance(state))
    # Density peaks just inside the shock.
    radius = r.flatten()[frame[0, 0].flatten().argmax()].item()
    sedov = 1.152 * (SUPERNOVA_ENERGY * system.dt**2 / system.mean_density) ** 0.2
    assert radius == pytest.approx(sedov, abs=2.5)  # a cell


def test_a_short_run_is_finite_and_positive():
    system = small(shape=(12, 10, 14))
    for frame in system.trajectory(2, 8, seed=5):
        assert (frame[:, :3] > 0).all()
        assert frame[:, 2].min() > 50
    assert frame[:, 3:].abs().max() > 50


def test_random_fields_have_their_variance_and_do_not_depend_on_the_grid():
    def field(n, num=200):
        return random_field(num, (n, n, n), torch.Generator().manual_seed(1), slope=3.0, waves=3)

    coarse = field(8)
    assert coarse.var().item() == pytest.approx(1.0, rel=0.1)
    assert coarse.mean().abs() < 0.02
    # Cell centres of a grid three times as fine include those of the coarse one.
    assert torch.allclose(field(24, 200)[:, 1::3, 1::3, 1::3], coarse, atol=1e-10)


def test_seeds_repeat_and_differ():
    a, b, c = ([*small().trajectory(2, 2, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, rtol=0.1)
    assert not torch.allclose(a[0], a[1], rtol=0.1)


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        small(rho0=-1.0)
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        small(T0=0.0)
    with pytest.raises(ot.OvertoneError, match="Z of at least 0"):
        small(Z=-1.0)
    with pytest.raises(ot.OvertoneError, match="3 axes"):
        small(shape=(8, 8))


@pytest.mark.slow
@pytest.mark.parametrize("rho0", [0.445, 44.5])
def test_the_extreme_densities_run_to_the_end(rho0):
    for frame in SupernovaExplosion(rho0=rho0, shape=(24, 24, 24)).trajectory(1, 59, seed=0):
        assert (frame[:, :3] > 0).all()
