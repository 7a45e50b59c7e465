"""The mixing layer: its balances, its instability and what cooling does to it."""

import math

import pytest
import torch

import overtone as ot
from overtone.solvers.turbulent_radiative_layer_2d import SHEAR, TurbulentRadiativeLayer2D


def test_layout_and_initial_balance():
    system = TurbulentRadiativeLayer2D()
    assert system.channels == ("density", "pressure", "velocity_x", "velocity_y")
    assert system.domain.periodic == (True, False)
    frame = next(system.trajectory(2, 1, seed=4))
    assert frame.shape == (2, 4, 32, 96)
    assert torch.allclose(frame[:, 1], torch.tensor(system.pressure).float())
    assert frame[:, 0, :, 0].min() == pytest.approx(100.0, rel=1e-4)
    assert frame[:, 0, :, -1].max() == pytest.approx(1.0, rel=1e-4)
    sound = math.sqrt(5 / 3 * system.pressure)
    assert pytest.approx(0.5) == SHEAR / sound


def test_both_phases_are_in_thermal_balance_and_mixed_gas_cools_at_its_rate():
    system = TurbulentRadiativeLayer2D(shape=(8, 24), t_cool=0.1)
    primitive = torch.zeros(3, 4, 8, 24, dtype=torch.float64)
    primitive[:, 3] = system.pressure
    for i, density in enumerate((1.0, 10.0, 100.0)):
        primitive[i, 0] = density
    start = system.gas.conserved(primitive)
    after = system.gas.primitive(system._cool(start.clone(), 1e-3))[:, 3, 0, 0] / system.pressure
    assert after[[0, 2]].tolist() == pytest.approx([1.0, 1.0], abs=1e-12)
    # At the middle temperature the loss rate is 1/t_cool.
    assert after[1].item() == pytest.approx(math.exp(-1e-3 / 0.1), rel=1e-4)
    late = system.gas.primitive(system._cool(start.clone(), 1e3))[:, 3, 0, 0] / system.pressure
    assert late[1].item() == pytest.approx(0.1, rel=1e-6)  # the cold gas's temperature


def test_an_unperturbed_layer_without_mixing_keeps_its_phases():
    system = TurbulentRadiativeLayer2D(shape=(4, 48))
    primitive = system.gas.primitive(system.initial(1, seed=0))
    primitive[:, 2] = 0.0
    state = system.gas.conserved(primitive)
    for _ in range(5):
        state = system.advance(state)
    frame = system.frame(state)
    assert (frame[:, :, :1] - frame).abs().max() < 1e-9  # nothing depends on x
    assert frame[:, 0, :, :10].min() > 99
    assert frame[:, 0, :, 20:].max() < 1.5


def test_waves_grow_and_hot_gas_flows_in_faster_with_more_cooling():
    def run(t_cool):
        system = TurbulentRadiativeLayer2D(shape=(16, 48), t_cool=t_cool)
        first, *_, last = system.trajectory(2, 12, seed=1)
        return first, last

    (first, strong), (_, weak) = run(0.1), run(3.16)
    assert first[:, 0].std(dim=1).amax() < 1e-5
    for frame in (strong, weak):
        assert frame.isfinite().all()
        assert (frame[:, :2] > 0).all()
        assert frame[:, 0].std(dim=1).amax() > 5  # the interface is no longer flat
    inflow = [-frame[:, 3, :, -8:].mean().item() for frame in (strong, weak)]
    assert inflow[0] > 1.5 * abs(inflow[1])


def test_seeds_repeat_and_differ():
    system = TurbulentRadiativeLayer2D(shape=(8, 24))
    a, b, c = ([*system.trajectory(2, 3, seed=s)][-1] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, c, atol=1e-3)
    assert not torch.allclose(a[0], a[1], atol=1e-3)


def test_bad_parameters():
    with pytest.raises(ot.OvertoneError, match="positive numbers"):
        TurbulentRadiativeLayer2D(t_cool=-1.0)
    with pytest.raises(ot.OvertoneError, match="two axes"):
        TurbulentRadiativeLayer2D(shape=(8, 8, 8))  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("t_cool", [0.03, 3.16])
def test_the_extreme_cooling_times_run_to_the_end(t_cool):
    system = TurbulentRadiativeLayer2D(t_cool=t_cool)
    for frame in system.trajectory(1, 101, seed=0):
        assert (frame[:, :2] > 0).all()
