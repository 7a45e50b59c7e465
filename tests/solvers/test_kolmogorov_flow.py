"""The laminar state, the energy balance and what incompressible flow keeps."""

import math
from itertools import pairwise

import pytest
import torch

import overtone as ot
from overtone.ops.spectral import wavenumbers
from overtone.solvers import KolmogorovFlow
from overtone.solvers.base import cell_centres

TAU = 2 * math.pi


def coordinates(shape):
    x, y = (cell_centres(n, TAU) for n in shape)
    return torch.meshgrid(x, y, indexing="ij")


@pytest.mark.parametrize(("cells", "forcing"), [(24, 4), (60, 4), (25, 3)])
def test_the_laminar_flow_is_steady_with_the_right_amplitude(cells, forcing):
    system = KolmogorovFlow(shape=(16, cells), reynolds=30.0, drag=0.2, forcing=forcing, dt=2.0)
    _, y = coordinates(system.shape)
    u = torch.sin(forcing * y)[None] / (forcing**2 / 30.0 + 0.2)
    frame = system.frame(system.advance(system.state(u, 0 * u)))
    assert torch.allclose(frame[:, 2], u, atol=1e-12)
    assert frame[:, 3].abs().max() < 1e-12
    vorticity = -forcing * torch.cos(forcing * y) / (forcing**2 / 30.0 + 0.2)
    assert torch.allclose(frame[0, 0], vorticity, atol=1e-11)
    assert frame[:, 1].abs().max() < 1e-12


def test_rest_accelerates_towards_the_laminar_flow():
    system = KolmogorovFlow(shape=(16, 32), reynolds=10.0, drag=0.3, dt=1.0)
    _, y = coordinates(system.shape)
    rest = torch.zeros(1, *system.shape, dtype=torch.float64)
    u = system.frame(system.advance(system.state(rest, rest)))[0, 2]
    rate = 16 / 10.0 + 0.3
    assert torch.allclose(u, torch.sin(4 * y) * (1 - math.exp(-rate)) / rate, atol=1e-12)


def test_divergence_is_at_round_off_and_vorticity_is_the_curl():
    system = KolmogorovFlow(shape=(48, 60), reynolds=100.0)
    state = system.initial(2, seed=1)
    for _ in range(5):
        state = system.advance(state)
    frame = system.frame(state)
    kx, ky = wavenumbers(system.shape, system.extent)
    u, v = (torch.fft.rfftn(frame[:, c], dim=(-2, -1)) for c in (2, 3))
    divergence = torch.fft.irfftn(1j * (kx * u + ky * v), s=system.shape)
    curl = torch.fft.irfftn(1j * (kx * v - ky * u), s=system.shape)
    assert divergence.abs().max() < 1e-12 * curl.abs().max()
    assert torch.allclose(curl, frame[:, 0], atol=1e-11)


def test_energy_changes_by_what_force_viscosity_and_drag_do():
    system = KolmogorovFlow(shape=(48, 48), reynolds=50.0, drag=0.1, dt=0.02)
    state = system.initial(1, seed=4)
    for _ in range(5):
        state = system.advance(state)
    _, y = coordinates(system.shape)
    now = system.advance(state)
    after = system.advance(now)

    def energy(s):
        return system.frame(s)[:, 2:].square().sum(1).mean().item() / 2

    frame = system.frame(now)
    work = (torch.sin(4 * y) * frame[:, 2]).mean().item()
    viscous = frame[:, 0].square().mean().item() / 50.0
    drag = 2 * 0.1 * energy(now)
    change = (energy(after) - energy(state)) / 0.04
    assert change == pytest.approx(work - viscous - drag, rel=1e-3)


def test_the_mean_flow_decays_by_drag_alone():
    system = KolmogorovFlow(shape=(24, 24), drag=0.5, dt=1.0)
    state = system.initial(1, seed=0)
    state[..., 0, 0] = 24 * 24 * (0.3 + 0.2j)
    mean = system.frame(system.advance(state)).mean((-2, -1))[0]
    expected = torch.tensor([0.0, 0.0, 0.3, 0.2]).double() * math.exp(-0.5)
    assert torch.allclose(mean, expected, atol=1e-12)


def test_time_stepping_is_of_fourth_order():
    def final(courant):
        system = KolmogorovFlow(shape=(24, 24), reynolds=20.0, dt=2.0, courant=courant)
        return system.frame(system.advance(system.initial(1, seed=2)))[:, 2:]

    reference = final(0.05)
    errors = [(final(c) - reference).abs().max().item() for c in (0.8, 0.4, 0.2)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(3.4 < order < 4.8 for order in orders)


def test_a_turbulent_flow_stays_bounded_and_seeds_repeat():
    system = KolmogorovFlow(shape=(30, 30))
    a, b, c = ([*system.trajectory(2, 10, seed=s)][-1] for s in (1, 1, 2))
    assert a.shape == (2, 4, 30, 30)
    assert system.channels == ("vorticity", "pressure", "velocity_x", "velocity_y")
    assert a[:, 2:].abs().max() < 5
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-3)


def test_constants_follow_the_state_to_its_device():
    system = KolmogorovFlow(shape=(24, 24))
    state = system.initial(1, seed=0).to("meta")
    assert system.frame(state).is_meta
    assert system.nonlinear(state).is_meta


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        KolmogorovFlow(reynolds=-1.0)
    with pytest.raises(ot.OvertoneError, match="13 along y"):
        KolmogorovFlow(shape=(64, 12))
