"""Going on with a run: where, with which settings and on which data."""

import io
import json
import shutil

import h5py
import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from overtone.errors import CheckpointError, ConfigError, OvertoneError
from overtone.models.storage import load_folder
from overtone.train.journal import describe, read_journal
from overtone.train.run import train
from overtone.train.state import learning_rate

QUIET = Console(file=io.StringIO())


def weights(folder):
    return load_file(folder / "last/model.safetensors")


def require_equal(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def test_a_resumed_run_may_last_longer_but_not_be_another(small, tmp_path):
    train(small(), tmp_path / "run", console=QUIET)
    longer = small(train__updates=14)
    assert train(longer, tmp_path / "run", resume=True, console=QUIET).status == "finished"
    other = small(train__updates=14, train__loss="mse", model__width=8, optimizer__lr=1e-3)
    named = (
        r"settings \(model\.width: 16 before, 8 now; train\.loss: nmse before, mse now\); resume"
    )
    with pytest.raises(ConfigError, match=named):
        train(other, tmp_path / "run", resume=True, console=QUIET)


def test_a_resumed_run_may_take_other_steps_and_says_so(small, tmp_path):
    train(small(train__updates=4), tmp_path / "run", console=QUIET)
    text = io.StringIO()
    changes = {"optimizer__lr": 1e-3, "optimizer__clip": None, "train__batch": 2}
    config = small(train__updates=8, valid__rollout_steps=0, **changes)
    train(config, tmp_path / "run", resume=True, console=Console(file=text, width=200))
    assert "changed: optimizer.lr was 0.008, is 0.001\n" in text.getvalue()
    lines = read_journal(tmp_path / "run/metrics.jsonl")
    (noted,) = [line for line in lines if line["kind"] == "resume"]
    assert noted["update"] == 4
    assert noted["changed"] == {
        "optimizer.clip": {"before": 1.0, "now": None},
        "optimizer.lr": {"before": 0.008, "now": 0.001},
        "train.batch": {"before": 4, "now": 2},
        "train.updates": {"before": 4, "now": 8},
        "valid.rollout_steps": {"before": 3, "now": 0},
    }
    rates = {line["update"]: line["lr"] for line in lines if line["kind"] == "train"}
    assert rates[5] == learning_rate(config.optimizer, 0.5)
    assert (
        "at update 4 with other optimizer.clip, optimizer.lr"
        in describe(tmp_path / "run")["resumed"]
    )


@pytest.mark.parametrize("budget", ["updates", pytest.param("flops", marks=pytest.mark.slow)])
def test_resumed_before_at_and_after_the_switch_to_more_steps(small, tmp_path, budget):
    changes = {"train__unroll": 3, "train__unroll_from": 0.5, "train__shift": True,
               "train__noise": 0.01, "train__updates": 8, "valid__every": 100, "save__every": 1,
               "save__keep": 50, "valid__rollout_steps": 0}  # fmt: skip
    if budget == "flops":
        changes |= {"train__updates": 100, "train__max_flops": 2e7}
    config = small(**changes)
    train(config, tmp_path / "whole", console=QUIET)
    whole = flops_of(tmp_path / "whole")
    shares = [n / 8 for n in range(1, 9)] if budget == "updates" else [n / 2e7 for n in whole]
    switch = next(n for n, share in enumerate(shares, start=1) if share >= 0.5)
    assert 1 < switch < len(whole) - 1
    for update in (switch - 1, switch, switch + 1):
        folder = tmp_path / f"from-{update}"
        shutil.copytree(tmp_path / "whole", folder)
        for later in range(update + 1, len(whole) + 1):
            shutil.rmtree(folder / f"checkpoints/update-{later:08d}")
        text = io.StringIO()
        train(config, folder, resume=True, console=Console(file=text, width=200))
        assert f"resuming from update {update}\n" in text.getvalue()
        require_equal(weights(tmp_path / "whole"), weights(folder))
        assert flops_of(folder) == whole
        runs = (tmp_path / "whole", folder)
        one, other = (load_folder(run / "last")[1]["training"]["patches"] for run in runs)
        assert one == other


def flops_of(run):
    """What was spent after each update."""
    return [x["flops"] for x in read_journal(run / "metrics.jsonl") if x["kind"] == "train"]


def test_a_run_of_an_older_version_goes_on_as_what_it_was(small, tmp_path):
    """It has no setting for time, and all its emulators attended."""
    train(small(train__updates=4, model__time="attend"), tmp_path / "run", console=QUIET)
    file = tmp_path / "run/config.json"
    older = json.loads(file.read_text())
    del older["model"]["time"], older["train"]["unroll_from"]
    older["model"]["causal"] = True
    file.write_text(json.dumps(older))
    with pytest.raises(ConfigError, match=r"\(model\.time: attend before, fold now\)"):
        train(small(train__updates=6), tmp_path / "run", resume=True, console=QUIET)
    config = small(train__updates=6, model__time="attend")
    assert train(config, tmp_path / "run", resume=True, console=QUIET).status == "finished"


def test_an_unchanged_resume_is_not_noted(small, tmp_path):
    train(small(train__updates=4), tmp_path / "run", console=QUIET)
    before = (tmp_path / "run/metrics.jsonl").read_bytes()
    train(small(train__updates=4), tmp_path / "run", resume=True, console=QUIET)
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == before


def altered(waves, folder, change_file):
    """A copy of the data in which each training file was changed."""
    shutil.copytree(waves, folder)
    for file in sorted((folder / "data/train").iterdir()):
        change_file(file)
    return str(folder)


def amplify(file):
    with h5py.File(file, "r+") as opened:
        values = opened["t0_fields/u"]
        values[...] = values[...] * 1.5


def lose_the_second_file(file):
    if "1" in file.stem[-3:]:
        file.unlink()


@pytest.mark.parametrize(
    ("change_file", "message"),
    [
        (amplify, "train data: 3 trajectories .* before, 3 trajectories .* now"),
        pytest.param(
            lose_the_second_file,
            "train data: 3 trajectories .* before, 2 trajectories .* now",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_data_are_refused_or_noted(small, waves, tmp_path, change_file, message):
    train(small(train__updates=4), tmp_path / "run", console=QUIET)
    config = small(train__updates=6, data__path=altered(waves, tmp_path / "other", change_file))
    with pytest.raises(ConfigError, match=rf"other data \({message}.*--allow-other-data"):
        train(config, tmp_path / "run", resume=True, console=QUIET)
    text = io.StringIO()
    console = Console(file=text, width=300)
    train(config, tmp_path / "run", resume=True, allow_other_data=True, console=console)
    assert "changed: train data was 3 trajectories on 64 cells, fingerprint" in text.getvalue()
    lines = read_journal(tmp_path / "run/metrics.jsonl")
    (noted,) = [line for line in lines if line["kind"] == "resume"]
    assert (noted["update"], "train data" in noted["changed"]) == (4, True)
    assert "valid data" not in noted["changed"]
    train(config, tmp_path / "run", resume=True, console=QUIET)  # they are its data now


def test_the_same_data_elsewhere_are_the_same(small, waves, tmp_path):
    train(small(train__updates=4), tmp_path / "run", console=QUIET)
    moved = altered(waves, tmp_path / "moved", lambda _: None)
    config = small(train__updates=4, data__path=moved)
    assert train(config, tmp_path / "run", resume=True, console=QUIET).status == "finished"


def forge(folder, **changes):
    """Change the state of a checkpoint as a version without seals would have written it."""
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | changes))
    (folder / "COMPLETE").write_text("")


def test_a_checkpoint_that_does_not_fit_gives_way_to_the_one_before(small, tmp_path):
    """And in the end to none: what the run left is not overwritten by a new start."""
    config = small(train__updates=8)
    train(config, tmp_path / "run", console=QUIET)
    kept, checkpoints = weights(tmp_path / "run"), tmp_path / "run/checkpoints"
    forge(checkpoints / "update-00000008", patches={"4": 4, "16": 4})
    text = io.StringIO()
    train(config, tmp_path / "run", resume=True, console=Console(file=text, width=300))
    assert "'update-00000008' can't be used and is left out: its state" in text.getvalue()
    assert "resuming from update 4\n" in text.getvalue()
    require_equal(kept, weights(tmp_path / "run"))
    metrics = (tmp_path / "run/metrics.jsonl").read_bytes()
    for update in (4, 8):
        forge(checkpoints / f"update-{update:08d}", stale="never")
    with pytest.raises(CheckpointError, match="no checkpoint in .* can be used .*--overwrite"):
        train(config, tmp_path / "run", resume=True, console=QUIET)
    for update in (4, 8):
        (checkpoints / f"update-{update:08d}/state.json").write_text("[]")
    with pytest.raises(CheckpointError, match="no checkpoint in .* is damaged"):
        train(config, tmp_path / "run", resume=True, console=QUIET)
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == metrics


@pytest.mark.slow
def test_whatever_bit_is_flipped_the_run_ends_as_it_would_have(small, tmp_path):
    config = small(train__updates=10, valid__every=10, optimizer__ema=0.9, save__keep=3)
    train(config, tmp_path / "whole", console=QUIET)
    shutil.copytree(tmp_path / "whole", tmp_path / "run")
    shutil.rmtree(tmp_path / "run/checkpoints/update-00000010")
    random = np.random.default_rng(0)
    newest = tmp_path / "run/checkpoints/update-00000008"
    for name in [file.relative_to(newest) for file in newest.rglob("*") if file.is_file()]:
        for _ in range(4):
            shutil.rmtree(tmp_path / "again", ignore_errors=True)
            shutil.copytree(tmp_path / "run", tmp_path / "again")
            file = tmp_path / "again/checkpoints" / newest.name / name
            content = bytearray(file.read_bytes())
            content[random.integers(len(content))] ^= 1 << random.integers(8)
            file.write_bytes(content)
            text = io.StringIO()
            train(config, tmp_path / "again", resume=True, console=Console(file=text, width=300))
            fallen = "resuming from update 4" in text.getvalue()
            assert fallen == ("'update-00000008' is damaged" in text.getvalue())
            require_equal(weights(tmp_path / "whole"), weights(tmp_path / "again"))


def test_resume_with_nothing_to_resume_starts(small, tmp_path):
    assert train(small(), tmp_path / "run", resume=True, console=QUIET).status == "finished"


def test_data_with_other_fields_than_the_checkpoint(small, tmp_path):
    train(small(train__updates=4), tmp_path / "run", console=QUIET)
    from overtone.solvers.datasets import build_system, generate

    other = generate(
        build_system("gray_scott", grid=(16, 16)), tmp_path / "other", trajectories=4, steps=8,
        splits=(0.5, 0.25, 0.25),
    )  # fmt: skip
    config = small(train__updates=4, data__path=str(other))
    with pytest.raises(OvertoneError, match="the checkpoint was trained on the fields"):
        train(config, tmp_path / "run", resume=True, console=QUIET)
