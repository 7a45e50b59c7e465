"""The solver against exact solutions, its order in time, and what the equations conserve."""

import math

import pytest
import torch

import overtone as ot
from overtone.ops.spectral import wavenumbers
from overtone.solvers import ShearFlow


def mesh(shape):
    x = (torch.arange(shape[0], dtype=torch.float64) + 0.5) / shape[0]
    z = (torch.arange(shape[1], dtype=torch.float64) + 0.5) / shape[1] * 2 - 1
    return torch.meshgrid(x, z, indexing="ij")


def test_taylor_green_vortices_decay_at_the_exact_rate():
    system = ShearFlow(shape=(16, 32), reynolds=100.0, dt=0.5)
    x, z = mesh(system.shape)
    k = 2 * math.pi
    u, w = torch.sin(k * x) * torch.cos(k * z), -torch.cos(k * x) * torch.sin(k * z)
    *_, frame = system.evolve(system.state(u[None], w[None], torch.zeros_like(u)[None]), steps=4)
    decay = math.exp(-2 * k**2 / 100.0 * 1.5)
    assert torch.allclose(frame[0, 2], (decay * u).float(), atol=1e-6)
    assert torch.allclose(frame[0, 3], (decay * w).float(), atol=1e-6)
    pressure = decay**2 * (torch.cos(2 * k * x) + torch.cos(2 * k * z)) / 4
    assert torch.allclose(frame[0, 1], pressure.float(), atol=1e-6)


def test_tracer_is_carried_by_the_mean_flow_and_diffuses_exactly():
    system = ShearFlow(shape=(32, 16), reynolds=50.0, schmidt=2.0, dt=0.25)
    x, _ = mesh(system.shape)
    one = torch.ones(1, *system.shape, dtype=torch.float64)
    tracer = torch.sin(2 * math.pi * x)[None]
    *_, frame = system.evolve(system.state(0.3 * one, 0 * one, tracer), steps=5)
    decay = math.exp(-((2 * math.pi) ** 2) / (50.0 * 2.0) * 1.0)
    assert torch.allclose(
        frame[0, 0], (decay * torch.sin(2 * math.pi * (x - 0.3))).float(), atol=1e-5
    )
    assert torch.allclose(frame[0, 2], 0.3 * one[0].float(), atol=1e-6)


def test_time_stepping_is_of_fourth_order():
    def final(courant):
        system = ShearFlow(shape=(32, 64), reynolds=1000.0, dt=1.0, courant=courant)
        *_, frame = system.trajectory(1, 2, seed=3)
        return frame[:, (0, 2, 3)].double()

    # Frames are float32, so only coarse steps have a measurable error.
    reference = final(0.05)
    errors = [(final(c) - reference).abs().max().item() for c in (1.6, 0.8)]
    assert 3.2 < math.log2(errors[0] / errors[1]) < 5.5


def test_divergence_is_at_round_off_and_momentum_is_conserved():
    system = ShearFlow(shape=(32, 64), reynolds=2000.0)
    first, *_, last = system.trajectory(2, 20, seed=1)
    kx, kz = wavenumbers(system.shape, system.extent)
    u, w = (torch.fft.rfftn(last[:, c].double(), dim=(-2, -1)) for c in (2, 3))
    divergence = torch.fft.irfftn(1j * (kx * u + kz * w), s=system.shape)
    gradient = torch.fft.irfftn(1j * kz * u, s=system.shape)
    assert divergence.abs().max() < 1e-5 * gradient.abs().max()
    assert torch.allclose(first.mean((-2, -1)), last.mean((-2, -1)), atol=1e-6)
    assert last[:, 2:].square().mean() < first[:, 2:].square().mean()  # viscosity takes energy


def test_seeds_repeat_and_differ():
    system = ShearFlow(shape=(16, 32))
    a, b, c = ([*system.trajectory(2, 3, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-3)


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        ShearFlow(reynolds=-1.0)
