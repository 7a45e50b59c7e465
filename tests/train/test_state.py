"""Learning rates, averages and the optimizer's state."""

import math

import pytest
import torch
from torch import nn

from overtone.errors import CheckpointError
from overtone.train.config import OptimizerConfig
from overtone.train.state import (
    Average,
    RunProgress,
    learning_rate,
    make_optimizer,
    optimizer_steps,
    require_state,
    restore_progress,
    set_optimizer_steps,
    state_forms,
    state_tensors,
)


def test_the_rate_rises_and_falls_as_told():
    config = OptimizerConfig(lr=2.0, schedule="cosine", warmup=0.2, final=0.1)
    assert learning_rate(config, 0.0) == 0
    assert learning_rate(config, 0.1) == pytest.approx(1.0)
    assert learning_rate(config, 0.2) == pytest.approx(2.0)
    assert learning_rate(config, 0.6) == pytest.approx(2 * (0.1 + 0.9 / 2))
    assert learning_rate(config, 1.0) == pytest.approx(0.2)
    assert learning_rate(OptimizerConfig(lr=3.0), 0.7) == 3.0


def test_only_matrices_decay():
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    optimizer = make_optimizer(model, OptimizerConfig(weight_decay=0.5))
    decays = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decays[id(model[0].weight)] == 0.5
    assert decays[id(model[0].bias)] == decays[id(model[1].weight)] == 0.0


def test_muon_turns_matrices_and_kernels_and_keeps_one_moment_of_them():
    model = nn.Sequential(nn.Conv2d(2, 3, 4), nn.Linear(3, 3, bias=False), nn.LayerNorm(3))
    config = OptimizerConfig(kind="muon", weight_decay=0.5)
    turned, *_ = make_optimizer(model, config).param_groups
    assert [id(p) for p in turned["params"]] == [id(model[0].weight), id(model[1].weight)]
    assert turned["weight_decay"] == 0.5
    twice = {name for name in state_forms(model, config) if name.startswith("exp_avg_sq.")}
    assert twice == {f"exp_avg_sq.{name}" for name in ("0.bias", "2.weight", "2.bias")}


def test_complex_weights_keep_adamw():
    model = nn.Linear(4, 4, bias=False, dtype=torch.complex64)
    assert isinstance(make_optimizer(model, OptimizerConfig(kind="muon")), torch.optim.AdamW)


@pytest.mark.parametrize(
    ("kind", "plain"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_steps_are_those_of_torchs_plain_optimizer(kind, plain, dtype):
    def steps(make):
        torch.manual_seed(0)
        model = nn.Linear(4, 4, bias=False, dtype=dtype)
        optimizer = make(model)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(1, 4, dtype=dtype)).abs().square().sum().backward()
            optimizer.step()
        return model.weight.detach()

    config = OptimizerConfig(kind=kind, lr=0.1, weight_decay=0.1)
    options = {"lr": 0.1, "weight_decay": 0.1, "betas": config.betas, "foreach": False}
    found = steps(lambda model: make_optimizer(model, config))
    torch.testing.assert_close(found, steps(lambda model: plain(model.parameters(), **options)))


def test_the_average_by_its_formula():
    model = nn.Linear(2, 2, bias=False)
    average, expected = Average(model, 0.5), model.weight.detach().clone()
    for update in range(1, 6):
        with torch.no_grad():
            model.weight.add_(1.0)
        average.follow(update)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * model.weight.detach()
    torch.testing.assert_close(average.weights["weight"], expected)
    own = model.weight.detach().clone()
    with average.in_place():
        torch.testing.assert_close(model.weight.detach(), expected)
    assert torch.equal(model.weight, own)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_a_restored_optimizer_goes_on_alike(kind):
    config = OptimizerConfig(kind=kind, lr=0.1)

    def make():
        torch.manual_seed(0)
        model = nn.Linear(4, 4)
        return model, make_optimizer(model, config)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(1, 4)).square().sum().backward()
        optimizer.step()

    model, optimizer = make()
    step(model, optimizer)
    step(model, optimizer)
    saved = {k: v.clone() for k, v in state_tensors(model, optimizer, None, config).items()}
    again, other = make()
    again.load_state_dict(model.state_dict())
    for name, tensor in state_tensors(again, other, None, config).items():
        tensor.copy_(saved[name])
    set_optimizer_steps(other, optimizer_steps(optimizer))
    step(model, optimizer)
    step(again, other)
    assert torch.equal(model.weight, again.weight)


def test_progress_survives_json():
    progress = RunProgress(update=3, seconds=1.5, patches={"4": 2}, best=math.pi)
    assert restore_progress({**progress.to_dict(), "more": 1}) == progress


GOOD = {
    **RunProgress(update=3, seconds=1.5, patches={"4": 2, "8": 1}, best=0.5).to_dict(),
    "optimizer_steps": 3.0,
    "scaler": {},
    "data": {"train": {"fingerprint": "a"}},
}


def test_a_good_state_is_accepted():
    assert require_state(GOOD, ["4", "8"]) is None
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(torch.ones(1))
    older = {key: value for key, value in GOOD.items() if key != "data"}
    older |= {"best": None, "scaler": scaler.state_dict()}
    assert require_state(older, ["4", "8"]) is None


@pytest.mark.parametrize("name", [key for key in GOOD if key != "data"])
def test_a_state_that_lacks_something_is_refused(name):
    without = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(CheckpointError, match=f"it lacks {name}"):
        require_state({**without, f"{name}_": GOOD[name]}, ["4", "8"])


@pytest.mark.parametrize(
    "changes",
    [
        *({name: wrong} for name in GOOD for wrong in (-1, "1", [1], math.inf, {"": None})),
        {"update": 3.0},
        {"stale": True},
        {"seconds": None},
        {"patches": {"4": 2}},
        {"patches": {"4": 2, "16": 1}},
        {"patches": {"4": 2, "8": -1}},
        {"patches": {"4": 2, "8": 1.0}},
        {"scaler": {"scale": 1.0}},
    ],
    ids=str,
)
def test_a_state_with_something_else_in_it_is_refused(changes):
    (name,) = changes
    with pytest.raises(CheckpointError, match=f"can go on from: {name} is "):
        require_state(GOOD | changes, ["4", "8"])


@pytest.mark.parametrize("ema", [None, 0.9])
def test_forms_are_those_of_the_tensors(ema):
    model, config = nn.Linear(3, 2), OptimizerConfig(ema=ema)
    average = Average(model, ema) if ema else None
    made = state_tensors(model, make_optimizer(model, config), average, config)
    forms = state_forms(model, config)
    assert forms.keys() == made.keys()
    assert all(forms[n].shape == t.shape and forms[n].dtype == t.dtype for n, t in made.items())
