"""What is written to metrics.jsonl, and what `overtone info RUN` makes of it."""

import io
import json
import math

import pytest
from rich.console import Console

from overtone.errors import ConfigError, DataError
from overtone.train.config import LogConfig
from overtone.train.journal import Journal, describe, read_journal
from overtone.train.run import train

PLAIN = LogConfig(tensorboard=False)


def test_a_resumed_journal_drops_what_lies_behind_its_checkpoint(tmp_path):
    journal = Journal(tmp_path, PLAIN, update=0, name="run")
    for update in range(1, 6):
        journal.write("train", update, {"loss": update / 2})
    journal.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "upd')  # cut off by a crash
    journal = Journal(tmp_path, PLAIN, update=3, name="run")
    journal.write("train", 4, {"loss": 9.0})
    journal.close()
    lines = read_journal(tmp_path / "metrics.jsonl")
    assert [(x["update"], x["loss"]) for x in lines] == [(1, 0.5), (2, 1.0), (3, 1.5), (4, 9.0)]


def test_a_strict_reader_forgives_the_last_line_only(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"update": 1}\n{"upd\n{"update": 3}\n{"up')
    assert [line["update"] for line in read_journal(path)] == [1, 3]
    with pytest.raises(DataError, match="line 2 is not JSON"):
        read_journal(path, strict=True)
    path.write_text('{"update": 1}\n{"up')
    assert read_journal(path, strict=True) == [{"update": 1}]
    assert read_journal(tmp_path / "none") == []


def test_numbers_that_json_does_not_know_are_null(tmp_path):
    journal = Journal(tmp_path, PLAIN, update=0, name="run")
    journal.write("valid", 1, {"vrmse": {"4": math.inf}, "rollout": math.nan, "all": [math.inf]})
    journal.close()
    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=lambda _: 1 / 0)
    assert (line["vrmse"]["4"], line["rollout"], line["all"]) == (None, None, [None])


def test_lines_that_are_kept_become_strict_json(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "valid", "update": 1, "rollout": Infinity}\n')
    Journal(tmp_path, PLAIN, update=1, name="run").close()
    assert json.loads(path.read_text(), parse_constant=lambda _: 1 / 0)["rollout"] is None


def test_tensorboard_gets_the_numbers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    journal = Journal(tmp_path, LogConfig(), update=0, name="run")
    journal.write("valid", 7, {"vrmse": {"4": 0.25}, "patch": "4"})
    journal.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    (event,) = events.Scalars("valid/vrmse/4")
    assert (event.step, event.value) == (7, 0.25)


def test_a_run_is_described_from_its_folder(small, tmp_path):
    train(small(), tmp_path / "run", console=Console(file=io.StringIO()))
    rows = describe(tmp_path / "run")
    assert rows["status"] == "finished"
    assert rows["progress"] == "12 of 12 updates"
    assert "patch 4: 0." in rows["validation VRMSE"]
    assert rows["checkpoints"] == "update-00000008, update-00000012"
    (tmp_path / "run/summary.json").unlink()
    assert "without notice" in describe(tmp_path / "run")["status"]


@pytest.mark.parametrize(
    ("rollouts", "best"),
    [
        ([0.5, 0.4, None], "patch 4: 0.2000, cycle: 0.4000 at update 2"),
        ([None, 0.4, 0.5], "patch 4: 0.2000, cycle: 0.4000 at update 2"),
        ([None, None, None], "none: every validation blew up"),
    ],
)
def test_a_validation_that_blew_up_is_never_the_best(small, tmp_path, rollouts, best):
    """The next-step error of such a one may still be the lowest of all."""
    rows = described(small(), tmp_path, [0.3, 0.2, 0.1], rollouts)
    assert rows["best"] == best
    if rollouts[-1] is None:
        assert rows["validation VRMSE"] == "patch 4: 0.1000, cycle: blew up at update 3"


def test_without_rollouts_the_next_step_decides(small, tmp_path):
    config = small(valid__rollout_steps=0)
    rows = described(config, tmp_path, [None, 0.2, 0.3], [None] * 3)
    assert rows["best"] == "patch 4: 0.2000 at update 2"
    assert rows["validation VRMSE"] == "patch 4: 0.3000 at update 3"


def described(config, folder, errors, rollouts):
    """What `overtone info` says of a run with these validations."""
    lines = [
        {"kind": "valid", "update": update, "vrmse": {"4": error}, "rollout": rollout,
         "patches": {"4": update}}
        for update, (error, rollout) in enumerate(zip(errors, rollouts, strict=True), start=1)
    ]  # fmt: skip
    (folder / "config.json").write_text(config.model_dump_json())
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return describe(folder)


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is not a run"):
        describe(tmp_path)
