"""`ot.fit`: the loop of `overtone train` on what a program has in memory."""

import io
import json
import os
import signal

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from torch import nn
from torch.utils.data import Dataset

import overtone as ot
from overtone.data import ArrayWindows, WellFolder
from overtone.errors import ConfigError, DataError, DomainError, OvertoneError
from overtone.models.cvit import build_cvit
from overtone.train.fit import fit
from overtone.train.recipes import for_data
from overtone.train.run import make_model, train
from overtone.train.settings import change, load_config
from overtone.train.validate import Validation, Validator

QUIET = Console(file=io.StringIO())
FEW = {
    "train.batch": 4, "valid.windows": 4, "valid.rollouts": 2, "valid.rollout_steps": 3,
    "valid.points": 2, "train.threads": 1, "log.tensorboard": False,
}  # fmt: skip


@pytest.fixture
def split(waves):
    """The trajectories of a split, as arrays `(T, C, *space)`."""

    def frames(name):
        data = WellFolder(waves, name)
        count = range(data.num_trajectories)
        return [data.frames(i, 0, data.num_frames(i)).fields.numpy() for i in count]

    return frames


@pytest.fixture
def domain(waves):
    return WellFolder(waves, "train").domain


def small_model(domain, context=3, patches=(4, 8)):
    torch.manual_seed(0)
    return ot.build(
        "vit", domain=domain, patches=patches, context=context, width=16, heads=2, blocks=2,
        mlp_dim=24,
    )  # fmt: skip


def flexible(domain, **options):
    torch.manual_seed(0)
    parts = nn.Conv1d(3, 8, 8, 8), nn.ConvTranspose1d(8, 1, 8, 8)
    model = ot.flexify(nn.Sequential(*parts), "0", "1", patches=(4, 8))
    return ot.FlexibleStepper(model, domain=domain, context=3, predicts="change", **options)


MODELS = {
    "emulator": small_model,
    "baseline": lambda domain: ot.baseline("unet", domain=domain, context=3, size="mini"),
    "cvit": lambda domain: build_cvit(
        domain=domain, tokenizer="ckm", patches=(4, 8), size="mini", context=3
    ),
    "flexible": flexible,
}


def weights_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def differences(one, other):
    """Names of weights that only one of two models has, or that are not the same."""
    shared = one.keys() & other.keys()
    return (one.keys() ^ other.keys()) | {n for n in shared if not torch.equal(one[n], other[n])}


@pytest.mark.parametrize("unroll", [1, 3])
def test_arrays_give_bit_for_bit_the_weights_of_the_command(
    overtone, waves, split, domain, tmp_path, unroll
):
    """The same data, the same settings: one from a folder, the other from memory."""
    settings = (
        "train.updates=9", "model.width=16", "model.heads=2", "model.blocks=2", "model.mlp_dim=24",
        "model.context=3", "model.patches=[4, 8]", "model.drop_path=0.1", "train.noise=0.01",
        f"train.unroll={unroll}", "train.unroll_from=0.5", "train.threads=1", "valid.windows=4",
        "valid.rollouts=2", "valid.rollout_steps=3", "log.tensorboard=false",
    )  # fmt: skip
    out = tmp_path / "run"
    code, text = overtone("train", "mine", *settings, "--data", waves, "--out", out)
    assert code == 0, text
    config = load_config(out / "config.json")
    torch.manual_seed(config.train.seed)
    model = make_model(config.model, domain)
    before = weights_of(model)
    state = torch.get_rng_state()
    model, history = fit(
        model, split("train"), valid=split("valid"), settings=config, console=QUIET
    )
    assert torch.equal(torch.get_rng_state(), state)  # a caller's own draws are left alone
    assert not torch.equal(before["pace"], model.pace)
    assert not differences(weights_of(model), load_file(out / "best/model.safetensors"))
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for kind, name in (("train", "loss"), ("valid", "vrmse")):
        found = [record[name] for record in getattr(history, kind)]
        assert found == [line[name] for line in lines if line["kind"] == kind]


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_model_learns(split, domain, kind):
    model = MODELS[kind](domain)
    before = weights_of(model)
    fitted, history = fit(model, split("train"), updates=4, settings=FEW, console=QUIET)
    assert fitted is model
    assert not model.training
    assert any(not torch.equal(before[name], t) for name, t in model.named_parameters())
    assert [record["update"] for record in history.valid] == [2, 4]
    assert bool(model.pace.any())


class Pairs(Dataset):
    """Somebody's own dataset."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def test_all_kinds_of_data_give_the_same_model(waves, split, domain):
    """A folder, an open folder, lists of arrays, windows of them, and a dataset of pairs."""
    settings = FEW | {"train.unroll": 1, "train.unroll_from": 0.0}
    facts = {
        "dt": domain.dt, "extent": domain.extent, "boundaries": domain.boundaries,
        "fields": ",".join(domain.fields), "layout": "tcx",
    }  # fmt: skip
    kinds = {
        "path": (str(waves), None),
        "folder": (WellFolder(waves, "train", context=2), None),
        "arrays": (split("train"), split("valid")),
        "tensors": ([torch.tensor(a) for a in split("train")], split("valid")),
        "understood": tuple(
            ot.data.from_arrays(split(name), **facts) for name in ("train", "valid")
        ),
        "windows": (ArrayWindows(split("train"), domain, 2), ArrayWindows(split("valid"), domain)),
        "pairs": (
            Pairs(WellFolder(waves, "train", 3, 1)), Pairs(WellFolder(waves, "valid", 3, 3)),
        ),
    }  # fmt: skip
    found = {}
    for name, (data, valid) in kinds.items():
        model = small_model(domain)
        fit(model, data, valid=valid, updates=4, settings=settings, console=QUIET)
        found[name] = weights_of(model)
    for name in kinds.keys() - {"pairs"}:
        assert not differences(found[name], found["path"])
    # Windows of three target frames are other windows to validate by, but the training is the same.
    model = small_model(domain)
    last = FEW | settings | {"valid.points": 1, "valid.rollout_steps": 0}
    fit(model, kinds["path"][0], updates=4, settings=last, console=QUIET)
    other, (data, valid) = small_model(domain), kinds["pairs"]
    fit(other, data, valid=valid, updates=4, settings=last, console=QUIET)
    assert not differences(weights_of(model), weights_of(other))


def test_arrays_without_more_are_divided_by_trajectories(split, domain):
    found = []
    model = small_model(domain)
    fit(model, np.stack(split("train")), updates=2, settings=FEW, console=QUIET,
        callbacks=found.append)  # fmt: skip
    assert [record["update"] for record in found] == [1, 2]


def test_nothing_is_written_without_a_folder(split, domain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit(small_model(domain), split("train"), updates=2, settings=FEW, console=QUIET)
    assert list(tmp_path.rglob("*")) == []


def test_with_a_folder_it_resumes_to_the_same_weights(split, domain, tmp_path):
    options = {"updates": 8, "settings": FEW | {"log.every": 1}, "console": QUIET}
    whole = fit(small_model(domain), split("train"), out=tmp_path / "whole", **options)
    stopped = fit(
        small_model(domain), split("train"), out=tmp_path / "parts", **options,
        callbacks=lambda record: True,
    )  # fmt: skip
    assert (stopped.history.status, stopped.history.records[-1]["update"]) == ("stopped early", 4)
    again = small_model(domain)
    resumed = fit(again, split("train"), out=tmp_path / "parts", resume=True, **options)
    assert not differences(weights_of(whole.model), weights_of(resumed.model))
    losses = [[r["loss"] for r in f.history.train] for f in (whole, resumed)]
    assert losses[0] == losses[1]
    assert len(resumed.history.valid) == 2
    assert "arrays: 2 trajectories of 14 frames" in (tmp_path / "parts/config.yaml").read_text()
    with pytest.raises(ConfigError, match="holds a run already"):
        fit(small_model(domain), split("train"), out=tmp_path / "parts", **options)
    with pytest.raises(ConfigError, match="trained on other data"):
        fit(small_model(domain), split("train")[::-1], out=tmp_path / "parts", resume=True,
            **options)  # fmt: skip
    assert not differences(weights_of(ot.load(tmp_path / "parts")), weights_of(whole.model))


def test_a_run_in_memory_can_not_go_on_by_the_command(overtone, split, domain, tmp_path):
    fit(small_model(domain), split("train"), updates=2, settings=FEW, out=tmp_path / "run",
        console=QUIET)  # fmt: skip
    code, text = overtone("train", "mine", "--resume", "--out", tmp_path / "run")
    assert code == 2
    assert "fit(..., out=..., resume=True)" in text


@pytest.mark.parametrize("written", [False, True])
def test_the_best_weights_are_kept_and_not_the_last(split, domain, tmp_path, monkeypatch, written):
    measured, scores = [], iter([0.3, 0.1, 0.2, 0.4])

    def measure(self, model):
        measured.append(weights_of(model))
        return Validation({"4": 0.1, "8": 0.1}, next(scores))

    monkeypatch.setattr(Validator, "__call__", measure)
    model = small_model(domain)
    fit(model, split("train"), updates=4, settings=FEW | {"valid.points": 4, "optimizer.ema": 0.5},
        out=tmp_path / "run" if written else None, console=QUIET)  # fmt: skip
    assert not differences(weights_of(model), measured[1])


def test_ctrl_c_keeps_the_best_so_far(split, domain):
    model, kept = small_model(domain), []

    def interrupt(record):
        kept.append(weights_of(model))
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    _, history = fit(
        model, split("train"), updates=40, settings=FEW | {"valid.points": 10, "log.every": 1},
        callbacks=interrupt, console=QUIET,
    )  # fmt: skip
    assert history.status == "interrupted"
    assert history.records[-1]["update"] == 5  # the one that was under way was finished
    assert not differences(weights_of(model), kept[0])
    assert signal.getsignal(signal.SIGINT) is before
    assert "interrupted" in repr(history)


def test_callbacks_get_plain_records(split, domain):
    records = []
    callbacks = [records.append, lambda record: record["update"] >= 2]
    _, history = fit(
        small_model(domain), split("train"), updates=8, settings=FEW | {"valid.points": 8},
        callbacks=callbacks, console=QUIET,
    )  # fmt: skip
    assert history.status == "stopped early"
    assert [record["update"] for record in records] == [1, 2]
    assert json.loads(json.dumps(records)) == records
    assert all(type(record["minutes"]) is float for record in records)
    assert records[0]["better"] is True
    assert records[-1]["best"] == min(record["score"] for record in records)


def test_the_history_draws_itself(split, domain):
    _, history = fit(small_model(domain), split("train"), updates=12, settings=FEW, quiet=True)
    assert history._repr_png_().startswith(b"\x89PNG")
    assert [axes.get_title() for axes in history.plot().axes[:2]] == ["training", "validation"]
    assert repr(history).startswith("History(finished, 12 updates, 2 validations, best 0.")


def test_a_budget_of_minutes_ends(split, domain):
    text = io.StringIO()
    console = Console(file=text, width=80)
    fit(small_model(domain), split("train"), minutes=0.003, settings=FEW, console=console)
    assert "0.0/0.003 min ETA 0:00:00" in text.getvalue()


def test_settings_of_a_recipe_are_taken_as_they_are(waves, domain, tmp_path):
    config = change(for_data(waves), FEW)
    fit(small_model(domain), waves, settings=config, updates=2, out=tmp_path / "run", console=QUIET)
    written = load_config(tmp_path / "run/config.json")
    assert (written.recipe, written.data.path) == ("mine", str(waves))
    assert (written.train.updates, written.train.max_minutes) == (2, None)
    assert (written.model.patches, written.model.context) == ((4, 8), 3)


def test_a_folder_is_read_as_the_settings_say(waves, tmp_path):
    coarse = WellFolder(waves, "train", coarsen=2).domain
    settings = FEW | {"data.coarsen": 2, "valid.rollout_steps": 0}
    for data, own in ((waves, settings), (WellFolder(waves, coarsen=2), FEW)):
        model = small_model(coarse)
        fit(model, data, updates=2, settings=own, out=tmp_path / "run", overwrite=True,
            console=QUIET)  # fmt: skip
        assert load_config(tmp_path / "run/config.json").data.coarsen == 2


PLAIN = nn.Conv1d(1, 1, 1)


@pytest.mark.parametrize(
    ("change_of", "kind", "message"),
    [
        ({"model": PLAIN}, OvertoneError, "model is a Conv1d; .*ot.flexify it, then"),
        ({"model": "persistence"}, OvertoneError, "no weights to train"),
        ({"data": 3}, DataError, "train data is a int; expected a Well folder"),
        ({"data": [1, 2]}, DataError, "train data is a list; expected"),
        ({"data": "nowhere"}, DataError, "nowhere"),
        (
            {"settings": {"train.batch": 1000}},
            ConfigError,
            "train.batch is 1000; there are 16 windows .*most 16",
        ),
        ({"settings": {"train.bach": 1}}, ConfigError, "did you mean 'train.batch'"),
        ({"settings": {"data.coarsen": 2}}, ConfigError, "data.coarsen is for folders"),
        ({"settings": {"model.unit": "pac"}}, ConfigError, "unit"),
        ({"settings": {"log.wandb": True}}, ConfigError, "wandb is not installed"),
        ({"other_dt": True}, DomainError, "dt is 7.0, the model steps by"),
        ({"context": 20}, DataError, "14 frames; context 20"),
    ],
    ids=str,
)
def test_a_start_that_fails_leaves_nothing_behind(
    split, domain, tmp_path, change_of, kind, message
):
    options = {"settings": FEW, **change_of}
    model = options.pop("model", small_model(domain, context=options.pop("context", 3)))
    if model == "persistence":
        model = ot.baseline("persistence", domain=domain, context=3)
    if options.pop("other_dt", False):
        options["domain"] = ot.Domain(domain.shape, domain.extent, "periodic", domain.fields, 7.0)
    data = options.pop("data", split("train"))
    with pytest.raises(kind, match=message):
        fit(model, data, updates=2, out=tmp_path / "deep/run", console=QUIET, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_of_pairs_needs_others_to_validate_by(waves, domain):
    pairs = Pairs(WellFolder(waves, "train", 3, 1))
    with pytest.raises(DataError, match="nothing to validate by: a Pairs .*valid="):
        fit(small_model(domain), pairs, updates=2, settings=FEW)
    short = Pairs(WellFolder(waves, "valid", 2, 1))
    with pytest.raises(DataError, match="have 2 . 1 frames; context 3 and 1 target"):
        fit(small_model(domain), pairs, valid=short, updates=2, settings=FEW, quiet=True)


def test_a_pace_that_is_known_is_kept(split, domain):
    model = small_model(domain)
    fit(model, split("train"), updates=1, settings=FEW, quiet=True)
    known = model.pace.clone(), model.scale.clone()
    assert bool(known[1].any())
    fit(model, [3 * a**3 for a in split("train")], updates=1, settings=FEW, quiet=True)
    assert torch.equal(model.pace, known[0])
    assert torch.equal(model.scale, known[1])


def test_a_model_that_learned_without_a_scale_gets_none(split, domain):
    """Its weights know fields in their own standard deviation."""
    model = small_model(domain)
    model.pace.fill_(0.1)
    fit(model, split("train"), updates=1, settings=FEW, quiet=True)
    assert not bool(model.scale.any())


def test_the_command_and_fit_are_the_same_loop(small, split, domain, tmp_path):
    """As above, for a recipe whose validations come every so many updates."""
    config = small(train__updates=6, valid__every=3)
    train(config, tmp_path / "run", console=QUIET)
    torch.manual_seed(config.train.seed)
    model = make_model(config.model, domain)
    fit(model, split("train"), valid=split("valid"), settings=config, quiet=True)
    assert not differences(weights_of(model), load_file(tmp_path / "run/best/model.safetensors"))
