"""Uniform states follow their ODE, single modes their linear rates."""

import math
from itertools import pairwise

import pytest
import torch

import overtone as ot
from overtone.solvers import GrayScott
from overtone.solvers.base import cell_centres


def test_a_uniform_state_follows_the_reaction_ode():
    system = GrayScott(shape=(8, 12), feed=0.03, kill=0.06, dt=50.0)
    a, b = 0.6, 0.35
    one = torch.ones(1, *system.shape, dtype=torch.float64)
    frame = system.frame(system.advance(system.state(a * one, b * one)))
    h = 1e-3
    for _ in range(50_000):  # an independent midpoint rule with tiny steps
        da, db = -a * b * b + 0.03 * (1 - a), a * b * b - 0.09 * b
        am, bm = a + h / 2 * da, b + h / 2 * db
        a, b = a + h * (-am * bm * bm + 0.03 * (1 - am)), b + h * (am * bm * bm - 0.09 * bm)
    assert torch.allclose(frame[0, 0], a * one[0], atol=1e-6)
    assert torch.allclose(frame[0, 1], b * one[0], atol=1e-6)


def test_one_mode_diffuses_exactly():
    system = GrayScott(shape=(30, 24), feed=0.02, kill=0.05, dt=40.0)
    x = cell_centres(30, 1.0)[:, None].expand(30, 24)
    y = cell_centres(24, 1.0)[None, :].expand(30, 24)
    shape = torch.cos(2 * math.pi * (2 * x + 3 * y))[None]
    # Without B nothing reacts: A relaxes to 1 and its waves decay.
    a = system.frame(system.advance(system.state(0.5 + 0.3 * shape, 0 * shape)))[:, 0]
    k2 = (2 * math.pi) ** 2 * 13
    relaxed = 1 - 0.5 * math.exp(-0.02 * 40)
    expected = relaxed + 0.3 * math.exp(-(2e-5 * k2 + 0.02) * 40) * shape
    assert torch.allclose(a, expected, atol=1e-12)
    # With a trace of B it decays by its own rates.
    b = system.frame(system.advance(system.state(1 + 0 * shape, 1e-9 * shape)))[:, 1]
    assert torch.allclose(b, 1e-9 * math.exp(-(1e-5 * k2 + 0.07) * 40) * shape, atol=1e-9 * 1e-7)


def test_patterns_stay_between_their_bounds():
    system = GrayScott(shape=(60, 60))
    *_, frame = system.trajectory(2, 40, seed=0)
    assert frame.shape == (2, 2, 60, 60)
    assert frame.min() > -0.02
    assert frame.max() < 1.02
    assert frame[:, 1].std() > 0.05  # a pattern, not the uniform state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feed", "kill"),
    [
        (0.014, 0.054),
        (0.098, 0.057),
        (0.029, 0.057),
        (0.058, 0.065),
        (0.018, 0.051),
        (0.03, 0.062),
    ],
)
def test_the_named_patterns_stay_alive(feed, kill):
    *_, frame = GrayScott(feed=feed, kill=kill, step=2.0).trajectory(4, 151, seed=0)
    assert frame[:, 1].std(dim=(-2, -1)).min() > 0.03


def test_time_stepping_is_of_fourth_order():
    def final(step):
        system = GrayScott(shape=(32, 32), dt=64.0, step=step)
        return system.frame(system.advance(system.initial(1, seed=1)))

    reference = final(0.125)
    errors = [(final(step) - reference).abs().max().item() for step in (2.0, 1.0, 0.5)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(3.4 < order < 4.8 for order in orders)


def test_seeds_repeat_and_differ():
    system = GrayScott(shape=(20, 20))
    a, b, c = ([*system.trajectory(2, 2, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-3)


def test_constants_follow_the_state_to_its_device():
    system = GrayScott(shape=(20, 20))
    assert system.frame(system.advance(system.initial(1, seed=0).to("meta"))).is_meta


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        GrayScott(feed=-0.1)
