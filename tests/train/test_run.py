"""A run as a whole: what it writes, resuming, refusing."""

import errno
import io
import json
import os
import shutil
import signal
import time
from unittest.mock import Mock

import h5py
import pytest
import torch
from rich.console import Console
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.utils.data import get_worker_info

import overtone as ot
from overtone.baselines import Baseline, find
from overtone.data import WellFolder
from overtone.errors import (
    ConfigError,
    DataError,
    OvertoneError,
    TrainingStopped,
)
from overtone.normalize import change_share, typical_pace
from overtone.train.journal import read_journal
from overtone.train.run import make_model, read, train
from overtone.train.settings import change, parse_pairs

QUIET = Console(file=io.StringIO())


def weights(folder, name="last"):
    return load_file(folder / name / "model.safetensors")


def require_equal(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def test_a_run_leaves_what_it_says(small, tmp_path):
    text = io.StringIO()
    config = small(log__tensorboard=True)
    outcome = train(config, tmp_path / "run", console=Console(file=text, width=200))
    assert outcome.status == "finished"
    lines = read_journal(tmp_path / "run/metrics.jsonl")
    assert [x["update"] for x in lines if x["kind"] == "train"] == list(range(1, 13))
    assert [x["update"] for x in lines if x["kind"] == "valid"] == [6, 12]
    assert set(lines[-1]["vrmse"]) == {"4", "8"}
    assert sum(lines[-1]["patches"].values()) == 12
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["status"], summary["update"]) == ("finished", 12)
    assert list((tmp_path / "run/tensorboard").iterdir())
    assert sorted(p.name for p in (tmp_path / "run/checkpoints").iterdir()) == [
        "update-00000008",
        "update-00000012",
    ]
    model = ot.Emulator.from_pretrained(tmp_path / "run")
    assert model.patches == (4, 8)
    assert "valid VRMSE" in text.getvalue()
    assert "finished" in text.getvalue()


def test_the_live_display_of_a_terminal(small, tmp_path):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=160)
    train(small(train__updates=3, log__every=1), tmp_path / "run", console=console)
    assert "updates/s" in text.getvalue()
    assert "ETA" in text.getvalue()


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_sigint_and_resume_give_the_weights_of_an_uninterrupted_run(
    small, start, tmp_path, workers
):
    config = small(
        data__workers=workers, model__drop_path=0.2, train__noise=0.01, optimizer__ema=0.9,
        train__shift=True, train__updates=150, valid__every=60, save__every=1000,
    )  # fmt: skip
    train(config, tmp_path / "whole", console=QUIET)
    process = start(config, tmp_path / "parts")
    metrics = tmp_path / "parts/metrics.jsonl"
    while process.poll() is None and len(read_journal(metrics)) < 20:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "--resume" in output
    reached = json.loads((tmp_path / "parts/summary.json").read_text())["update"]
    assert 19 < reached < 150, "the run was over before it could be interrupted"
    assert train(config, tmp_path / "parts", resume=True, console=QUIET).status == "finished"
    require_equal(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    first, second = (
        [x["loss"] for x in read_journal(tmp_path / name / "metrics.jsonl") if "loss" in x]
        for name in ("whole", "parts")
    )
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_notice_to_all_processes_of_a_run_loses_nothing(small, start, tmp_path, number):
    """As a terminal sends it when it is closed, and a scheduler when the time is up."""
    config = small(data__workers=2, train__updates=2000, valid__every=2000, save__every=2000)
    process = start(config, tmp_path / "run", group=True)
    metrics = tmp_path / "run/metrics.jsonl"
    while process.poll() is None and len(read_journal(metrics)) < 20:
        time.sleep(0.02)
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    reached = json.loads((tmp_path / "run/summary.json").read_text())["update"]
    assert (tmp_path / f"run/checkpoints/update-{reached:08d}/COMPLETE").is_file()


@pytest.mark.slow
def test_training_goes_on_when_nobody_listens(small, start, tmp_path):
    process = start(small(log__every=1), tmp_path / "run")
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert json.loads((tmp_path / "run/summary.json").read_text())["status"] == "finished"
    assert len(read_journal(tmp_path / "run/metrics.jsonl")) == 14


def test_a_kill_in_the_middle_of_a_checkpoint_loses_nothing_before_it(small, start, tmp_path):
    config = small()
    train(config, tmp_path / "whole", console=QUIET)
    code = (
        "import os, signal\n"
        "from overtone.train import checkpoint\n"
        "finish = checkpoint._finish\n"
        "def killed(scratch, final, state):\n"
        "    if state['update'] == 8:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    finish(scratch, final, state)\n"
        "checkpoint._finish = killed\n"
        "from overtone.cli.app import main\n"
        "main()\n"
    )
    process = start(config, tmp_path / "parts", code=code)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    text = io.StringIO()
    train(config, tmp_path / "parts", resume=True, console=Console(file=text, width=200))
    assert "'.update-00000008.part' was not finished" in text.getvalue()
    assert "resuming from update 4" in text.getvalue()
    require_equal(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert not list((tmp_path / "parts/checkpoints").glob(".*"))


DISK_FULL = """
import resource
from overtone.train import checkpoint
from overtone.train.loop import Trainer
save = Trainer.save
def limited(self):
    if self.progress.update == 8:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    save(self)
Trainer.save = limited
from overtone.cli.app import main
main()
"""


def test_a_full_disk_is_a_clear_error_and_the_checkpoint_before_is_intact(small, start, tmp_path):
    process = start(small(), tmp_path / "run", code=DISK_FULL)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2, output
    assert "checkpoint at update 8 can't be written" in output
    assert "'update-00000004' is intact" in output
    assert "Traceback" not in output
    assert train(small(), tmp_path / "run", resume=True, console=QUIET).status == "finished"


def test_budgets_by_time_and_by_flops(small, tmp_path):
    for limit in ("max_minutes", "max_cpu_minutes"):
        config = small(train__updates=500, **{f"train__{limit}": 0.001})
        train(config, tmp_path / limit, console=QUIET)
        assert json.loads((tmp_path / limit / "summary.json").read_text())["update"] < 500
    train(small(), tmp_path / "whole", console=QUIET)
    spent = json.loads((tmp_path / "whole/summary.json").read_text())["flops"]
    train(small(train__max_flops=spent / 2), tmp_path / "half", console=QUIET)
    summary = json.loads((tmp_path / "half/summary.json").read_text())
    assert spent / 2 <= summary["flops"] < spent


def test_patience_stops_early(small, tmp_path):
    config = small(optimizer__lr=1e-12, valid__every=1, valid__patience=2, train__updates=50)
    assert train(config, tmp_path / "run", console=QUIET).status == "stopped early"
    assert json.loads((tmp_path / "run/summary.json").read_text())["update"] < 50


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train__threads": 100_000}, "train.threads is 100000; this machine has .* at most"),
        ({"data__workers": 100_000}, "data.workers is 100000; this machine has .* at most"),
        (
            {"train__batch": 10**9},
            "1,000,000,000 windows of 4 frames at once takes .* smaller train",
        ),
        ({"model__patches": [10**9]}, "1000000000"),
        ({"model__context": 10**9}, "14 frames; context 1000000000"),
        ({"valid__rollout_steps": 10**9}, "14 frames; context 3 and horizon 1000000000"),
        ({"data__coarsen": 10**9}, "coarsen is 1000000000"),
        ({"model__causal": True}, "causal is True with time 'fold'.*time='attend'"),
    ],
    ids=lambda c: next(iter(c)) if isinstance(c, dict) else "",
)
def test_what_is_too_much_is_refused_before_anything_is_written(small, tmp_path, changes, message):
    threads = torch.get_num_threads()
    with pytest.raises(OvertoneError, match=message):
        train(small(**changes), tmp_path / "run", console=QUIET)
    assert not (tmp_path / "run").exists()
    assert torch.get_num_threads() == threads


def test_absurd_intervals_do_no_harm(small, tmp_path):
    huge = dict.fromkeys(
        ("valid__every", "valid__windows", "valid__batch", "valid__rollouts", "valid__patience",
         "save__every", "save__keep", "log__every"), 10**9,
    )  # fmt: skip
    assert (
        train(small(train__updates=2, **huge), tmp_path / "run", console=QUIET).status == "finished"
    )


FULL = OSError(errno.ENOSPC, "No space left on device", "run/x")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("overtone.train.journal.Journal.write", FULL),
        pytest.param("overtone.train.journal.Journal.close", FULL, marks=pytest.mark.slow),
        ("overtone.train.loop.Trainer._keep", SafetensorError("IoError(kind: StorageFull)")),
        pytest.param("overtone.train.session._summarise", FULL, marks=pytest.mark.slow),
        pytest.param("overtone.train.journal._tensorboard", FULL, marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_ends_the_run_with_a_message_and_it_resumes(
    small, tmp_path, monkeypatch, place, error
):
    config = small(train__updates=8, valid__every=6, log__tensorboard=True)
    train(small(train__updates=4, valid__every=6), tmp_path / "run", console=QUIET)
    with monkeypatch.context() as patch:
        patch.setattr(place, Mock(side_effect=error))
        named = "training stopped: .*make room.*'update-0000000[48]' is intact. --resume goes on"
        with pytest.raises(TrainingStopped, match=named):
            train(config, tmp_path / "run", resume=True, console=QUIET)
    assert train(config, tmp_path / "run", resume=True, console=QUIET).status == "finished"


class Deadly(WellFolder):
    """Data by which a process that reads it dies, or fails, at the tenth window."""

    reads, raises = 0, None

    def __getitem__(self, index):
        self.reads += get_worker_info() is not None
        if self.reads == 10:
            if self.raises is not None:
                raise self.raises
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            None,
            TrainingStopped,
            "data was ended from outside .*(Killed|exited).*fewer data.workers.*--resume",
        ),
        (DataError("'x.hdf5' is spoilt"), DataError, "^'x.hdf5' is spoilt$"),
        pytest.param(
            OSError(5, "Input/output error"),
            TrainingStopped,
            "data failed: OSError: .Errno 5. Input",
            marks=pytest.mark.slow,
        ),
    ],
)
# Torch tells of a dead worker by a signal, which may also come while garbage is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_process_that_reads_data_may_die(small, tmp_path, monkeypatch, error, kind, message):
    monkeypatch.setattr(Deadly, "raises", error)
    with monkeypatch.context() as patch:
        patch.setattr("overtone.train.run.WellFolder", Deadly)
        with pytest.raises(kind, match=message):
            train(small(data__workers=1, save__every=1), tmp_path / "run", console=QUIET)
    assert train(small(), tmp_path / "run", resume=True, console=QUIET).status == "finished"


def test_data_that_can_not_be_validated_by_cost_no_training(small, waves, tmp_path):
    shutil.copytree(waves, tmp_path / "spoilt")
    file = sorted((tmp_path / "spoilt/data/valid").iterdir())[0]
    with h5py.File(file, "r+") as opened:
        opened["t0_fields/u"][0, 3, 3] = float("nan")
    config = small(data__path=str(tmp_path / "spoilt"), optimizer__ema=0.9)
    with pytest.raises(DataError, match=rf"split 'valid': {file.name} trajectory 0 step 0"):
        train(config, tmp_path / "run", console=QUIET)
    text = io.StringIO()
    whole = small(optimizer__ema=0.9)
    options = {"resume": True, "allow_other_data": True}
    train(whole, tmp_path / "run", **options, console=Console(file=text, width=200))
    assert "resuming from update 6" in text.getvalue()
    train(whole, tmp_path / "whole", console=QUIET)
    require_equal(weights(tmp_path / "whole"), weights(tmp_path / "run"))


def test_an_existing_run_is_refused_resumed_or_overwritten(small, tmp_path):
    config = small(train__updates=2)
    train(config, tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="--resume goes on with it, --overwrite replaces it"):
        train(config, tmp_path / "run", console=QUIET)
    train(small(train__updates=3), tmp_path / "run", overwrite=True, console=QUIET)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/diary.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a run"):
        train(config, tmp_path / "notes", overwrite=True, console=QUIET)
    assert (tmp_path / "notes/diary.txt").exists()


def test_a_context_longer_than_the_trajectories(small, tmp_path):
    with pytest.raises(OvertoneError, match="14 frames; context 20"):
        train(small(model__context=20), tmp_path / "run", console=QUIET)


def test_a_nan_in_the_data_stops_the_run_and_is_named(small, waves, tmp_path):
    shutil.copytree(waves, tmp_path / "spoilt")
    file = sorted((tmp_path / "spoilt/data/train").iterdir())[0]
    with h5py.File(file, "r+") as opened:
        name = next(iter(opened["t0_fields"]))  # pyright: ignore[reportCallIssue]
        opened["t0_fields"][name][0, 7, 3] = float("nan")
    config = small(data__path=str(tmp_path / "spoilt"), train__updates=50, save__every=1)
    with pytest.raises(OvertoneError, match=rf"not finite.*{file.name} trajectory 0 step"):
        train(config, tmp_path / "run", console=QUIET)


def test_the_pace_of_the_data_is_measured_and_kept(small, waves, tmp_path):
    for unit in ("pace", "context"):
        config = small(model__unit=unit, model__scale="context", train__updates=2, valid__every=2)
        train(config, tmp_path / unit, console=QUIET)
    found = ot.load(tmp_path / "pace").pace
    windows = WellFolder(waves, "train", context=config.model.context, horizon=1)
    steps = [torch.cat([window.fields, following]) for window, following in windows]
    expected = typical_pace(change_share(torch.stack(steps)))
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0)
    assert torch.equal(ot.load(tmp_path / "context").pace, torch.zeros_like(found))
    assert torch.equal(ot.load(tmp_path / "pace").scale, torch.zeros_like(found))


def test_the_scale_of_the_data_is_measured_before_the_pace(small, waves, tmp_path):
    config = small(train__updates=2, valid__every=2)
    train(config, tmp_path / "run", console=QUIET)
    found = ot.load(tmp_path / "run")
    windows = WellFolder(waves, "train", context=config.model.context, horizon=1)
    steps = torch.stack([torch.cat([window.fields, following]) for window, following in windows])
    own = steps.std(dim=(1, *range(3, steps.dim())), correction=0)
    torch.testing.assert_close(found.scale, own.mean(dim=0), rtol=0.05, atol=0)
    change = steps.diff(dim=1).square().mean(dim=(1, *range(3, steps.dim()))).sqrt()
    pace = (change / (own * found.scale).sqrt()).mean(dim=0)
    torch.testing.assert_close(found.pace, pace, rtol=0.05, atol=0)


NO_NUMBERS = {f"model__{key}": None for key in ("width", "heads", "blocks", "mlp_dim")}
"""For models that have numbers of their own."""


def test_a_baseline_trains_and_loads_by_name(small, tmp_path):
    options = {"model__name": "unet", "model__size": "mini", "train__updates": 3, "valid__every": 3}
    config = small(**options, **NO_NUMBERS)
    train(config, tmp_path / "run", console=QUIET)
    assert ot.load(tmp_path / "run").name == "unet"
    assert train(config, tmp_path / "run", resume=True, console=QUIET).status == "finished"
    with pytest.raises(ConfigError, match="no model 'unit' .did you mean 'unet'"):
        train(small(model__name="unit", **NO_NUMBERS), tmp_path / "other", console=QUIET)


def test_a_baseline_that_shares_its_mixing_with_a_processor_is_the_baseline(small, tmp_path):
    pairs = ["model.name=afno_net", "model.size=mini", "train.updates=2", "valid.every=2"]
    config = change(small(**NO_NUMBERS), parse_pairs(pairs))
    train(config, tmp_path / "run", console=QUIET)
    model = ot.load(tmp_path / "run")
    assert isinstance(model, Baseline)
    assert (model.name, type(model)) == ("afno_net", find("afno_net"))
    lines = read_journal(tmp_path / "run/metrics.jsonl")
    assert [line["update"] for line in lines if line["kind"] == "train"] == [1, 2]
    domain = ot.Domain((64,), (1.0,), "periodic", ("a",))
    assert isinstance(make_model(small(model__name="afno").model, domain), ot.Emulator)


def test_cvit_trains_and_loads(small, tmp_path):
    config = small(
        model__name="cvit", model__tokenizer="ckm", model__size="mini", train__updates=2,
        valid__every=2, **NO_NUMBERS,
    )  # fmt: skip
    train(config, tmp_path / "run", console=QUIET)
    assert ot.load(tmp_path / "run").patches == (4, 8)


@pytest.mark.parametrize(("share", "reads"), [(1.01, 1), (0.99, 3), (0.0, 3)])
def test_data_memory_is_how_many_gigabytes_of_frames_are_kept(small, monkeypatch, share, reads):
    """What fits is read once; what does not is read at every use."""
    config = small()
    size = read(config, config.data.path, "train", horizon=1)._bytes() / 1e9
    config = small(data__memory=share * size)
    data = read(config, config.data.path, "train", horizon=1)
    seen, original = [], WellFolder._read_file
    monkeypatch.setattr(WellFolder, "_read_file", lambda *given: seen.append(1) or original(*given))
    first, *others = (data[4][0].fields for _ in range(3))
    assert all(torch.equal(first, other) for other in others)
    assert len(seen) == reads
