"""The equations against their tensor form, growth rates, steady states and conservation.

The tabulated closure is compared with quadrature of the density that it stands for.
"""

import math
from itertools import pairwise

import pytest
import torch

import overtone as ot
from overtone.ops.spectral import wavenumbers
from overtone.solvers import ActiveMatter
from overtone.solvers.active_matter import _Stokes, fourth_moment, shape_function
from overtone.solvers.base import cell_centres

SMALL = (32, 40)


def isotropic(system, num=1):
    one = torch.ones(num, *system.shape, dtype=torch.float64)
    return one, 0 * one


def plane_wave(system, modes):
    x, y = (cell_centres(n, 2 * math.pi) for n in system.shape)
    return torch.cos(modes[0] * x[:, None] + modes[1] * y[None, :])[None]


def tensors(c, q):
    """D and, by quadrature of the closure's density, S; each with trailing indices."""
    order = q.abs() / c
    low, high = torch.zeros_like(order), torch.full_like(order, 200.0)
    theta = torch.arange(720, dtype=torch.float64) * 2 * math.pi / 720
    for _ in range(60):
        kappa = (low + high) / 2
        psi = torch.exp(kappa[..., None] * (torch.cos(2 * theta) - 1))
        above = (torch.cos(2 * theta) * psi).sum(-1) / psi.sum(-1) > order
        low, high = torch.where(above, low, kappa), torch.where(above, kappa, high)
    psi = torch.exp(kappa[..., None] * (torch.cos(2 * theta - q.angle()[..., None]) - 1))
    psi = c[..., None] * psi / psi.sum(-1, keepdim=True)
    p = torch.stack([theta.cos(), theta.sin()])
    return (
        torch.einsum("...t,it,jt->...ij", psi, p, p),
        torch.einsum("...t,it,jt,kt,lt->...ijkl", psi, p, p, p, p),
    )


def random_moments(num):
    random = torch.Generator().manual_seed(5)
    c, order, angle = torch.rand(3, num, generator=random, dtype=torch.float64)
    return 0.5 + c, (0.5 + c) * 0.95 * order * torch.exp(2j * math.pi * angle)


def test_turning_equals_the_tensor_equation_of_the_kinetic_model():
    system = ActiveMatter(zeta=2.3)
    c, q = random_moments(20)
    random = torch.Generator().manual_seed(6)
    gradient = torch.randn(20, 2, 2, generator=random, dtype=torch.float64)  # [i, j] = ∂u_i/∂x_j
    gradient[:, 1, 1] = -gradient[:, 0, 0]
    strain = (gradient + gradient.mT) / 2
    d, s = tensors(c, q)
    expected = gradient @ d + d @ gradient.mT - 2 * torch.einsum("nijkl,nkl->nij", s, strain)
    expected += 4 * 2.3 * (d @ d - torch.einsum("nijkl,nkl->nij", s, d))
    e = torch.complex(strain[:, 0, 0], strain[:, 0, 1])
    turned = system.turning(c, q, e, gradient[:, 1, 0] - gradient[:, 0, 1])
    assert torch.allclose(turned.real / 2, expected[:, 0, 0], atol=1e-8)
    assert torch.allclose(turned.real / 2, -expected[:, 1, 1], atol=1e-8)  # no change of the trace
    assert torch.allclose(turned.imag / 2, expected[:, 0, 1], atol=1e-8)


def test_the_flow_balances_the_tensor_stress():
    system = ActiveMatter(shape=SMALL, alpha=-3.0, beta=0.8, zeta=2.0)
    c = 1 + 0.1 * plane_wave(system, (1, 1))
    q = 0.5 * plane_wave(system, (1, 2)) + 0.4j * plane_wave(system, (2, -1))
    frame = system.frame(system.state(c, q))[0]
    d, s = tensors(c[0], q[0])
    strain = frame[7:].reshape(2, 2, *SMALL).permute(2, 3, 0, 1)
    contract = "xyijkl,xykl->xyij"
    stress = -3.0 * d + 0.8 * torch.einsum(contract, s, strain)
    stress -= 2 * 2.0 * 0.8 * (d @ d - torch.einsum(contract, s, d))
    kx, ky = wavenumbers(SMALL, system.extent)
    sigma = torch.fft.rfftn(stress.permute(2, 3, 0, 1), dim=(-2, -1))
    u, v = torch.fft.rfftn(frame[1:3], dim=(-2, -1))
    force = [1j * (kx * sigma[i, 0] + ky * sigma[i, 1]) - (kx**2 + ky**2) * w
             for i, w in enumerate((u, v))]  # fmt: skip
    # What is left of the force is a pressure gradient: it has no curl.
    residual = (kx * force[1] - ky * force[0]).abs()
    scale = ((kx**2 + ky**2) * (kx * v - ky * u)).abs().max()
    low = (kx.abs() < 5) & (ky.abs() < 5)
    assert residual[low].max() < 1e-6 * scale


@pytest.mark.parametrize("modes", [(1, 0), (2, 1), (0, 3)])
@pytest.mark.parametrize(("alpha", "zeta"), [(-1.0, 1.0), (-5.0, 3.0), (2.0, 0.3)])
def test_small_waves_grow_at_the_rate_of_the_linear_equations(modes, alpha, zeta):
    system = ActiveMatter(shape=SMALL, alpha=alpha, zeta=zeta, dt=0.1, courant=0.05)
    c, _ = isotropic(system)
    kx, ky = (2 * math.pi * m / 10 for m in modes)
    k2 = kx**2 + ky**2
    stirring = complex(2 * kx * ky, ky**2 - kx**2) / k2  # the direction that moves the fluid
    wave = plane_wave(system, modes)
    # c = 1, r = 0:  (1 + β/8) e = -(α/4 - ζβ/8) q  along that direction, and e = 0 across it.
    still = zeta - 4 * 0.05 - 0.05 * k2
    moving = still + (0.8 * zeta - 2 * alpha) / (8 + 0.8)
    for direction, rate in ((stirring, moving), (1j * stirring, still)):
        state = system.state(c, 1e-5 * direction * wave)
        before, after = (system._moments(s)[1] for s in (state, system.advance(state)))
        assert torch.allclose(after, math.exp(rate * 0.1) * before, atol=1e-5 * 1e-6)


def test_without_activity_the_isotropic_state_is_steady():
    system = ActiveMatter(shape=SMALL, alpha=0.0, zeta=0.0)
    c, q = isotropic(system)
    frame = system.frame(system.advance(system.state(c, q + 0j)))[0]
    expected = torch.zeros(11, dtype=torch.float64)
    expected[[0, 3, 6]] = torch.tensor([1.0, 0.5, 0.5], dtype=torch.float64)
    assert torch.allclose(frame, expected[:, None, None].expand_as(frame), atol=1e-14)


def test_uniform_alignment_ends_where_turning_and_diffusion_balance():
    system = ActiveMatter(shape=(25, 25), zeta=1.0, dt=30.0)
    c, q = isotropic(system)
    c, q = system._moments(system.advance(system.state(c, q + 0.1 + 0.05j)))
    balance = c * q - fourth_moment(c, q) * q.conj() - 4 * 0.05 * q
    assert q.abs().mean() > 0.8
    assert balance.abs().max() < 1e-6


def test_concentration_is_carried_and_conserved_and_flow_is_incompressible():
    system = ActiveMatter(shape=(48, 48), alpha=-5.0, zeta=3.0)
    state = system.initial(2, seed=0)
    first = system.frame(state)
    for _ in range(12):
        state = system.advance(state)
    frame = system.frame(state)
    assert frame[:, 1:3].abs().max() > 0.5  # it does flow
    means = frame[:, 0].mean((-2, -1)), first[:, 0].mean((-2, -1))
    assert torch.allclose(*means, atol=1e-14)
    assert frame[:, 0].std() < first[:, 0].std()
    kx, ky = wavenumbers(system.shape, system.extent)
    u, v = (torch.fft.rfftn(frame[:, i], dim=(-2, -1)) for i in (1, 2))
    assert (kx * u + ky * v).abs().max() < 1e-12 * (ky * u).abs().max()
    e_xx = torch.fft.irfftn(1j * kx * u, s=system.shape)
    e_xy = torch.fft.irfftn(0.5j * (ky * u + kx * v), s=system.shape)
    assert torch.allclose(frame[:, 7], e_xx, atol=1e-12)
    assert torch.allclose(frame[:, 8], e_xy, atol=1e-12)


def test_channels_are_the_wells_and_tensors_are_symmetric():
    system = ActiveMatter(shape=SMALL)
    frame = system.frame(system.initial(3, seed=1))
    assert frame.shape == (3, 11, *SMALL)
    d, e = ([f"{n}_{i}{j}" for i in "xy" for j in "xy"] for n in "DE")
    assert list(system.channels) == ["concentration", "velocity_x", "velocity_y", *d, *e]
    assert torch.allclose(frame[:, 3] + frame[:, 6], frame[:, 0], atol=1e-15)  # trace(D) = c
    assert torch.equal(frame[:, 4], frame[:, 5])
    assert torch.equal(frame[:, 8], frame[:, 9])
    assert torch.equal(frame[:, 7], -frame[:, 10])  # trace(E) = 0
    assert frame[:, 4].abs().max() > 0


def test_time_stepping_is_of_fourth_order():
    def final(courant):
        system = ActiveMatter(shape=(25, 25), alpha=-2.0, zeta=2.0, dt=1.0, courant=courant)
        c, _ = isotropic(system)
        q = 0.3 * plane_wave(system, (1, 0)) + 0.3j * plane_wave(system, (1, 1))
        return system.frame(system.advance(system.state(c, q)))

    reference = final(0.05)
    errors = [(final(c) - reference).abs().max().item() for c in (0.8, 0.4, 0.2)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(3.3 < order < 5.0 for order in orders)


def test_the_flow_does_not_depend_on_the_first_guess():
    system = ActiveMatter(shape=SMALL, alpha=-5.0, zeta=3.0)
    flow = _Stokes(system, system.space(torch.zeros(1)))
    c, q = isotropic(system)
    q = 0.6 * plane_wave(system, (2, 1)) + 0.5j * plane_wave(system, (1, 3))
    cold = flow.solve(c, q)
    flow.solve(c, 1j * q)
    assert torch.allclose(flow.solve(c, q), cold, atol=1e-7 * cold.abs().max().item())


def test_seeds_repeat_and_differ():
    system = ActiveMatter(shape=SMALL)
    a, b, c = ([*system.trajectory(2, 3, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-3)


def test_constants_follow_the_state_to_its_device():
    # With beta = 0 the flow needs no iteration, whose end depends on values.
    system = ActiveMatter(shape=SMALL, beta=0.0)
    state = system.initial(1, seed=0).to("meta")
    assert system.frame(state).is_meta
    assert system._tendency(state, _Stokes(system, system.space(state))).is_meta


def test_a_flow_that_does_not_settle_is_an_error():
    system = ActiveMatter(shape=SMALL, beta=1e4, zeta=3.0)
    c = 1 + 0.8 * plane_wave(system, (1, 0))
    q = 0.98 * c * torch.exp(1j * plane_wave(system, (1, 2)))
    with pytest.raises(ot.OvertoneError, match="smaller beta"):
        system.frame(system.state(c, q))


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        ActiveMatter(beta=-0.1)
    with pytest.raises(ot.OvertoneError, match="use at least 25"):
        ActiveMatter(shape=(16, 64))


def moments(kappa, angle, c):
    """c, q and r of ψ ∝ exp(κ cos(2θ - angle)) by the trapezoidal rule, which is exact here."""
    theta = torch.arange(4000, dtype=torch.float64) * 2 * math.pi / 4000
    psi = torch.exp(kappa * (torch.cos(2 * theta - angle) - 1))
    psi = c * psi / psi.sum()
    turn = torch.exp(2j * theta)
    return c, (turn * psi).sum(), (turn**2 * psi).sum()


@pytest.mark.parametrize("kappa", [1e-3, 0.03, 0.4, 1.0, 3.0, 10.0, 60.0, 700.0])
def test_fourth_moment_is_that_of_the_density(kappa):
    for angle, concentration in ((0.0, 1.0), (1.1, 0.7), (-2.5, 3.0)):
        c, q, r = moments(kappa, angle, concentration)
        closed = fourth_moment(torch.tensor([c], dtype=torch.float64), q[None])
        assert (closed - r).abs().max() < 1e-9 * c


def test_limits():
    ends = shape_function(torch.tensor([0.0, 1.0, 1.3], dtype=torch.float64))
    assert torch.allclose(ends, torch.tensor([0.5, 1.0, 1.0]).double(), atol=1e-12)
    inside = shape_function(torch.linspace(0, 1, 1001, dtype=torch.float64))
    assert bool((inside.diff() > 0).all())


def test_isotropic_rods_have_no_fourth_moment():
    zero = torch.zeros(3, dtype=torch.complex128)
    assert torch.equal(fourth_moment(torch.ones(3, dtype=torch.float64), zero), zero)
