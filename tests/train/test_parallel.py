"""Several ranks compute what one rank computes; any of them may die."""

import io
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from rich.console import Console

import overtone as ot
from overtone.errors import ConfigError
from overtone.train.journal import read_journal
from overtone.train.parallel import Ranks, _blocks, _device, whole
from overtone.train.run import train

QUIET = Console(file=io.StringIO())


def losses(folder):
    return [x["loss"] for x in read_journal(folder / "metrics.jsonl") if x["kind"] == "train"]


def require_close(one, other):
    torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-5, atol=1e-5)


def finish(process, code=0):
    output, _ = process.communicate(timeout=200)
    assert process.returncode == code, output
    return output


@pytest.mark.parametrize(("strategy", "kind"), [("ddp", "muon"), ("fsdp", "adamw")])
def test_two_ranks_are_one_rank_with_accumulation(small, start, tmp_path, strategy, kind):
    options = {"model__drop_path": 0.2, "train__shift": True, "train__unroll": 2}
    options["optimizer__kind"] = kind
    train(small(train__accumulate=2, **options), tmp_path / "one", console=QUIET)
    config = small(parallel__strategy=strategy, **options)
    finish(start(config, tmp_path / "two", ranks=2))
    require_close(losses(tmp_path / "one"), losses(tmp_path / "two"))
    one, two = (
        [x for x in read_journal(tmp_path / name / "metrics.jsonl") if x["kind"] == "valid"]
        for name in ("one", "two")
    )
    for a, b in zip(one, two, strict=True):
        assert a["vrmse"] == pytest.approx(b["vrmse"], rel=1e-4)
        assert a["rollout"] == pytest.approx(b["rollout"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["fsdp", "hybrid"])
def test_two_ranks_then_one_then_two_keep_the_curve(small, start, tmp_path, strategy):
    options = {"parallel__strategy": strategy, "optimizer__schedule": "constant"}
    options["optimizer__kind"] = "adamw"
    options |= {"optimizer__warmup": 0.0, "optimizer__ema": 0.9, "optimizer__lr": 1e-3}
    train(small(**options), tmp_path / "whole", console=QUIET)
    finish(start(small(train__updates=4, **options), tmp_path / "run", ranks=2))
    train(small(train__updates=8, **options), tmp_path / "run", resume=True, console=QUIET)
    finish(start(small(**options), tmp_path / "run", "--resume", ranks=2))
    whole_run, in_parts = losses(tmp_path / "whole"), losses(tmp_path / "run")
    assert len(whole_run) == len(in_parts) == 12
    require_close(whole_run, in_parts)


def test_a_killed_rank_ends_the_job_and_the_run_resumes(small, start, tmp_path):
    config = small(train__updates=60, valid__every=60, save__every=5)
    process = start(config, tmp_path / "run", "--resume", ranks=2, restarts=0)
    checkpoints = tmp_path / "run/checkpoints"
    while process.poll() is None and not list(checkpoints.glob("update-*")):
        time.sleep(0.05)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode not in (0, None), output
    output = finish(start(config, tmp_path / "run", "--resume", ranks=2))
    assert "resuming from update" in output
    assert json.loads((tmp_path / "run/summary.json").read_text())["update"] == 60


@pytest.mark.slow
def test_max_restarts_goes_on_by_itself(small, start, tmp_path):
    config = small(train__updates=60, valid__every=60, save__every=5)
    process = start(config, tmp_path / "run", "--resume", ranks=2, restarts=2)
    checkpoints = tmp_path / "run/checkpoints"
    while process.poll() is None and not list(checkpoints.glob("update-*")):
        time.sleep(0.05)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    assert "resuming from update" in finish(process)
    assert json.loads((tmp_path / "run/summary.json").read_text())["update"] == 60


def rank_of(agent, rank):
    """The process of a rank, among the children of torchrun."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            parent = (path.parent / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if int(parent) == agent and f"\0RANK={rank}\0".encode() in path.read_bytes():
                return int(path.parent.name)
        except OSError:
            continue
    raise AssertionError("no such rank")


@pytest.mark.slow
def test_a_bad_batch_on_one_rank_stops_all(small, waves, start, tmp_path):
    import shutil

    import h5py

    shutil.copytree(waves, tmp_path / "spoilt")
    file = sorted((tmp_path / "spoilt/data/train").iterdir())[0]
    with h5py.File(file, "r+") as opened:
        name = next(iter(opened["t0_fields"]))  # pyright: ignore[reportCallIssue]
        opened["t0_fields"][name][0, 7, 3] = float("nan")
    config = small(data__path=str(tmp_path / "spoilt"), train__updates=50)
    process = start(config, tmp_path / "run", ranks=2)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert not (tmp_path / "run/summary.json").exists()
    (said,) = set(re.findall(r"is not finite: (.*?)\. Nothing was changed", output))
    for batch in said.split("; "):  # of each rank that is named
        assert re.search(rf"^loss nan.*{file.name} trajectory 0 step [4-7]\b", batch)


class Told(Ranks):
    """The first rank, with others that say what they are told to."""

    others: ClassVar[list] = []

    def gather(self, text):
        return [text, *map(json.dumps, self.others)]


def test_ranks_of_different_runs_are_refused(monkeypatch):
    own, values = Told(0, 3, torch.device("cpu")), {"train.seed": 0, "model.patches": [4, 8]}
    monkeypatch.setattr(Told, "others", [values, values])
    own.require_alike(values, "")
    monkeypatch.setattr(Told, "others", [values, values | {"train.seed": 1}])
    with pytest.raises(ConfigError, match=r"train.seed is 0 on rank 0 and 1 on rank 2\. Do this"):
        own.require_alike(values, "Do this")
    monkeypatch.setattr(Told, "others", [{**values, "more": 1}])
    with pytest.raises(ConfigError, match="more is None on rank 0 and 1 on rank 1"):
        own.require_alike(values, "Do this")
    Ranks(0, 1, torch.device("cpu")).require_alike(values, "")


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["train.seed", "data.path"])
def test_ranks_with_other_seeds_or_data_all_stop(small, waves, start, tmp_path, setting):
    import shutil

    shutil.copytree(waves, tmp_path / "fewer")
    sorted((tmp_path / "fewer/data/train").iterdir())[0].unlink()
    value = {"train.seed": 1, "data.path": str(tmp_path / "fewer")}[setting]
    code = (
        "import os, sys\n"
        f"sys.argv += ['{setting}={value}'] if os.environ['RANK'] == '1' else []\n"
        "from overtone.cli.app import main\n"
        "main()\n"
    )
    output, _ = (process := start(small(), tmp_path / "run", ranks=2, code=code)).communicate()
    assert process.returncode != 0
    said = {"train.seed": "train.seed is 0 on rank 0", "data.path": "train.fingerprint is "}[
        setting
    ]
    assert f"the ranks are not of one run: {said}" in output
    assert "overtone/train/run.py" not in output  # the one traceback is torchrun's own
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_batch_that_ranks_can_not_share(small, start, tmp_path):
    process = start(small(train__batch=3), tmp_path / "run", ranks=2)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "train.batch 3 can't be divided among 2 ranks" in output


def test_a_device_that_is_not_there():
    with pytest.raises(ConfigError, match="overtone info"):
        _device("cuda" if not torch.cuda.is_available() else "xpu", 0)


@pytest.mark.parametrize("blocks", [1, 2, 12])
def test_blocks_are_those_of_the_processor(blocks):
    domain = ot.Domain((16,), (1.0,), "periodic", ("u",), 0.1)
    model = ot.build("vit", domain=domain, patches=(2, 4), blocks=blocks)
    assert _blocks(model) == list(model.processor.blocks)


def test_a_plain_tensor_is_whole():
    x = torch.randn(3, requires_grad=True)
    assert torch.equal(whole(x), x)
    assert not whole(x).requires_grad
