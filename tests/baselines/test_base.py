"""What holds for every baseline: learning, gradients, saving, boundaries, and refusals."""

import copy
import json
from importlib import import_module

import pytest
import torch

import overtone as ot
from overtone.baselines import BASELINES, Baseline, find
from overtone.models.architecture import PARTS
from overtone.models.flops import call_flops
from overtone.normalize import statistics

# FFNO's twelve modes need at least 22 cells; here it has as many as the grid.
USES_ALL = {"ffno": {"modes": 8}}
SPECTRAL = ["fno", "tfno", "ffno"]  # commute with any shift
STRIDES = {"unet": 8, "cnext_unet": 8, "sinenet": 8} | dict.fromkeys(SPECTRAL, 1)


def change_loss(model, fields, domain):
    window = ot.Window(fields[:, :-1], domain)
    change, stats = model.predict_change(window, None)
    target = stats.change_between(fields[:, -2:-1], fields[:, -1:])
    return (change - target).square().mean()


@pytest.mark.parametrize(
    "name",
    ["fno", "tfno", "ffno", "unet", "cnext_unet", "afno_net", "sinenet",
     pytest.param("transolver", marks=pytest.mark.slow)],
)  # fmt: skip
def test_two_windows_are_learned_by_heart(make_baseline, make_domain, waves, name):
    domain = make_domain((16, 16))
    model = make_baseline(name, domain).train()
    fields = waves(domain, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = [change_loss(model, fields, domain)]
    while losses[-1] >= 0.05 * losses[0].detach() and len(losses) < 200:
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
        losses.append(change_loss(model, fields, domain))
    assert losses[-1] < 0.05 * losses[0]


@pytest.mark.parametrize("boundaries", ["periodic", ("periodic", ("wall", "open"))])
def test_gradients_reach_every_parameter(
    make_baseline, make_domain, make_window, learned, boundaries
):
    domain = make_domain((16, 24), boundaries)
    model = make_baseline(learned, domain, **USES_ALL.get(learned, {})).train()
    model.predict_change(make_window(domain), None)[0].square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def test_saved_and_loaded_models_are_the_same_bit_by_bit(
    make_baseline, make_window, learned, tmp_path
):
    model = make_baseline(learned)
    window = make_window(model.domain)
    model.train().predict_change(window, None)  # moves running statistics, where there are some
    model.eval().save(tmp_path / "model", training={"updates": 7})
    for again in (Baseline.from_pretrained(tmp_path / "model"), ot.load(tmp_path / "model")):
        assert type(again) is type(model)
        assert again.options == model.options
        assert again.domain == model.domain
        assert not again.training
        assert torch.equal(again(window), model(window))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["kind"], config["name"], config["context"]) == ("baseline", learned, 3)
    assert config["training"] == {"updates": 7}


@pytest.mark.parametrize("name", STRIDES)
def test_on_periodic_domains_shifts_commute(make_baseline, make_domain, make_window, name):
    domain = make_domain((16, 24))
    model = make_baseline(name, domain)
    window = make_window(domain)
    move = {"shifts": (STRIDES[name], 2 * STRIDES[name]), "dims": (-2, -1)}
    rolled = ot.Window(window.fields.roll(**move), domain)
    expected = model(window).roll(**move)
    scale = (expected - window.fields[:, -1].roll(**move)).abs().max()
    assert (model(rolled) - expected).abs().max() < 1e-5 * scale


@pytest.mark.parametrize("shape", [(17, 22), (9, 31)])
@pytest.mark.parametrize(
    "name", ["unet", "cnext_unet", "sinenet", "afno_net", "transolver", "ffno"]
)
def test_any_grid_is_padded_and_cropped(make_baseline, make_domain, make_window, name, shape):
    for boundaries in ("periodic", "wall"):
        domain = make_domain(shape, boundaries)
        frame = make_baseline(name, domain)(make_window(domain))
        assert frame.shape == (2, 2, *shape)
        assert frame.isfinite().all()


@pytest.mark.parametrize("shape", [(32,), (12, 16, 16)])
def test_one_and_three_dimensions(make_baseline, make_domain, make_window, learned, shape):
    domain = make_domain(shape, boundaries=["wall", *["periodic"] * (len(shape) - 1)])
    small = {"modes": 8} if learned in SPECTRAL else {}
    frame = make_baseline(learned, domain, **small)(make_window(domain, batch=1))
    assert frame.shape == (1, 2, *shape)
    assert frame.isfinite().all()


def test_other_grid_sizes_than_the_one_built_for(make_baseline, make_domain, make_window, learned):
    model = make_baseline(learned, make_domain((16, 24)))
    other = make_domain((24, 32))
    assert model(make_window(other)).shape == (2, 2, 24, 32)


def test_the_change_is_in_units_of_the_context(make_baseline, make_window, learned):
    """Amplitude and mean of a field make no difference, as for an emulator."""
    model = make_baseline(learned)
    window = make_window(model.domain)
    scale = torch.tensor([1e3, 1e-3]).reshape(2, 1, 1)
    scaled = ot.Window(5 * scale + scale * window.fields, model.domain)
    change, stats = model.predict_change(window)
    again, _ = model.predict_change(scaled)
    assert change.shape == (2, 1, 2, 16, 24)
    assert (change - again).abs().max() < 0.01 * change.abs().max()
    assert torch.equal(stats.change, statistics(window.fields).change[:, -1:])
    frame = window.fields[:, -1] + change[:, 0] * stats.change[:, 0, :, None, None]
    assert torch.allclose(model(window), frame, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["cnext_unet", "afno_net", "transolver", "sinenet", "ffno", "unet"]
)
def test_checkpointing_changes_no_gradient(make_baseline, make_window, name):
    model = make_baseline(name).train()
    window = make_window(model.domain)
    gradients = []
    for enabled in (False, True):
        twin = copy.deepcopy(model)
        twin.checkpoint_activations(enabled)
        twin.predict_change(window)[0].square().mean().backward()
        gradients.append([p.grad for p in twin.parameters()])
    for kept, computed_again in zip(*gradients, strict=True):
        assert torch.allclose(kept, computed_again, rtol=1e-4, atol=1e-7)


def test_any_patch_is_taken_where_there_are_none(make_baseline, make_window, learned):
    model = make_baseline(learned)
    window = make_window(model.domain)
    if model.patched:
        assert model.patches == (8,)
        with pytest.raises(ot.PatchError, match="has the fixed patch 8"):
            model(window, 4)
        assert torch.equal(model(window, 8), model(window))
    else:
        assert model.patches == (1,)
        assert torch.equal(model(window, 4, 3), model(window))
    assert not model.causal


def test_rolls_out_like_any_model(make_baseline, make_window, learned):
    model = make_baseline(learned)
    schedule = ot.Constant(model.patches[0])
    frames = [*ot.rollout(model, make_window(model.domain), steps=3, schedule=schedule)]
    assert len(frames) == 3
    assert all(frame.shape == (2, 2, 16, 24) for frame in frames)


@pytest.mark.parametrize("name", ["unet", "transolver", "afno_net"])
def test_flops_are_counted(make_baseline, name):
    model = make_baseline(name)
    once = call_flops(model, model.domain, model.patches[0], frames=3)
    assert 0 < once < call_flops(model, model.domain, model.patches[0], frames=3, training=True)


@pytest.mark.parametrize("name", ["unet", "ffno", "afno_net", "fno"])
def test_half_precision_gives_about_the_same(make_baseline, make_window, name):
    model = make_baseline(name)
    window = make_window(model.domain)
    whole, _ = model.predict_change(window)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half, _ = model.predict_change(window)
    assert (half - whole).abs().mean() < 0.05 * whole.abs().mean()


def test_bad_windows(make_baseline, make_domain, make_window):
    model = make_baseline("unet")
    domain = model.domain
    with pytest.raises(ot.DomainError, match="2 frames; 'unet' joins exactly 3.*context=2"):
        model(make_window(domain, frames=2))
    with pytest.raises(ot.DomainError, match="has the fields"):
        model(make_window(make_domain((16, 24), fields=("a", "c"))))
    fields = make_window(domain).fields
    fields[0, 1, 0, 2, 3] = torch.nan
    with pytest.raises(ot.DomainError, match=r"NaN.*cell \(2, 3\)"):
        model(ot.Window(fields, domain))
    walls = make_baseline("unet", make_domain((16, 24), ("periodic", "wall")))
    with pytest.raises(ot.DomainError, match="axis 1 is periodic, the model.s is wall"):
        walls(make_window(domain))


def test_older_frames_than_the_context_make_no_difference(make_baseline, make_window):
    model = make_baseline("unet")
    window = make_window(model.domain, frames=5)
    assert torch.equal(model(window), model(window.last(3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(name="unett"), "did you mean 'unet'"),
        (lambda c: c["options"].update(width=8), "do not match its configuration"),
        (lambda c: c["options"].update(colour="red"), "does not fit.*colour"),
        (lambda c: c.pop("domain"), "does not fit"),
        (lambda c: c.pop("kind"), "does not hold a baseline"),
    ],
)
def test_folders_that_were_edited(make_baseline, tmp_path, change, message):
    make_baseline("unet").save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))
    with pytest.raises(ot.CheckpointError, match=message):
        Baseline.from_pretrained(tmp_path / "model")


def test_each_says_what_it_assumes():
    periodic = {name for name in BASELINES if find(name).assumes_periodic}
    assert periodic == {"fno", "tfno", "ffno", "afno_net", "coarse_solver"}
    assert [name for name in BASELINES if find(name).patched] == ["afno_net"]


def test_units_do_not_matter(make_baseline, make_window, learned):
    model = make_baseline(learned, width=8)
    window = make_window(model.domain)
    expected = model(window, 8)
    for power in (-99, 99):
        frame = model(ot.Window(2.0**power * window.fields, window.domain), 8)
        assert torch.equal(frame, 2.0**power * expected)
    units = torch.tensor([1e-25, 1e20])[:, None, None]
    frame = model(ot.Window(units * window.fields, window.domain), 8)
    assert bool(((frame - units * expected).abs() <= 1e-4 * units).all())


def test_what_does_not_fit_is_refused_before_it_is_built(make_baseline, learned):
    for name, usual in find(learned).sizes["mini"].items():
        if name in PARTS or name == "levels":
            with pytest.raises(ot.OvertoneError, match=f"{name} is 1000000000; expected at most"):
                make_baseline(learned, **{name: 10**9})
        for wrong in ("8", None, [8]) if isinstance(usual, int) else ():
            with pytest.raises(ot.OvertoneError, match=f"{name} is .*; expected an int"):
                make_baseline(learned, **{name: wrong})
    with pytest.raises(ot.OvertoneError, match="parameters takes .*, but only .* are available"):
        make_baseline(learned, width=2**31 - 2**10)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("unet", {"levels": 30}),
        ("cnext_unet", {"levels": 30}),
        ("sinenet", {"levels": 30, "growth": 2.0}),
        ("ffno", {"modes": 10**9}),
        ("transolver", {"reference": 10**6}),
        ("afno_net", {"expansion": 10**9}),
    ],
)
def test_other_numbers_count_too(make_baseline, name, options):
    with pytest.raises(ot.OvertoneError, match="parameters takes .*, but only .* are available"):
        make_baseline(name, **options)


def test_waves_may_not_grow_without_bounds(make_baseline):
    for growth in (0.0, -1.0, 1e9, float("nan")):
        with pytest.raises(ot.OvertoneError, match="growth is"):
            make_baseline("sinenet", growth=growth)


def test_no_baseline_has_fewer_weights_than_are_counted(make_baseline, learned, monkeypatch):
    counted = []
    module = import_module(find(learned).__module__)
    monkeypatch.setattr(module, "require_weights", counted.append)
    model = make_baseline(learned)
    assert 0 < counted[0] <= model.num_parameters
