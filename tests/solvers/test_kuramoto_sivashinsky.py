"""Growth rates, conservation, the chaotic attractor and the order in time."""

import math
from itertools import pairwise

import pytest
import torch

import overtone as ot
from overtone.solvers import KuramotoSivashinsky
from overtone.solvers.base import cell_centres


def wave(system, mode):
    return torch.cos(2 * math.pi * mode / 64 * cell_centres(system.shape[0], 64.0))[None]


@pytest.mark.parametrize(("cells", "mode"), [(60, 3), (120, 7), (120, 14), (128, 10)])
def test_small_waves_grow_at_the_exact_rate(cells, mode):
    system = KuramotoSivashinsky(shape=(cells,), viscosity=0.8, dt=1.0)
    state = system.state(1e-7 * wave(system, mode))
    later = system.advance(system.advance(state))
    k = 2 * math.pi * mode / 64
    growth = (later[0, 0, mode].abs() / state[0, 0, mode].abs()).log().item() / 2
    assert growth == pytest.approx(k**2 - 0.8 * k**4, abs=1e-9)


def test_a_uniform_flow_carries_a_wave():
    system = KuramotoSivashinsky(dt=1.0, step=0.02)
    state = system.state(0.5 + 1e-7 * wave(system, 5))
    later = system.advance(state)
    turn = (later[0, 0, 5] / state[0, 0, 5]).angle().item()
    assert turn == pytest.approx(-2 * math.pi * 5 / 64 * 0.5, abs=1e-6)


def test_the_mean_is_conserved_and_the_attractor_is_sane():
    system = KuramotoSivashinsky(shape=(60,), dt=5.0)
    state = system.initial(4, seed=1)
    state[..., 0] = 60 * 0.3
    energies = []
    for step in range(60):
        state = system.advance(state)
        if step >= 20:
            u = system.frame(state)[:, 0]
            energies.append((u - u.mean(-1, keepdim=True)).square().mean().item())
    assert torch.allclose(system.frame(state).mean(-1), torch.tensor(0.3).double(), atol=1e-12)
    # A long ring's mean energy is about 1.7; it wanders but stays near it.
    assert 1.3 < sum(energies) / len(energies) < 2.1
    assert max(energies) < 4


def test_nearby_states_part_exponentially():
    system = KuramotoSivashinsky(shape=(60,), dt=20.0)
    state = system.initial(2, seed=3)
    for _ in range(5):
        state = system.advance(state)
    near = state + system.state(1e-9 * wave(system, 4))
    before = (near - state).abs().amax().item()
    for _ in range(4):
        state, near = system.advance(state), system.advance(near)
    rate = math.log((near - state).abs().amax().item() / before) / 80
    assert 0.03 < rate < 0.2  # the largest Lyapunov exponent is about 0.09


def test_time_stepping_is_of_fourth_order():
    def final(step):
        system = KuramotoSivashinsky(shape=(60,), dt=4.0, step=step)
        return system.frame(system.advance(system.initial(2, seed=2)))

    reference = final(0.01)
    errors = [(final(step) - reference).abs().max().item() for step in (0.4, 0.2, 0.1)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(3.5 < order < 4.8 for order in orders)


def test_seeds_repeat_and_differ():
    system = KuramotoSivashinsky(shape=(60,))
    a, b, c = ([*system.trajectory(2, 3, seed=s)][-1] for s in (1, 1, 2))
    assert a.shape == (2, 1, 60)
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-3)


def test_constants_follow_the_state_to_its_device():
    system = KuramotoSivashinsky(shape=(60,))
    state = system.initial(1, seed=0).to("meta")
    assert system.frame(system.advance(state)).device.type == "meta"


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        KuramotoSivashinsky(viscosity=0.0)
    with pytest.raises(ot.OvertoneError, match="use at least 46"):
        KuramotoSivashinsky(shape=(32,))
