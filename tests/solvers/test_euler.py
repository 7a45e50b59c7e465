"""The finite-volume core against exact solutions, its order, conservation and symmetry."""

import math
from itertools import pairwise

import pytest
import torch

import overtone as ot
from overtone.domain import Boundary
from overtone.solvers.euler import Gas, hllc_flux, limited_faces
from overtone.solvers.steppers import ssp_rk2

OPEN, PERIODIC, WALL = ((kind, kind) for kind in (Boundary.OPEN, Boundary.PERIODIC, Boundary.WALL))
SOD = ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1))


def exact_riemann(left, right, speed, gamma):
    """Density, velocity and pressure at x/t = `speed` of the exact solution, `(3, n)`."""

    def across(p, side):
        """Velocity change over the wave between a side and the star region of pressure p."""
        density, _, pressure = side
        if p > pressure:
            a, b = 2 / (gamma + 1) / density, (gamma - 1) / (gamma + 1) * pressure
            return (p - pressure) * math.sqrt(a / (p + b))
        sound = math.sqrt(gamma * pressure / density)
        return 2 * sound / (gamma - 1) * ((p / pressure) ** ((gamma - 1) / 2 / gamma) - 1)

    low, high = 1e-12, 1e6
    for _ in range(200):  # bisection: the sum of the changes grows with p
        p = math.sqrt(low * high)
        if across(p, left) + across(p, right) + right[1] - left[1] > 0:
            high = p
        else:
            low = p
    star = (left[1] + right[1] + across(p, right) - across(p, left)) / 2
    result = torch.empty(3, len(speed), dtype=torch.float64)
    for i, s in enumerate(speed.tolist()):
        sign, side = (1, left) if s < star else (-1, right)
        result[:, i] = torch.tensor(sample_side(sign, side, s, p, star, gamma))
    return result


def sample_side(sign, side, s, p, star, gamma):
    """The solution on one side of the contact, mirrored so that the side is the left one."""
    density, velocity, pressure = side
    u, s, v = sign * velocity, sign * s, sign * star
    sound = math.sqrt(gamma * pressure / density)
    k = (gamma - 1) / (gamma + 1)
    if p > pressure:
        shock = u - sound * math.sqrt((p / pressure + k) / (1 + k))
        if s < shock:
            return side
        return density * (p / pressure + k) / (k * p / pressure + 1), star, p
    if s < u - sound:
        return side
    inner = density * (p / pressure) ** (1 / gamma)
    if s > v - math.sqrt(gamma * p / inner):
        return inner, star, p
    ratio = 2 / (gamma + 1) + k * (u - s) / sound  # inside the fan: c / c_side
    flow = sign * (s + ratio * sound)
    return (
        density * ratio ** (2 / (gamma - 1)),
        flow,
        pressure * ratio ** (2 * gamma / (gamma - 1)),
    )


def shock_tube(n, axis=0, ndim=1, gamma=1.4):
    """L1 errors of density, velocity and pressure at t = 0.2, Sod's tube along an axis."""
    shape = [n if a == axis else 3 for a in range(ndim)]
    # Cells are so long along the other axes that waves along these do not shorten the steps.
    spacing = tuple(1 / n if a == axis else 1e9 for a in range(ndim))
    gas = Gas(spacing, tuple(OPEN if a == axis else PERIODIC for a in range(ndim)), gamma)
    x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    primitive = torch.zeros(1, 2 + ndim, n, dtype=torch.float64)
    for row, value in ((0, 0), (1 + axis, 1), (-1, 2)):
        primitive[0, row] = torch.where(x < 0.5, SOD[0][value], SOD[1][value])
    view = [1, 2 + ndim, *(n if a == axis else 1 for a in range(ndim))]
    state = gas.conserved(primitive.reshape(view).expand(1, 2 + ndim, *shape))
    result = gas.primitive(gas.advance(state, 0.2))[0].movedim(1 + axis, 1)
    result = result.reshape(2 + ndim, n, -1)[:, :, 0]
    exact = exact_riemann(*SOD, (x - 0.5) / 0.2, gamma)
    return (result[[0, 1 + axis, -1]] - exact).abs().mean(1)


def random_primitive(*shape, seed=0):
    random = torch.Generator().manual_seed(seed)
    primitive = torch.randn(*shape, generator=random, dtype=torch.float64)
    primitive[:, 0] = 1 + 0.5 * torch.tanh(primitive[:, 0])
    primitive[:, -1] = 1 + 0.5 * torch.tanh(primitive[:, -1])
    return primitive


def test_the_exact_riemann_solver_of_these_tests_gives_the_known_star_state():
    middle = exact_riemann(*SOD, torch.tensor([0.5, 1.2], dtype=torch.float64), 1.4)
    assert torch.allclose(middle[:, 0], torch.tensor([0.42632, 0.92745, 0.30313]).double(), 1e-4)
    assert torch.allclose(middle[:, 1], torch.tensor([0.26557, 0.92745, 0.30313]).double(), 1e-4)


def test_shock_tube_converges_to_the_exact_solution():
    coarse, fine = shock_tube(100), shock_tube(200)
    assert (coarse < torch.tensor([0.007, 0.012, 0.006])).all()
    order = torch.log2(coarse / fine)
    assert (order > 0.75).all()  # first order at best where there are shocks


@pytest.mark.parametrize(("axis", "ndim"), [(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)])
def test_shock_tube_is_the_same_along_every_axis(axis, ndim):
    assert torch.allclose(shock_tube(64, axis, ndim), shock_tube(64), rtol=1e-6)


@pytest.mark.parametrize("ndim", [1, 2])
def test_a_carried_density_wave_is_second_order_in_space_and_time(ndim):
    def error(n):
        gas = Gas((1 / n,) * ndim, (PERIODIC,) * ndim, courant=0.5)
        edges = torch.arange(n + 1, dtype=torch.float64) / n
        # Cell means, not values at centres.
        mean = -torch.diff(torch.cos(2 * math.pi * edges)) * n / (2 * math.pi)
        if ndim == 2:
            x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
            wave = torch.sin(2 * math.pi * (x[:, None] + x[None, :]))
            mean = wave * (math.sin(math.pi / n) / (math.pi / n)) ** 2
        primitive = torch.ones(1, 2 + ndim, *(n,) * ndim, dtype=torch.float64)
        primitive[:, 0] += 0.2 * mean
        result = gas.advance(gas.conserved(primitive), 1.0 / ndim)  # one period
        return (result[0, 0] - primitive[0, 0]).abs().mean().item()

    errors = [error(n) for n in ((40, 80, 160) if ndim == 1 else (32, 64))]
    assert errors[-1] < 2e-3
    for coarse, fine in pairwise(errors):
        assert 1.6 < math.log2(coarse / fine) < 2.6


def test_a_stationary_contact_stays_exactly():
    gas = Gas((0.1, 0.1), (OPEN, PERIODIC))
    primitive = torch.ones(1, 4, 10, 6, dtype=torch.float64)
    primitive[:, 0, :5] = 100.0
    primitive[:, 1] = 0.0
    primitive[:, 2] = 0.3  # shear along the contact is kept as well
    primitive[:, 2, :5] = -0.7
    state = gas.conserved(primitive)
    assert torch.allclose(gas.advance(state, 1.0), state, rtol=1e-13, atol=1e-13)


def test_the_flux_of_equal_sides_is_the_exact_flux_and_supersonic_flow_is_upwind():
    side = torch.tensor([1.3, 0.4, -0.2, 0.7, 2.0], dtype=torch.float64)[:, None]
    energy = 2.0 / 0.4 + 1.3 * (0.16 + 0.04 + 0.49) / 2
    exact = [1.3 * 0.7, 1.3 * 0.7 * 0.4, -1.3 * 0.7 * 0.2, 1.3 * 0.49 + 2.0, 0.7 * (energy + 2.0)]
    flux = hllc_flux(side, side.clone(), axis=2, gamma=1.4)[:, 0]
    assert torch.allclose(flux, torch.tensor(exact).double(), rtol=1e-6)
    fast = side.clone()
    fast[3] = 9.0
    other = torch.rand(5, 1, dtype=torch.float64) + torch.tensor([1.0, 0, 0, 8, 1])[:, None]
    upwind = hllc_flux(fast, fast.clone(), axis=2, gamma=1.4)
    assert torch.allclose(hllc_flux(fast, other, axis=2, gamma=1.4), upwind, rtol=1e-12)


def textbook_hllc(left, right, gamma):
    """Flux along the first axis of one face, star state by star state."""

    def conserved(w):
        return [w[0], *(w[0] * v for v in w[1:-1]), energy(w)]

    def energy(w):
        return w[-1] / (gamma - 1) + w[0] * sum(v * v for v in w[1:-1]) / 2

    def flux(w):
        momentum = [w[0] * w[1] * v for v in w[1:-1]]
        return [w[0] * w[1], momentum[0] + w[-1], *momentum[1:], w[1] * (energy(w) + w[-1])]

    sounds = [math.sqrt(gamma * w[-1] / w[0]) for w in (left, right)]
    slow = min(left[1] - sounds[0], right[1] - sounds[1])
    fast = max(left[1] + sounds[0], right[1] + sounds[1])
    if slow >= 0 or fast <= 0:
        return flux(left if slow >= 0 else right)
    a, b = left[0] * (slow - left[1]), right[0] * (fast - right[1])
    star = (right[-1] - left[-1] + a * left[1] - b * right[1]) / (a - b)
    w, wave = (left, slow) if star >= 0 else (right, fast)
    density = w[0] * (wave - w[1]) / (wave - star)
    heat = energy(w) / w[0] + (star - w[1]) * (star + w[-1] / (w[0] * (wave - w[1])))
    middle = [density, density * star, *(density * v for v in w[2:-1]), density * heat]
    return [f + wave * (m - u) for f, m, u in zip(flux(w), middle, conserved(w), strict=True)]


def test_the_flux_is_that_of_the_textbook():
    sides = random_primitive(2, 5, 200, seed=7)
    sides[:, 1] *= 2  # supersonic both ways among them
    flux = hllc_flux(sides[0], sides[1], axis=0, gamma=1.4)
    pairs = zip(sides[0].T.tolist(), sides[1].T.tolist(), strict=True)
    exact = torch.tensor([textbook_hllc(*pair, 1.4) for pair in pairs], dtype=torch.float64).T
    assert torch.allclose(flux, exact, rtol=1e-11, atol=1e-12)


def test_reconstruction_is_exact_for_lines_and_stays_between_neighbours():
    line = torch.arange(9, dtype=torch.float64).reshape(1, 9, 1)
    left, right = limited_faces(line)
    assert torch.equal(left, right)
    assert torch.equal(left[0, :, 0], torch.arange(6).double() + 1.5)
    rough = torch.rand(3, 40, 7, dtype=torch.float64)
    left, right = limited_faces(rough)
    low, high = (f(rough[:, 1:-2], rough[:, 2:-1]) for f in (torch.minimum, torch.maximum))
    for face in (left, right):
        assert ((face >= low - 1e-12) & (face <= high + 1e-12)).all()


@pytest.mark.parametrize("shape", [(24,), (12, 10), (8, 6, 7)])
def test_mass_momentum_and_energy_are_conserved_on_periodic_boxes(shape):
    gas = Gas((0.1,) * len(shape), (PERIODIC,) * len(shape))
    state = gas.conserved(random_primitive(3, 2 + len(shape), *shape))
    dims = tuple(range(2, state.dim()))
    after = gas.advance(state, 0.1)
    assert not torch.allclose(after, state, atol=0.1)
    assert torch.allclose(after.sum(dims), state.sum(dims), rtol=1e-12, atol=1e-11)


def test_walls_keep_mass_and_energy_and_reflect():
    gas = Gas((0.1, 0.1), (WALL, WALL))
    state = gas.conserved(random_primitive(1, 4, 10, 12))
    after = gas.advance(state, 0.3)
    for row in (0, 3):
        assert torch.allclose(after[:, row].sum(), state[:, row].sum(), rtol=1e-12)
    # Mirror images on both sides of a wall do what one does next to it.
    mirrored = state.flip(2) * torch.tensor([1, -1, 1, 1]).reshape(1, 4, 1, 1)
    double = gas.advance(torch.cat([mirrored, state], dim=2), 0.3)
    assert torch.allclose(double[:, :, 10:], after, rtol=1e-9, atol=1e-9)


def test_uniform_flow_leaves_through_open_sides_unchanged():
    gas = Gas((0.1, 0.2), (OPEN, OPEN))
    one = torch.tensor([1.0, 2.0, -0.5, 0.7]).double().reshape(1, 4, 1, 1).expand(1, 4, 8, 9)
    state = gas.conserved(one)
    assert torch.allclose(gas.advance(state, 1.0), state, rtol=1e-12)


@pytest.mark.parametrize("boundary", [OPEN, PERIODIC, WALL])
def test_rotating_the_axes_rotates_the_result(boundary):
    gas = Gas((0.1,) * 3, (boundary,) * 3)
    primitive = random_primitive(1, 5, 6, 7, 8)
    rotated = primitive.permute(0, 1, 3, 4, 2)[:, [0, 2, 3, 1, 4]]
    result = gas.advance(gas.conserved(primitive), 0.05)
    turned = gas.advance(gas.conserved(rotated), 0.05)
    assert torch.allclose(
        turned, result.permute(0, 1, 3, 4, 2)[:, [0, 2, 3, 1, 4]], rtol=1e-10, atol=1e-10
    )


def test_trajectories_of_a_batch_do_not_touch_each_other():
    gas = Gas((0.1, 0.1), (PERIODIC, OPEN))
    state = gas.conserved(random_primitive(3, 4, 8, 9))
    together = gas.step(state, 0.01)
    for i in range(3):
        assert torch.allclose(gas.step(state[i : i + 1], 0.01)[0], together[i], rtol=1e-13)


def test_a_strong_blast_stays_positive():
    gas = Gas((1 / 16,) * 3, (OPEN,) * 3)
    primitive = torch.zeros(1, 5, 16, 16, 16, dtype=torch.float64)
    primitive[:, 0] = 1.0
    primitive[:, -1] = 1e-6
    primitive[:, -1, 7:9, 7:9, 7:9] = 1e4
    result = gas.primitive(gas.advance(gas.conserved(primitive), 0.01))
    assert result.isfinite().all()
    assert result[:, 0].min() > 1e-3
    assert result[:, -1].min() > 1e-7
    assert result[:, 1].max() > 1.0
    # The eight octants are mirror images.
    assert torch.allclose(result[:, 0], result[:, 0].flip(1, 2, 3), rtol=1e-8)


def test_two_streams_that_part_leave_a_floor_not_a_nan():
    gas = Gas((0.01,), (OPEN,), density_floor=1e-6, pressure_floor=1e-8)
    primitive = torch.ones(1, 3, 100, dtype=torch.float64)
    primitive[:, 1, :50], primitive[:, 1, 50:] = -20.0, 20.0
    result = gas.primitive(gas.advance(gas.conserved(primitive), 0.02))
    assert result.isfinite().all()
    assert result[:, 0].min() >= 1e-6
    assert result[:, 2].min() >= 1e-8


def test_primitive_and_conserved_are_inverse_and_floors_apply():
    gas = Gas((0.1, 0.1), (OPEN, OPEN), density_floor=0.01, pressure_floor=0.02)
    primitive = random_primitive(2, 4, 5, 6)
    assert torch.allclose(gas.primitive(gas.conserved(primitive)), primitive, rtol=1e-12)
    bad = gas.lift(torch.full((1, 4, 5, 6), -1.0, dtype=torch.float64))
    lifted = gas.primitive(bad)
    assert torch.allclose(lifted[:, 0], torch.tensor(0.01).double())
    assert torch.allclose(lifted[:, -1], torch.tensor(0.02).double())


def test_sources_are_split_to_second_order():
    """A decay of all that is conserved, next to an advected wave: compare with fine steps."""

    def final(courant):
        gas = Gas((1 / 32,), (PERIODIC,), courant=courant)
        x = (torch.arange(32, dtype=torch.float64) + 0.5) / 32
        primitive = torch.stack([1 + 0.2 * torch.sin(2 * math.pi * x), 1 + 0 * x, 1 + 0 * x])
        rate = 1 + 0.5 * torch.sin(2 * math.pi * x)
        return gas.advance(
            gas.conserved(primitive[None]), 0.25, lambda s, dt: s * torch.exp(-rate * dt)
        )

    reference = final(0.04)
    errors = [(final(c) - reference).abs().mean().item() for c in (0.8, 0.4, 0.2)]
    assert math.log2(errors[0] / errors[2]) / 2 > 1.6


def test_the_time_stepper_is_of_second_order():
    start = torch.tensor([1.0], dtype=torch.float64)

    def error(steps):
        y = start
        for _ in range(steps):
            y = ssp_rk2(y, 1 / steps, lambda y: -(y**2))
        return abs(y.item() - 0.5)

    assert 1.9 < math.log2(error(20) / error(40)) < 2.1
    assert start.item() == 1.0


def test_bad_parameters_and_runaway_flows():
    with pytest.raises(ot.OvertoneError, match="gamma above 1"):
        Gas((0.1,), (OPEN,), gamma=1.0)
    with pytest.raises(ot.OvertoneError, match="courant is 2"):
        Gas((0.1,), (OPEN,), courant=2.0)
    gas = Gas((1e-9,), (PERIODIC,))
    state = gas.conserved(torch.ones(1, 3, 4, dtype=torch.float64))
    with pytest.raises(ot.OvertoneError, match="more than 20000 solver steps"):
        gas.advance(state, 1.0)
    with pytest.raises(ot.OvertoneError, match="at least 2"):
        gas.tendency(state[..., :1])
