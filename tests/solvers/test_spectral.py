"""Velocity, vorticity and pressure of flows that are known in closed form."""

import math

import torch

from overtone.ops.spectral import fourier_space
from overtone.solvers import ShearFlow
from overtone.solvers.spectral import advection, pressure, velocity_modes, vorticity

SHAPE, EXTENT = (24, 30), (1.0, 2.0)


def taylor_green():
    x = torch.arange(24, dtype=torch.float64)[:, None] / 24 * 2 * math.pi
    z = torch.arange(30, dtype=torch.float64)[None, :] / 30 * 4 * math.pi
    return x, z, torch.stack([x.sin() * z.cos(), -x.cos() * z.sin()])[None]


def test_velocity_and_vorticity_are_inverse_and_keep_the_mean_flow():
    space = fourier_space(SHAPE, EXTENT, torch.device("cpu"))
    x, z, flow = taylor_green()
    flow = flow + torch.tensor([0.7, -0.2], dtype=torch.float64)[:, None, None]
    omega = vorticity(space, flow)
    assert torch.allclose(space.grid(velocity_modes(space, omega)), flow, atol=1e-13)
    omega[..., 0, 0] = 0
    assert torch.allclose(space.grid(omega)[0], 4 * math.pi * x.sin() * z.sin(), atol=1e-12)


def test_vortices_of_equal_size_do_not_move_each_other_but_carry_a_tracer():
    space = fourier_space(SHAPE, EXTENT, torch.device("cpu"))
    x, z, flow = taylor_green()
    tracer = space.modes(x.cos().expand(SHAPE))[None]
    tendency = space.grid(advection(space, torch.stack([vorticity(space, flow), tracer], dim=1)))
    assert tendency[0, 0].abs().max() < 1e-11
    expected = x.sin() * z.cos() * 2 * math.pi * x.sin()  # -u ∂s/∂x
    assert torch.allclose(tendency[0, 1], expected, atol=1e-11)


def test_pressure_of_vortices():
    space = fourier_space(SHAPE, EXTENT, torch.device("cpu"))
    x, z, flow = taylor_green()
    expected = ((2 * x).cos() + (2 * z).cos()) / 4
    assert torch.allclose(pressure(space, flow)[0], expected, atol=1e-13)


def test_constants_follow_the_state_to_its_device():
    system = ShearFlow(shape=(16, 32))
    state = system.initial(1, seed=0).to("meta")
    assert system.frame(state).is_meta
    assert system.nonlinear(state).is_meta
