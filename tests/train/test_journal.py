"""metrics.jsonl.

`overtone info RUN`.
"""

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
    journal.write("valid", 1, {"vrmse": {"4": math.inf}, "rollout": math.nan})
    journal.close()
    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=lambda _: 1 / 0)
    assert (line["vrmse"]["4"], line["rollout"]) == (None, None)


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


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is not a run"):
        describe(tmp_path)
