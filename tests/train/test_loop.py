"""The loop overfits, whatever the model is made of."""

import io
import itertools
import json
import math
from itertools import accumulate

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

import overtone as ot
from overtone.models.flops import call_flops
from overtone.models.storage import load_folder
from overtone.train.config import OptimizerConfig, TrainConfig
from overtone.train.console import Display
from overtone.train.journal import describe, read_journal
from overtone.train.loop import Parts, Trainer, _clocks, update_flops
from overtone.train.objective import choices, losses
from overtone.train.parallel import Ranks
from overtone.train.recipes import recipe
from overtone.train.run import make_model, read, train
from overtone.train.settings import change
from overtone.train.state import learning_rate, make_optimizer
from overtone.train.validate import Validation, Validator

SHAPES = {1: (32,), 2: (16, 8), 3: (8, 4, 8)}
UPDATES = 600


def smooth(*shape):
    """Random waves of the longest lengths, `(2, 4, 1, *shape)`."""
    axes = tuple(range(-len(shape), 0))
    modes = torch.fft.fftn(torch.randn(2, 4, 1, *shape), dim=axes)
    counts = [torch.fft.fftfreq(n, 1 / n) for n in shape]
    square = sum(k.square() for k in torch.meshgrid(*counts, indexing="ij"))
    waves = torch.fft.ifftn(modes * (square <= 2), dim=axes).real
    return waves / waves.std()


@pytest.mark.parametrize(
    ("time", "ndim"),
    [
        ("fold", 1),
        ("fold", 2),
        ("attend", 1),
        pytest.param("attend", 2, marks=pytest.mark.slow),
        pytest.param("fold", 3, marks=pytest.mark.slow),
        pytest.param("attend", 3, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("processor", ["vit", "axial"])
@pytest.mark.parametrize("tokenizer", ["csm", "ckm", "fixed"])
def test_two_windows_are_learnt_by_heart(tokenizer, processor, ndim, time):
    torch.manual_seed(0)
    domain = ot.Domain(SHAPES[ndim], (1.0,) * ndim, "periodic", ("u",), 0.1)
    patches = (4,) if tokenizer == "fixed" else (2, 4)
    model = ot.build(
        processor, tokenizer=tokenizer, patches=patches, domain=domain, context=3, width=64,
        heads=2, blocks=2, mlp_dim=64, layer_scale=1.0, time=time,
    ).train()  # fmt: skip
    frames = smooth(*domain.shape)
    window, target = ot.Window(frames[:, :3], domain), frames[:, 3:]
    rates = OptimizerConfig(lr=4e-3, schedule="cosine", warmup=0.03)
    optimizer = make_optimizer(model, rates)
    config, history = TrainConfig(loss="mse"), []
    for update in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(rates, (update + 1) / UPDATES)
        chosen = choices(config, model.patches, ndim, update, update / UPDATES)
        (loss,) = losses(model.predict_change, window, target, chosen, config, causal=model.causal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if max(history[-8:]) < 0.01 * history[0]:
            break
    assert max(history[-8:]) < 0.01 * history[0]


def test_flops_of_an_update_are_those_of_its_batch():
    config = recipe("kuramoto-sivashinsky-mini")
    domain = ot.Domain((64,), (1.0,), "periodic", ("u",), 0.1)
    model = make_model(config.model, domain)
    options = {"frames": config.model.context, "batch": config.train.batch, "training": True}
    assert update_flops(model, config)[8] == call_flops(model, domain, 8, **options)


@pytest.mark.parametrize(
    "changes",
    [
        {"train__precision": "bf16"},
        {"train__precision": "fp16"},
        {"train__checkpoint_activations": True, "model__drop_path": 0.3},
        {"train__unroll": 3, "train__noise": 0.05},
        {"optimizer__kind": "adam", "optimizer__clip": None},
        {"train__patch_weights": [0.0, 1.0]},
        {"train__unroll": 2, "train__unroll_from": 0.5},
        {"model__time": "attend"},
        {"model__causal": False, "model__time": "attend"},
        {"model__tokenizer": "fixed", "model__patches": [8]},
        {"train__loss": "mae", "valid__rollout_steps": 0},
    ],
    ids="-".join,
)
def test_every_option_trains(small, tmp_path, changes):
    config = small(train__updates=4, valid__every=4, **changes)
    train(config, tmp_path / "run", console=Console(file=io.StringIO()))
    lines = [x for x in read_journal(tmp_path / "run/metrics.jsonl") if x["kind"] == "train"]
    assert all(line["loss"] is not None for line in lines)
    if "train__patch_weights" in changes:
        assert {line["patch"] for line in lines} == {"8"}


def test_every_unrolled_step_is_counted(small, tmp_path):
    """One step an update in the first half, three in the second, at the patches that are drawn."""
    config = small(train__updates=8, valid__every=8, train__unroll=3, train__unroll_from=0.5)
    train(config, tmp_path / "run", console=Console(file=io.StringIO()))
    data = read(config, config.data.path, "train", horizon=3)
    flops = update_flops(make_model(config.model, data.domain), config)
    drawn = [choices(config.train, (4, 8), 1, n, n / 8) for n in range(8)]
    assert [len(steps) for steps in drawn] == [1] * 4 + [3] * 4
    lines = [x for x in read_journal(tmp_path / "run/metrics.jsonl") if x["kind"] == "train"]
    spent = accumulate(sum(flops[patch] for patch, _ in steps) for steps in drawn)
    assert [line["flops"] for line in lines] == list(spent)
    summary = load_folder(tmp_path / "run/last")[1]["training"]
    patches = [str(patch) for steps in drawn for patch, _ in steps]
    assert summary["patches"] == {name: patches.count(name) for name in ("4", "8")}


def test_the_optimizers_step_is_part_of_the_time_spent(small, tmp_path, monkeypatch):
    """A clock that ticks when it is looked at: before, between and after, at every update."""
    ticks = itertools.count()
    monkeypatch.setattr("overtone.train.loop._clocks", lambda: np.full(2, float(next(ticks))))
    train(small(train__updates=4, valid__every=4), tmp_path / "run", console=Console(quiet=True))
    lines = [m for m in read_journal(tmp_path / "run/metrics.jsonl") if m["kind"] == "train"]
    assert [line["seconds"] for line in lines] == [1, 3, 5, 7]
    assert [line["cpu_seconds"] for line in lines] == [1, 3, 5, 7]


def test_a_flexified_model_trains_and_leaves_its_weights(small, tmp_path):
    config = small(train__updates=4, valid__every=4, model__context=2)
    data = read(config, config.data.path, "train", horizon=1)

    def make():
        parts = nn.Conv1d(2, 8, 8, 8), nn.ConvTranspose1d(8, 1, 8, 8)
        model = ot.flexify(nn.Sequential(*parts), "0", "1", patches=(4, 8))
        return ot.FlexibleStepper(model, domain=data.domain, context=2, predicts="change")

    model, own = make(), Ranks(0, 1, torch.device("cpu"))
    valid = read(config, config.data.path, "valid", horizon=1)
    validator = Validator(windows=valid, trajectories=None, config=config.valid, ranks=own)
    parts = Parts(model, data, validator, update_flops(model, config), tmp_path, own)
    before = model.model[0].weight.clone()
    with Display(Console(file=io.StringIO()), quiet=True) as display:
        assert Trainer(config, parts).run(lambda *_: None, display) == "finished"
    assert not torch.equal(model.model[0].weight, before)
    weights, saved = load_folder(tmp_path / "last")
    assert (saved["kind"], saved["training"]["updates"]) == ("flexible", 4)
    again = make()
    again.load_state_dict(weights)
    window = ot.Window(data[0][0].fields.unsqueeze(0), data.domain)
    assert torch.equal(again.eval()(window, 4), model.eval()(window, 4))


@pytest.mark.parametrize(
    ("scores", "best", "kept"),
    [
        ([math.inf, math.nan, 0.5, math.inf, 0.4, math.nan], 0.4, 5),
        ([math.inf, 0.5, math.nan, math.inf], 0.5, 2),
        ([math.nan, math.inf], None, 2),
    ],
)
def test_what_blew_up_is_kept_only_while_there_is_nothing_else(
    small, tmp_path, monkeypatch, scores, best, kept
):
    found = iter(scores)
    monkeypatch.setattr(
        Validator, "__call__", lambda *_: Validation({"4": 0.1, "8": 0.1}, next(found))
    )
    text = io.StringIO()
    config = small(train__updates=len(scores), valid__every=1)
    train(config, tmp_path / "run", console=Console(file=text, width=200))
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["best"], summary["best_update"]) == (best, kept if best else 0)
    assert load_folder(tmp_path / "run/best")[1]["training"]["updates"] == kept
    marked = [line for line in text.getvalue().splitlines() if line.endswith("  best")]
    assert not any("inf" in line or "nan" in line for line in marked)
    assert bool(marked) == (best is not None)
    said = describe(tmp_path / "run")["best"]
    assert f"at update {kept}" in said if best else said == "none: every validation blew up"


def test_recomputed_activations_give_the_same_curve(small, tmp_path):
    curves = []
    for switch in (False, True):
        config = small(train__checkpoint_activations=switch, model__drop_path=0.3)
        train(config, tmp_path / str(switch), console=Console(file=io.StringIO()))
        lines = read_journal(tmp_path / str(switch) / "metrics.jsonl")
        curves.append([line["loss"] for line in lines if line["kind"] == "train"])
    assert curves[0] == pytest.approx(curves[1], rel=1e-5)


@pytest.mark.slow
# torch's own compiler imports deprecated parts of torch, and looks at gradients of block inputs.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_run_has_the_same_curve(small, tmp_path):
    curves = []
    for switch in (False, True):
        config = change(small(train__updates=6), {"train.compile": switch})
        train(config, tmp_path / str(switch), console=Console(file=io.StringIO()))
        lines = read_journal(tmp_path / str(switch) / "metrics.jsonl")
        curves.append([line["loss"] for line in lines if line["kind"] == "train"])
    assert curves[0] == pytest.approx(curves[1], rel=1e-4)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_loss_of_an_update_is_the_mean_of_its_steps_and_parts(
    small, tmp_path, monkeypatch, accumulate
):
    """So one that is unrolled takes no larger step than one that is not."""

    def known(predict, window, target, chosen, config, *, causal):
        yield from (torch.tensor(n + 1.0, requires_grad=True) for n in range(len(chosen)))

    monkeypatch.setattr("overtone.train.loop.losses", known)
    changes = {"train__unroll": 3, "train__unroll_from": 0.5, "train__accumulate": accumulate}
    config = small(train__updates=4, valid__every=4, **changes)
    train(config, tmp_path / "run", console=Console(quiet=True))
    lines = [m for m in read_journal(tmp_path / "run/metrics.jsonl") if m["kind"] == "train"]
    assert [line["loss"] for line in lines] == pytest.approx([1.0, 1.0, 2.0, 2.0])


def test_the_two_clocks_are_the_walls_and_the_processes_own(monkeypatch):
    monkeypatch.setattr("overtone.train.loop.time.monotonic", lambda: 5.0)
    monkeypatch.setattr("overtone.train.loop.time.process_time", lambda: 3.0)
    assert _clocks().tolist() == [5.0, 3.0]


@pytest.mark.parametrize(
    ("limits", "updates"),
    [
        ({}, 9),
        ({"max_minutes": 1 / 3}, 3),
        ({"max_cpu_minutes": 1 / 3}, 6),
        ({"max_minutes": 1 / 3, "max_cpu_minutes": 1 / 3}, 3),
        ({"max_minutes": 10.0, "max_cpu_minutes": 1 / 3}, 6),
        ({"max_minutes": 10.0, "max_cpu_minutes": 10.0}, 9),
    ],
    ids=str,
)
def test_the_first_budget_that_is_used_up_ends_a_run(small, tmp_path, monkeypatch, limits, updates):
    """At every look six seconds have gone by on the wall, of which the process had two."""
    looks = itertools.count()
    monkeypatch.setattr(
        "overtone.train.loop._clocks", lambda: next(looks) * np.array([6.0, 2.0])
    )  # an update has spent (6, 2), and two looks more each one behind it: 20 s at the third, sixth
    given = {f"train__{name}": value for name, value in limits.items()}
    config = small(train__updates=9, valid__every=9, save__every=9, **given)
    train(config, tmp_path / "run", console=Console(quiet=True))
    assert json.loads((tmp_path / "run/summary.json").read_text())["update"] == updates
