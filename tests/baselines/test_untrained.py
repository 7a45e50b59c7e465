"""The last frame for ever, the last change for ever, and the solver behind a model's interface."""

import pytest
import torch

import overtone as ot
from overtone.baselines import Baseline
from overtone.baselines.untrained import RESTARTED
from overtone.solvers import (
    SYSTEMS,
    ActiveMatter,
    GrayScott,
    KolmogorovFlow,
    KuramotoSivashinsky,
    ShearFlow,
)


def test_a_rollout_is_constant(make_baseline, make_domain, make_window):
    domain = make_domain((9, 7), "wall")
    model = make_baseline("persistence", domain)
    window = make_window(domain)
    for frame in ot.rollout(model, window, steps=3, schedule=ot.Cycle(2, 3)):
        assert torch.equal(frame, window.fields[:, -1])
    assert model.num_parameters == 0


def test_persistence_is_saved_and_loaded(make_baseline, tmp_path):
    make_baseline("persistence").save(tmp_path / "model")
    assert Baseline.from_pretrained(tmp_path / "model").name == "persistence"


def test_a_rollout_is_a_straight_line(make_baseline, make_domain):
    domain = make_domain((9, 7), "wall")
    first, slope = torch.randn(2, 2, 1, 2, 9, 7).unbind()
    window = ot.Window(first + slope * torch.arange(3.0).reshape(3, 1, 1, 1), domain)
    model = make_baseline("extrapolation", domain)
    for step, frame in enumerate(ot.rollout(model, window, steps=3, schedule=ot.Constant(1))):
        torch.testing.assert_close(frame, (first + (3 + step) * slope)[:, 0])
    assert model.num_parameters == 0


def test_steady_windows_and_too_few_frames(make_baseline, make_domain):
    window = ot.Window(torch.randn(1, 1, 2, 16, 24).expand(1, 3, 2, 16, 24), make_domain((16, 24)))
    assert torch.equal(make_baseline("extrapolation")(window), window.fields[:, -1])
    with pytest.raises(ot.OvertoneError, match="needs at least 2 frames"):
        make_baseline("extrapolation", context=1)


SMALL = {
    "shear_flow": (ShearFlow(shape=(24, 48), reynolds=1e3), {"reynolds": 1e3}),
    "kolmogorov_flow": (KolmogorovFlow(shape=(32, 32), drag=0.2), {"drag": 0.2}),
    "gray_scott": (GrayScott(shape=(24, 20), feed=0.03), {"feed": 0.03}),
    "kuramoto_sivashinsky": (KuramotoSivashinsky(shape=(100,)), {}),
    "active_matter": (ActiveMatter(shape=(32, 32), alpha=-2.0), {"alpha": -2.0}),
}


def solver_model(system, settings, coarsen):
    return ot.baseline(
        "coarse_solver", domain=system.domain, context=2, system=system.name, coarsen=coarsen,
        settings=settings,
    )  # fmt: skip


def window_and_future(system, frames, start=2):
    """Frames `0 … start - 1` as a window, and those after them."""
    fields = torch.stack([*system.trajectory(2, start + frames, seed=3)], dim=1)
    return ot.Window(fields[:, :start], system.domain), fields[:, start:]


def rolled_out(model, window, steps):
    return torch.stack([*ot.rollout(model, window, steps=steps, schedule=ot.Constant(1))], dim=1)


@pytest.mark.parametrize("name", SMALL)
def test_at_the_full_grid_the_solvers_own_trajectory_comes_out(name):
    system, settings = SMALL[name]
    window, future = window_and_future(system, 3)
    frames = rolled_out(solver_model(system, settings, 1), window, 3)
    space = tuple(range(3, future.dim()))
    scale = future.abs().amax(dim=space, keepdim=True).amax(dim=1, keepdim=True)
    assert ((frames - future).abs() < 3e-5 * scale + 1e-9).all()
    assert not torch.allclose(future[:, 0], window.fields[:, -1], rtol=1e-3)


@pytest.mark.parametrize("name", SMALL)
def test_a_frame_determines_the_state(name):
    system, _ = SMALL[name]
    state = system.advance(system.initial(2, seed=1))
    again = system.from_frame(system.frame(state))
    assert (again - state).abs().max() < 1e-9 * state.abs().max()


def test_a_finer_solver_is_a_better_one():
    system = ShearFlow(shape=(48, 96), reynolds=5e3, dt=0.2)
    window, future = window_and_future(system, 3)
    errors = []
    for coarsen in (4, 2, 1.5, 1):
        frames = rolled_out(solver_model(system, {"reynolds": 5e3}, coarsen), window, 3)
        errors.append((frames - future)[:, :, 0].square().mean().sqrt().item())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-5 < 1e-3 < errors[0] < 0.1


def test_longer_steps_are_cheaper_and_less_accurate():
    system = KuramotoSivashinsky(shape=(100,), dt=1.0)
    window, future = window_and_future(system, 2)
    errors = [
        (rolled_out(solver_model(system, {"step": step}, 1), window, 2) - future).abs().max()
        for step in (0.1, 0.5, 1.0)
    ]
    assert errors[0] < errors[1] < errors[2]


def test_cells_stay_where_they_are_on_a_coarser_grid():
    """A steady flow whose force depends on the place stays steady: no half-cell is lost."""
    system = KolmogorovFlow(shape=(48, 48), reynolds=10.0, drag=0.5, forcing=2)
    y = (torch.arange(48, dtype=torch.float64) + 0.5) * 2 * torch.pi / 48
    u = (torch.sin(2 * y) / (4 / 10.0 + 0.5)).expand(1, 48, 48)
    frame = system.frame(system.state(u, torch.zeros_like(u))).float()
    window = ot.Window(torch.stack([frame, frame], dim=1), system.domain)
    model = solver_model(system, {"reynolds": 10.0, "drag": 0.5, "forcing": 2}, 3)
    assert torch.allclose(model(window), frame, atol=1e-5)


def test_the_change_has_the_units_of_the_others():
    system, settings = SMALL["gray_scott"]
    window, future = window_and_future(system, 1)
    change, stats = solver_model(system, settings, 1).predict_change(window, 4, 3)
    assert change.shape == (2, 1, 2, 24, 20)
    expected = stats.change_between(window.fields[:, -1:], future)
    assert torch.allclose(change, expected, atol=1e-3)


def test_a_coarse_solver_is_saved_and_loaded(tmp_path):
    system, settings = SMALL["shear_flow"]
    model = solver_model(system, settings, 2)
    model.save(tmp_path / "model")
    again = ot.load(tmp_path / "model")
    window, _ = window_and_future(system, 1)
    assert torch.equal(again(window), model(window))
    assert again.options == {"system": "shear_flow", "coarsen": 2, "settings": {"reynolds": 1e3}}


def test_what_can_not_be_restarted_is_refused():
    domain = SMALL["shear_flow"][0].domain
    assert set(RESTARTED) == set(SMALL)
    for name in (None, "shear_flo", *(set(SYSTEMS) - set(RESTARTED))):
        with pytest.raises(ot.OvertoneError, match="can be restarted from a frame are shear_flow"):
            ot.baseline("coarse_solver", domain=domain, system=name)


def test_a_coarse_solver_has_one_dt():
    domain = GrayScott().domain
    several = ot.Domain(**domain.to_dict(), dt_range=(domain.dt, 2 * domain.dt))
    with pytest.raises(ot.DomainError, match="a coarse solver has one dt"):
        ot.baseline("coarse_solver", domain=several, system="gray_scott")


def test_bad_settings_and_other_domains(make_domain):
    system, _ = SMALL["shear_flow"]
    with pytest.raises(ot.OvertoneError, match="no setting raynolds; it has reynolds, schmidt"):
        solver_model(system, {"raynolds": 1.0}, 1)
    with pytest.raises(ot.OvertoneError, match="coarsen is 0.5"):
        solver_model(system, {}, 0.5)
    with pytest.raises(ot.OvertoneError, match="cells don't resolve the waves that decay"):
        solver_model(SMALL["kuramoto_sivashinsky"][0], {}, 4)
    with pytest.raises(ot.DomainError, match="fields of the domain: .*'a', 'b'.*very system"):
        ot.baseline("coarse_solver", domain=make_domain(), system="gray_scott")
    fields = make_domain((24, 20), fields=("A", "B"))
    with pytest.raises(ot.DomainError, match="extent of the domain"):
        ot.baseline("coarse_solver", domain=fields, system="gray_scott")
