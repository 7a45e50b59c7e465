"""The face that all models share, on the least model there is and on one of each kind.

What is refused is tested here; the messages of refusals with the models (test_emulator).
"""

import json

import numpy as np
import pytest
import torch
from torch import nn

import overtone as ot
from overtone.models.base import Model, accept_patch, accept_window, short_patch
from overtone.normalize import statistics
from tests.models.conftest import MAKERS

HEADER = ["format", "overtone", "sha256"]


class Drift(Model):
    """Predicts one learned number times the unit of change; knows cells of each size it is told."""

    kind = "drift"

    def __init__(self, domain, sizes=(4, 8)):
        super().__init__(domain, 2, patches=tuple((size, size) for size in sizes))
        self.speed = nn.Parameter(torch.tensor(3.0))

    @property
    def config(self):
        return {"domain": self.domain.to_dict(), "sizes": [patch[0] for patch in self._trained]}

    def change(self, window, grid, *, last_only):
        change = self.speed * torch.ones_like(window.fields[:, -1:])
        return change, statistics(window.fields).last()

    @classmethod
    def rebuild(cls, config):
        own = config["architecture"]
        return cls(ot.Domain(**own["domain"]), tuple(own["sizes"]))


def test_the_last_frame_and_its_change_are_the_next(make_domain, make_window):
    model = Drift(make_domain()).eval()
    window = make_window(model.domain, frames=4)
    unit = statistics(window.last(2).fields).change[:, -1, :, None, None]
    expected = window.fields[:, -1] + 3 * unit
    assert torch.allclose(model(window, 4), expected)


def test_every_kind_has_the_same_face(model, make_window):
    window = make_window(model.domain, frames=4)
    assert isinstance(model, Model)
    assert (model.context, model.patched) == (3, model.kind != "baseline")
    assert model.patches == ((4, 8) if model.patched else (1,))
    assert model.causal == (model.config.get("time") == "attend")
    assert model.num_parameters == sum(p.numel() for p in model.parameters())
    changes, _ = model.predict_change(window, 8)
    assert changes.shape[:2] == (2, 3 if model.causal else 1)
    change, stats = model.predict_change(window, 8, last_only=True)
    frame = window.fields[:, -1] + change[:, 0] * stats.change[:, 0, :, None, None]
    assert torch.allclose(model(window, 8), frame, atol=1e-5)
    model.checkpoint_activations()
    model.train().predict_change(window, 8)[0].square().mean().backward()


def test_folders_hold_what_they_always_held(model, tmp_path):
    model.save(tmp_path / "model", training={"seed": 1})
    found = json.loads((tmp_path / "model" / "config.json").read_text())
    own = {
        "emulator": ["kind", "architecture"],
        "cvit": ["kind", "architecture"],
        "baseline": ["kind", "name", "options", "domain", "context"],
        "flexible": ["kind", "architecture"],
    }
    assert list(found) == [*HEADER, *own[model.kind], "training"]
    assert found["kind"] == model.kind
    assert json.loads(json.dumps(model.config)) == model.config


def test_every_kind_comes_back_but_flexified_ones(model, make_window, tmp_path):
    model.save(tmp_path / "model")
    if model.kind == "flexible":
        with pytest.raises(ot.CheckpointError, match="Sequential was made flexible.*load_state_di"):
            ot.load(tmp_path / "model")
        return
    window = make_window(model.domain)
    for again in (ot.load(tmp_path / "model"), type(model).from_pretrained(tmp_path / "model")):
        assert type(again) is type(model)
        assert not again.training
        assert torch.equal(again(window, 8), model(window, 8))


def test_other_weights_can_be_saved_than_its_own(make_domain, tmp_path):
    model = Drift(make_domain(), (8,))
    weights = {
        "speed": torch.tensor(5.0),
        "pace": torch.tensor([0.1, 0.2]),
        "scale": torch.tensor([3.0, 0.0]),
    }
    model.save(tmp_path / "model", weights=weights)
    again = Drift.from_pretrained(tmp_path / "model")
    assert again.patches == (8,)
    assert again.speed == 5
    assert again.pace.tolist() == pytest.approx([0.1, 0.2])
    assert again.scale.tolist() == [3, 0]


def test_a_patch_may_be_left_out_where_there_is_no_choice(make_domain, make_window):
    window = make_window(make_domain())
    one, two = Drift(make_domain(), (8,)), Drift(make_domain())
    assert torch.equal(one(window), one(window, 8))
    with pytest.raises(ot.PatchError, match="no patch was given; this model knows 4, 8: choose"):
        two(window)
    with pytest.raises(ot.PatchError, match="patch 4 was not trained for; this model knows 8"):
        one.predict_change(window, 4)
    assert one(window, 4, allow_untrained=True).shape == (2, 2, 32, 48)


def test_complex_parameters_count_twice(make_domain):
    model = Drift(make_domain())
    model.modes = nn.Parameter(torch.zeros(5, dtype=torch.complex64))
    assert model.num_parameters == 1 + 2 * 5


def test_a_context_of_nothing_is_refused(make_domain):
    with pytest.raises(ot.OvertoneError, match="context is 0; expected at least 1"):
        ot.baseline("persistence", domain=make_domain(), context=0)


def test_folders_from_before_there_was_a_pace_load(make_domain, tmp_path):
    model = ot.build(domain=make_domain(), context=2)
    without = {name: t for name, t in model.state_dict().items() if name != "pace"}
    model.save(tmp_path / "model", weights=without)
    path = tmp_path / "model" / "config.json"
    content = json.loads(path.read_text())
    content.pop("kind")  # they named none
    path.write_text(json.dumps(content))
    assert torch.equal(ot.load(tmp_path / "model").pace, torch.zeros(2))


def test_the_latest_frames_are_kept(make_domain, make_window):
    domain = make_domain()
    window = make_window(domain, frames=5)
    accepted = accept_window(window, domain=domain, context=3, check_finite=True)
    assert torch.equal(accepted.fields, window.fields[:, -3:])


def test_only_the_frames_that_are_used_must_be_finite(make_domain, make_window):
    domain = make_domain()
    window = make_window(domain, frames=4)
    window.fields[0, 0] = torch.nan
    accept_window(window, domain=domain, context=3, check_finite=True)
    window.fields[0, 1] = torch.nan
    accept_window(window, domain=domain, context=3, check_finite=False)
    with pytest.raises(ot.DomainError, match="NaN or infinite"):
        accept_window(window, domain=domain, context=3, check_finite=True)


BOUNDARIES = ["periodic", "wall", "open", ("periodic", "wall"), ("wall", "periodic"),
              (("wall", "open"), "periodic"), (("open", "wall"), "periodic")]  # fmt: skip


@pytest.mark.parametrize("kind", MAKERS)
def test_other_boundaries_are_refused_in_both_directions(kind, make_domain, make_window):
    """Every pair of these: walls where there were none, none where there were, either side."""
    for own in BOUNDARIES:
        model = MAKERS[kind](make_domain(boundaries=own)).eval()
        for given in BOUNDARIES:
            window = make_window(make_domain(boundaries=given))
            if given == own:
                assert model(window, 8).isfinite().all()
                continue
            with pytest.raises(ot.DomainError, match="other boundaries than the model was built"):
                model(window, 8)


def test_a_refusal_names_the_axes_whose_boundaries_differ(make_domain, make_window):
    model = make_domain(boundaries=("periodic", ("wall", "open")))
    window = make_window(make_domain(boundaries=("periodic", "wall")))
    said = "built for: axis 1 is wall, the model's is wall/open. Give it windows"
    with pytest.raises(ot.DomainError, match=said):
        accept_window(window, domain=model, context=3, check_finite=True)


def test_patches_lay_a_grid_or_are_refused_with_the_known_ones(make_domain):
    known = {"domain": make_domain((32, 48)), "trained": ((4, 8), (8, 8))}
    assert accept_patch(8, 0, allow_untrained=False, **known).shape == (4, 6)
    assert accept_patch((2, 3), 0, allow_untrained=True, **known).shape == (16, 16)
    with pytest.raises(ot.PatchError, match=r"patch \(2, 3\) was not.*knows \(4, 8\), 8\. allow"):
        accept_patch((2, 3), 0, allow_untrained=False, **known)


def test_short_patches():
    assert short_patch((4, 4, 4)) == 4
    assert short_patch((4, 8)) == (4, 8)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"shape": (8,)}, "the window is 1D, the model was built for 2D"),
        ({"fields": ("b", "a")}, "select and order them alike"),
        ({"boundaries": "open"}, "axis 0 is open, the model's is periodic; axis 1 is open"),
        ({"dt": 0.2}, r"dt is 0\.2, the model steps by 0\.1"),
    ],
)
def test_refusals(make_domain, make_window, other, message):
    window = make_window(make_domain(**other))
    with pytest.raises(ot.DomainError, match=message):
        accept_window(window, domain=make_domain(), context=3, check_finite=True)


def test_a_model_of_several_dt_takes_what_lies_between(make_domain, make_window):
    domain = make_domain(dt=0.1, dt_range=(0.1, 0.4))
    for dt in (0.1, 0.09999, 0.3, 0.4):
        window = make_window(make_domain(dt=dt))
        assert accept_window(window, domain=domain, context=3, check_finite=True)
    for dt in (0.09, 0.41):
        window = make_window(make_domain(dt=dt))
        with pytest.raises(ot.DomainError, match=r"the model steps by 0\.1 to 0\.4"):
            accept_window(window, domain=domain, context=3, check_finite=True)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_range_of_dt_is_saved_with_every_kind_of_model(kind, make_domain, tmp_path):
    model = MAKERS[kind](make_domain(dt=0.1, dt_range=(0.05, 0.4)))
    model.save(tmp_path / "m")
    if kind != "flexible":  # which is not rebuilt from its folder
        assert ot.load(tmp_path / "m").domain == model.domain


UNITS = {
    **MAKERS,
    **{
        f"{processor} {tokenizer}": lambda domain, p=processor, t=tokenizer: ot.build(
            p, domain=domain, tokenizer=t, patches=8 if t == "fixed" else (4, 8), context=3,
            width=24, heads=2, blocks=1, mlp_dim=24, refine=4,
        )
        for processor, tokenizer in (("axial", "ckm"), ("swin", "fixed"), ("afno", "csm"))
    },
    **{
        name: lambda domain, n=name: ot.baseline(n, domain=domain, context=3, size="mini")
        for name in ("persistence", "extrapolation")
    },
}  # fmt: skip


@pytest.fixture(params=UNITS)
def scaled(request, make_domain):
    """One model of each kind, with a pace, in fields of three kinds."""
    torch.manual_seed(1)
    model = UNITS[request.param](make_domain())
    model.pace.copy_(torch.tensor([0.3, 0.0]))
    return model


def test_a_power_of_two_goes_through_a_model_exactly(scaled, make_window):
    window = make_window(scaled.domain)
    expected = scaled(window, 8)
    for power in (-99, -98, -40, 1, 61, 99):
        frame = scaled(ot.Window(2.0**power * window.fields, window.domain), 8)
        assert torch.equal(frame, 2.0**power * expected), power


@pytest.mark.parametrize("units", [(1e-25, 1e20), (1e30, 1e-30), (0.0, 1e-25), (1e19, 0.0)])
def test_units_may_be_mixed_and_a_field_may_be_zero(scaled, make_window, units):
    """Compared with the same model on fields of order one, of which the same are zero."""
    window = make_window(scaled.domain)
    units = torch.tensor(units)[:, None, None]
    expected = scaled(ot.Window(window.fields * (units > 0), window.domain), 8)
    frame = scaled(ot.Window(window.fields * units, window.domain), 8)
    error = (frame - units * expected).flatten(2).abs().amax(dim=2)
    assert bool((error <= 2e-5 * units.flatten()).all())
    assert bool((frame[:, units.flatten() == 0] == 0).all())


def test_nothing_is_refused_if_nobody_checks(model, make_window):
    window = make_window(model.domain)
    window.fields[1, -1, 0, 3, 4] = torch.nan
    with pytest.raises(ot.DomainError, match="1 values that are NaN or infinite"):
        model(window, 8)
    assert bool(model(window, 8, check_finite=False)[1].isnan().any())
    with pytest.raises(ot.DomainError, match="NaN or infinite"):
        ot.rollout(model, window, steps=3, schedule="8").__next__()
    *_, last = ot.rollout(model, window, steps=3, schedule="8", check_finite=False)
    assert bool(last[1].isnan().any())


def test_numbers_of_numpy_are_numbers(model, make_window):
    window = make_window(model.domain)
    expected = model(window, 8, (1, 2))
    assert torch.equal(model(window, np.int64(8), np.array([1, 2])), expected)
    assert torch.equal(model(window, (np.uint8(8), 8), (np.int32(1), 2)), expected)
    if model.patched:
        for wrong in (8.0, True, "8", None if len(model.patches) > 1 else 0):
            with pytest.raises(ot.OvertoneError, match="patch"):
                model(window, wrong)


def test_a_patch_that_fits_nowhere_is_refused_at_once(model, make_window):
    window = make_window(model.domain)
    if model.patched:
        for huge in (10**12, 10**6000):
            with pytest.raises(ot.OvertoneError, match="patch"):
                model(window, huge, allow_untrained=True)


def test_a_change_takes_two_frames_to_be_seen(make_domain, make_window):
    """Whatever the model; one that looks back on a single frame sees none and needs none."""
    domain = make_domain()
    accept_window(make_window(domain, frames=2), domain=domain, context=3, check_finite=True)
    accept_window(make_window(domain, frames=1), domain=domain, context=1, check_finite=True)
    with pytest.raises(ot.DomainError, match="has 1 frames; the model needs at least 2"):
        accept_window(make_window(domain, frames=1), domain=domain, context=3, check_finite=True)
