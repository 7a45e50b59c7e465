"""Laws on flows that obey them, and on flows that break them by a known amount."""

import math

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.evaluate.laws import BALANCES, Setting, deviation, deviations, laws
from overtone.metrics import physics
from overtone.solvers import KolmogorovFlow, RayleighBenard, ShearFlow


def setting_of(system, num=1, **changes):
    values = {
        "dataset": system.name,
        "domain": system.domain,
        "axes": system.axes,
        "parameters": ({k: float(getattr(system, k)) for k in system.parameters},) * num,
        "coordinates": tuple(np.array(x) for x in system.coordinates),
    }
    return Setting(**(values | changes))


def frames_of(system, steps=3, num=1, skip=2):
    """`(num, steps, C, *shape)`, after the initial states have settled."""
    frames = list(system.trajectory(num, steps + skip, seed=0))
    return torch.stack(frames[skip:], dim=1)


SHEAR = ShearFlow(shape=(32, 32), dt=0.01, reynolds=1000.0)


def test_a_shear_flow_has_four_laws_and_obeys_them():
    frames = frames_of(SHEAR, num=2)
    found = laws(setting_of(SHEAR, num=2))
    assert sorted(found) == ["divergence", "enstrophy", "kinetic energy", "momentum"]
    for measure in found.values():
        assert measure(frames).shape == (2,)
        assert deviation(measure(frames), measure(frames)).tolist() == [0.0, 0.0]
    speeding = frames.clone()
    speeding[:, :, 2:] *= 1.1
    for name in ("kinetic energy", "enstrophy"):
        gap = deviation(found[name](speeding), found[name](frames))
        assert gap.tolist() == pytest.approx([0.21, 0.21], rel=1e-4)
    assert (found["momentum"](speeding) > 2 * found["momentum"](frames)).all()


def test_measures_are_those_of_the_metrics():
    frames = frames_of(SHEAR, num=2)
    found = laws(setting_of(SHEAR, num=2))
    velocity, pressure = frames[:, :, 2:], frames[:, :, 1]
    energy = physics.kinetic_energy(velocity[:, -1], SHEAR.domain)
    assert torch.allclose(found["kinetic energy"](frames), energy)
    enstrophy = physics.enstrophy(velocity[:, -1], SHEAR.domain)
    assert torch.allclose(found["enstrophy"](frames), enstrophy)
    residual = physics.momentum_residual(velocity, pressure, SHEAR.domain, viscosity=1e-3)
    assert torch.allclose(found["momentum"](frames), residual.mean((1, 2, 3)))


@pytest.mark.parametrize(
    ("system", "largest"),
    [
        (KolmogorovFlow(shape=(32, 32), dt=0.01, reynolds=40.0, drag=0.3, forcing=2), 0.02),
        (RayleighBenard(shape=(32, 16), dt=0.01, rayleigh=1e5), 0.05),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_forces_are_in_the_balance(system, largest):
    """With the wrong parameters, or without buoyancy, the balance is far from closed."""
    frames = frames_of(system)
    right = laws(setting_of(system))["momentum"](frames).item()
    assert right < largest
    if system.name == "kolmogorov_flow":
        wrong = laws(
            setting_of(system, parameters=({"reynolds": 40.0, "drag": 0.3, "forcing": 3.0},))
        )["momentum"](frames)
    else:
        still = frames.clone()
        still[:, :, 0] = 0
        wrong = laws(setting_of(system))["momentum"](still)
    assert wrong.item() > 5 * right


def test_each_sample_has_its_own_viscosity():
    frames = frames_of(SHEAR).repeat(2, 1, 1, 1, 1)
    parameters = ({"Rayleigh": 1000.0}, {"Reynolds": 10.0})  # one as in The Well's files
    right, wrong = laws(setting_of(SHEAR, parameters=parameters))["momentum"](frames).tolist()
    assert wrong > 3 * right


def test_what_is_not_known_is_not_checked():
    assert "momentum" not in laws(setting_of(SHEAR, parameters=({"reynolds": "high"},)))


def test_no_momentum_where_frames_are_unevenly_apart():
    """Its residual has a derivative in time."""
    domain = ot.Domain(**SHEAR.domain.to_dict(), dt_range=(0.01, 0.02))
    found = laws(setting_of(SHEAR, domain=domain))
    assert laws(setting_of(SHEAR)).keys() - found.keys() == {"momentum"}
    other = laws(setting_of(SHEAR, dataset="my_flow"))
    assert sorted(other) == ["enstrophy", "kinetic energy"]
    domain = ot.Domain((16,), (1.0,), "periodic", ("u",), 0.1)
    assert laws(Setting("toy", domain, ("x",), ({},), (np.arange(16.0),))) == {}
    thin = ot.Domain((16, 3), (1.0, 1.0), ("periodic", "wall"), ("velocity_x", "velocity_y"), 0.1)
    coordinates = np.arange(16.0), np.arange(3.0)
    assert sorted(laws(Setting("toy", thin, ("x", "y"), ({},), coordinates))) == ["kinetic energy"]


def gas(dataset="turbulent_radiative_layer_2D", coordinates=None):
    names = ("density", "pressure", "velocity_x", "velocity_y")
    domain = ot.Domain((8, 12), (2.0, 3.0), ("periodic", "open"), names, 0.1)
    return Setting(dataset, domain, ("x", "y"), ({},), coordinates or (np.arange(8), np.arange(12)))


def test_a_gas_keeps_mass_and_energy():
    frames = torch.ones(1, 3, 4, 8, 12)
    frames[:, :, 0] = 2.0
    found = laws(gas())
    assert sorted(found) == ["enstrophy", "kinetic energy", "mass", "total energy"]
    assert found["mass"](frames).item() == pytest.approx(2 * 6)
    assert found["kinetic energy"](frames).item() == pytest.approx(2 * 6)
    assert found["total energy"](frames).item() == pytest.approx((2 + 1.5) * 6)
    assert "total energy" not in laws(gas("toy"))


def test_cells_of_unequal_size_count_by_their_size():
    y = np.linspace(0, math.sqrt(3), 12) ** 2
    found = laws(gas(coordinates=(np.arange(8), y)))
    density = torch.zeros(1, 3, 4, 8, 12)
    density[:, :, 0] = torch.from_numpy(y).float()
    width = np.gradient(y)
    mean = (y * width).sum() / width.sum()
    assert mean > 1.3 * y.mean()
    assert found["mass"](density).item() == pytest.approx(6 * mean, rel=1e-5)
    density[:, :, 2] = torch.from_numpy(y).float()  # u = y: vorticity -1, enstrophy 1/2
    assert found["enstrophy"](density).item() == pytest.approx(6 / 2, rel=1e-4)


def test_deviation_of_nothing():
    zero, one = torch.zeros(1), torch.ones(1)
    assert deviation(zero, zero).item() == 0.0
    assert deviation(one, zero).item() == math.inf
    assert deviation(zero, one).item() == 1.0


@pytest.mark.parametrize("units", [(1e-30, 1e-20), (1e25, 1e20)])
def test_units_do_not_matter_to_deviations(units):
    """Of a gas whose density and velocity are in small or in large units."""
    rho, speed = units
    domain = ot.Domain((8, 8), (1.0, 1.0), "periodic", ("density", "velocity_x", "velocity_y"))
    coordinates = (np.arange(8) / 8,) * 2
    setting = Setting("any", domain, ("x", "y"), ({},), coordinates)
    frames = 2 + torch.rand(1, 3, 3, 8, 8)
    other = frames * torch.tensor([1.1, 1.2, 1.3])[:, None, None]
    scale = torch.tensor([rho, speed, speed])[:, None, None]
    for name, measure in laws(setting).items():
        expected = deviation(measure(other), measure(frames))
        found = deviation(measure(scale * other), measure(scale * frames))
        assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-4), name
    velocity, density = frames[0, -1, 1:], frames[0, -1, 0]
    whole = physics.total_momentum(velocity, domain, density=density)
    scaled = physics.total_momentum(speed * velocity, domain, density=rho * density)
    assert (scaled / (rho * speed)).tolist() == pytest.approx(whole.tolist(), rel=1e-4)


def test_a_balance_is_the_gap_relative_to_what_cancels():
    """A stretching flow: its divergence is all of its terms, of which the truth's cancel."""
    setting = setting_of(SHEAR, num=1)
    frames = frames_of(SHEAR)
    torn = frames.clone()
    x = torch.tensor(SHEAR.coordinates[0])[:, None].expand(SHEAR.shape)
    torn[:, :, 2] += 0.01 * torch.sin(2 * math.pi * x).float()
    found = deviations(setting, torn, frames)
    assert set(found) == {
        *laws(setting), "mass balance", "momentum balance"
    }  # fmt: skip
    measures = laws(setting)
    gaps = {name: (measures[name](torn) - measures[name](frames)).abs() for name in BALANCES}
    velocity, pressure = frames[:, :, 2:], frames[:, :, 1]
    slopes = torch.stack([
        physics.derivative(velocity[:, -1, axis], axis, SHEAR.domain) for axis in range(2)
    ])  # fmt: skip
    mass = gaps["divergence"] / slopes.abs().sum(dim=0).mean((1, 2))
    assert torch.allclose(found["mass balance"], mass)
    terms = physics.momentum_terms(velocity, pressure, SHEAR.domain, viscosity=1e-3)
    assert torch.allclose(found["momentum balance"], gaps["momentum"] / terms.mean((1, 2, 3)))
    assert found["divergence"].item() > 1000 * found["mass balance"].item() > 0
    assert found["divergence"].item() == pytest.approx(
        deviation(measures["divergence"](torn), measures["divergence"](frames)).item()
    )
    same = deviations(setting, frames, frames)
    assert {value.item() for value in same.values()} == {0.0}


def test_no_balance_without_its_law():
    frames = torch.ones(1, 3, 4, 8, 12)
    assert set(deviations(gas(), frames, frames)) == set(laws(gas()))
