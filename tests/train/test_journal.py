"""What is written to metrics.jsonl, and what `overtone info RUN` makes of it."""

import io
import json
import math
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from overtone.errors import ConfigError, OvertoneError
from overtone.evaluate import load_candidate
from overtone.train.config import LogConfig
from overtone.train.journal import METRICS, Journal, describe, history, longer_run, read_journal
from overtone.train.recipes import recipe
from overtone.train.run import train
from overtone.train.settings import change

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


GOOD = [b'{"kind": "train", "update": %d, "loss": 0.5}' % number for number in range(1, 5)]
DAMAGED = [
    b"no json",
    b"[1]",
    b'{"kind": "train"}',
    b'{"update": 2}',
    b'{"kind": ["train"], "update": 2}',
    b'{"kind": "train", "update": "2"}',
    b'{"kind": "train", "update": -2}',
    b'{"kind": "train", "update": 2.5}',
    b'{"kind": "train", "update": true}',
    b'{"kind": "train", "update": 2, "loss": "low"}',
    b'{"kind": "train", "update": 2, "seconds": 1e999}',
    b'{"kind": "valid", "update": 2, "vrmse": 0.1}',
    b'{"kind": "valid", "update": 2, "vrmse": {}}',
    b'{"kind": "valid", "update": 2, "vrmse": {"4": [0.1]}}',
    b'{"kind": "train", "update": 2, "loss": 0.5, "patch": "\xff\xfe"}',
    b'{"update": ' + b"9" * 5000 + b', "kind": "train"}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("damaged", DAMAGED, ids=lambda line: line[:50])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_damaged_line_is_left_out_with_a_warning_wherever_it_is(tmp_path, damaged, place):
    path = tmp_path / "metrics.jsonl"
    texts = [*GOOD[:place], damaged, *GOOD[place:]]
    path.write_bytes(b"".join(text + b"\n" for text in texts))
    with pytest.warns(UserWarning, match=rf"1 of 5 lines .* left out \(line {place + 1}: "):
        assert [line["update"] for line in read_journal(path)] == [1, 2, 3, 4]
    with pytest.warns(UserWarning, match=f"line {place + 1}: "):
        journal = Journal(tmp_path, PLAIN, update=2, name="run")
    journal.write("train", 3, {"loss": 9.0})
    journal.close()
    with pytest.warns(UserWarning, match="1 of 4 lines"):
        assert [line["loss"] for line in read_journal(path)] == [0.5, 0.5, 9.0]
    assert damaged in path.read_bytes().splitlines()


def test_a_line_that_was_cut_off_or_is_being_written_needs_no_warning(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(GOOD[0] + b'\n{"up')
    assert [line["update"] for line in read_journal(path)] == [1]
    assert read_journal(tmp_path / "none") == []


def test_lines_without_what_a_reader_needs_are_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(
        GOOD[0] + b'\n{"kind": "train", "update": 2}\n{"kind": "valid", "update": 2}\n'
    )
    with pytest.warns(UserWarning, match="line 2: it lacks loss"):
        lines = read_journal(path, {"train": ["loss"]})
    assert [line["kind"] for line in lines] == ["train", "valid"]


def test_numbers_that_json_does_not_know_are_null(tmp_path):
    journal = Journal(tmp_path, PLAIN, update=0, name="run")
    journal.write("valid", 1, {"vrmse": {"4": math.inf}, "rollout": math.nan, "all": [math.inf]})
    journal.close()
    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=lambda _: 1 / 0)
    assert (line["vrmse"]["4"], line["rollout"], line["all"]) == (None, None, [None])


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
    assert rows["progress"] == "12 updates; the budget is 12 updates"
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


def test_each_validation_says_whether_it_made_rollouts(small, tmp_path):
    """A run may be resumed without them; what blew up before did so all the same."""
    config = small(valid__rollout_steps=0)
    rows = described(config, tmp_path, [0.1, 0.3], [None, None], steps=[3, 0])
    assert rows["best"] == "patch 4: 0.3000 at update 2"
    rows = described(small(), tmp_path, [0.2, 0.1], [0.4, None], steps=[3, 3])
    assert rows["best"] == "patch 4: 0.2000, cycle: 0.4000 at update 1"


def test_a_model_without_patches_is_described_without_them(small, tmp_path):
    config = change(recipe("shear-flow-mini"), {"model.name": "unet", "model.size": "mini"})
    rows = described(config, tmp_path, [0.2], [0.4], patch="1")
    assert rows["model"].startswith("unet, mini, ")
    assert "patch" not in rows["model"]
    assert rows["best"] == "next step: 0.2000, rollout: 0.4000 at update 1"
    assert "updates of each patch" not in rows
    assert "patches 4, 8" in described(small(), tmp_path, [0.2], [0.4])["model"]


def described(config, folder, errors, rollouts, steps=None, patch="4"):
    """What `overtone info` says of a run with these validations."""
    lines = [
        {"kind": "valid", "update": update, "vrmse": {patch: error}, "rollout": rollout,
         "patches": {patch: update}}
        for update, (error, rollout) in enumerate(zip(errors, rollouts, strict=True), start=1)
    ]  # fmt: skip
    for line, length in zip(lines, steps or [], strict=False):
        line["rollout_steps"] = length
    (folder / "config.json").write_text(config.model_dump_json())
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return describe(folder)


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is not a run"):
        describe(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"recipe": 1}'])
@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "summary.json"])
@pytest.mark.filterwarnings("ignore:.* can't be read and are left out")
def test_a_damaged_run_is_described_or_refused(small, tmp_path, name, content):
    described(small(), tmp_path, [0.3], [0.5])
    (tmp_path / name).write_bytes(content)
    if name == "config.json":
        with pytest.raises(OvertoneError, match="is not a run's configuration"):
            describe(tmp_path)
    else:
        assert describe(tmp_path)["status"] == "running, or ended without notice"


def test_numbers_that_are_null_are_said_to_be_infinite(small, tmp_path):
    described(small(), tmp_path, [0.3], [0.5])
    line = {"kind": "train", "update": 1, "loss": None, "seconds": None, "flops": None}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert describe(tmp_path)["loss"] == "inf at first, inf now"


def test_the_command_to_train_longer_goes_on_with_the_run(small, tmp_path, monkeypatch, overtone):
    """As the verdict names it, in a folder whose name needs quotes."""
    monkeypatch.chdir(tmp_path)
    run = Path("my run's")
    train(small(train__updates=4, valid__every=2), run)
    candidate = load_candidate(run)
    assert candidate.training["history"]["updates"] == [2, 4]
    best = load_candidate(run / "best").training
    assert best["longer"] == candidate.training["longer"] == longer_run(run)
    lines = [line for line in read_journal(run / METRICS) if line["kind"] == "valid"]
    assert candidate.training["history"]["scores"] == [line["rollout"] for line in lines]
    assert {*lines[0]["yardsticks"]} == {"persistence", "extrapolation"}
    assert "persistence: " in describe(run)["to beat"]
    program, *words = shlex.split(longer_run(run))
    code, text = overtone(*words)
    assert (program, code) == ("overtone", 0), text
    assert history(run / METRICS)["updates"] == [2, 4, 6, 8]
    assert "train.updates was 4, is 8" in text


def test_every_budget_is_doubled_and_a_models_folder_has_none(small, tmp_path):
    config = small(train__max_minutes=1.5, train__max_flops=1e12)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    words = shlex.split(longer_run(tmp_path))
    assert {"train.updates=24", "train.max_minutes=3.0"} <= {*words}
    assert "train.max_flops=2000000000000.0" in words
    assert not any("cpu_minutes" in word for word in words)
    (tmp_path / "config.json").write_text("{}")
    assert longer_run(tmp_path) == ""


def test_a_history_has_null_where_a_validation_blew_up(tmp_path):
    lines = [{"kind": "valid", "update": i, "vrmse": {"8": 0.5}, "rollout": r, "patches": {"8": 1}}
             for i, r in enumerate([None, 0.2])]  # fmt: skip
    path = tmp_path / METRICS
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert history(path) == {"updates": [0, 1], "scores": [None, 0.2]}
    path.write_text(json.dumps(lines[0]) + "\n")
    assert history(path) == {"updates": [0], "scores": [0.5]}
