"""A run's folder: whose it is, one writer at a time, nothing lost by starting again."""

import io
import json
import os
import re
import shutil

import pytest
from rich.console import Console

from overtone.errors import ConfigError, OvertoneError
from overtone.guard.folders import MARKER, strangers
from overtone.guard.locks import LOCK, locked
from overtone.models.storage import load_folder
from overtone.train.checkpoint import Checkpoints
from overtone.train.folder import FILES, _asides
from overtone.train.loop import Trainer
from overtone.train.run import train

QUIET = Console(quiet=True)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def finished(small, tmp_path):
    """A run of two updates that has finished."""
    train(small(train__updates=2), tmp_path / "run", console=QUIET)
    return tmp_path / "run"


def test_all_that_a_run_writes_is_listed(small, tmp_path):
    config = small(train__updates=4, save__every=1, log__tensorboard=True)
    train(config, tmp_path / "run", console=QUIET)
    assert strangers(tmp_path / "run") == []
    assert not (tmp_path / "run" / LOCK).exists()
    marker = json.loads((tmp_path / "run" / MARKER).read_text())
    assert (marker["kind"], marker["version"]) == ("run", 1)
    assert marker["files"] == sorted(FILES)


@pytest.mark.parametrize(
    "name", ["thesis.tex", "best/thesis.tex", "checkpoints/thesis.tex", "tensorboard/thesis.tex",
             "checkpoints/update-00000002/thesis.tex"]
)  # fmt: skip
def test_overwriting_refuses_what_it_did_not_write(finished, small, name):
    (finished / name).parent.mkdir(exist_ok=True)
    (finished / name).write_text("years of work")
    before = names(finished)
    with pytest.raises(ConfigError, match=f"did not write: '{name}'. Nothing was touched"):
        train(small(train__updates=1), finished, overwrite=True, console=QUIET)
    assert names(finished) == before


def test_a_config_json_makes_no_run(small, tmp_path):
    for content in ("{}", '{"recipe": "cake"}', "no JSON"):
        (tmp_path / "config.json").write_text(content)
        (tmp_path / "thesis.tex").write_text("years of work")
        for options in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(ConfigError, match="exists and is not a run: it holds 'config.json"):
                train(small(), tmp_path, console=QUIET, **options)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "thesis.tex"]


def test_the_working_directory_and_the_data_are_never_replaced(finished, small, waves, monkeypatch):
    monkeypatch.chdir(finished)
    with pytest.raises(ConfigError, match="the working directory; it can't be replaced"):
        train(small(), ".", overwrite=True, console=QUIET)
    monkeypatch.undo()
    shutil.copytree(waves, finished / "data")
    with pytest.raises(ConfigError, match="which this command reads; it can't be replaced"):
        config = small(data__path=str(finished / "data"))
        train(config, finished, overwrite=True, console=QUIET)
    assert (finished / "best").is_dir()


def test_a_typo_does_not_cost_the_old_run(finished, small):
    before = names(finished)
    mistakes = {
        "data__path": "nowhere",
        "model__name": "vti",
        "train__device": "abacus",
        "model__context": 500,
        "data__fields": ["no such field"],
    }
    for key, value in mistakes.items():
        with pytest.raises(OvertoneError):
            train(small(**{key: value}), finished, overwrite=True, console=QUIET)
        assert names(finished) == before


def test_the_old_run_goes_when_the_new_one_has_finished(finished, small, monkeypatch):
    told = Console(file=io.StringIO(), width=400)
    monkeypatch.setattr(Trainer, "run", lambda *_: "interrupted")
    train(small(train__updates=3), finished, overwrite=True, console=told)
    assert re.search(r"the earlier run is kept as '.*-earlier-.*'", told.file.getvalue())
    (aside,) = _asides(finished)
    assert (aside / "best").is_dir()
    assert not (finished / "best").exists()
    monkeypatch.undo()
    assert train(small(train__updates=3), finished, resume=True, console=QUIET)
    assert sorted(os.listdir(finished.parent)) == ["run"]
    assert load_folder(finished / "last")[1]["training"]["updates"] == 3


def test_notes_that_are_put_into_a_run_meanwhile_outlive_its_replacement(
    finished, small, monkeypatch
):
    run = Trainer.run

    def with_notes(*arguments):
        (aside,) = _asides(finished)
        (aside / "notes").write_text("mine")
        return run(*arguments)

    monkeypatch.setattr(Trainer, "run", with_notes)
    train(small(train__updates=1), finished, overwrite=True, console=QUIET)
    (kept,) = finished.parent.glob(".run-earlier-*")
    assert names(kept) == ["notes"]


def test_a_kill_while_the_old_run_is_put_aside_loses_nothing(finished, small):
    finished.rename(finished.parent / ".run-earlier-01234567")
    with pytest.raises(ConfigError, match="holds a run already"):
        train(small(), finished, console=QUIET)
    assert (finished / "best").is_dir()


def test_a_kill_before_the_configuration_is_written_starts_afresh(small, tmp_path):
    folder = tmp_path / "run"
    config = small(train__updates=1)
    train(config, folder, console=QUIET)
    for path in folder.iterdir():
        if path.name != MARKER:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / ".config.json-01234567.tmp").write_text("half")
    (folder / LOCK).write_text("{}")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        shutil.copytree(folder, tmp_path / "again")
        assert train(config, tmp_path / "again", console=QUIET, **options).status == "finished"
        assert not (tmp_path / "again" / ".config.json-01234567.tmp").exists()
        shutil.rmtree(tmp_path / "again")


def test_two_at_once(finished, small):
    with locked(finished):
        for options in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(ConfigError, match=rf"in use by process {os.getpid()} on .*, since"):
                train(small(train__updates=5), finished, console=QUIET, **options)
    assert train(small(train__updates=5), finished, resume=True, console=QUIET)


def test_leftovers_of_a_killed_run_are_cleaned_at_the_next_start(finished, small):
    shutil.copytree(finished / "best", finished / ".best-01234567.tmp")
    (finished / ".best-01234567.tmp" / "notes").write_text("mine")
    (finished / ".last-01234567.tmp").mkdir()
    (finished / ".metrics.jsonl-01234567.tmp").write_text("half")
    (finished / "..overtone.json-01234567.tmp").write_text("half")
    (finished / "checkpoints" / ".update-00000003.part").mkdir()
    train(small(train__updates=4), finished, resume=True, console=QUIET)
    assert not [name for name in names(finished) if ".tmp" in name or ".part" in name]
    assert (finished / "best" / "notes").read_text() == "mine"


def test_a_run_whose_best_was_just_being_replaced_gets_it_back(finished, small):
    (finished / "best").rename(finished / ".best-replaced.tmp")
    train(small(train__updates=2), finished, resume=True, console=QUIET)
    assert (finished / "best" / "model.safetensors").exists()


def test_notes_beside_the_best_weights_stay_with_the_next_best(small, tmp_path, monkeypatch):
    prune = Checkpoints._prune

    def with_notes(self, newest):
        (tmp_path / "run" / "best").mkdir(exist_ok=True)
        if (tmp_path / "run" / "best" / MARKER).exists():
            (tmp_path / "run" / "best" / "notes").write_text("mine")
        (newest / "notes").write_text("mine")
        prune(self, newest)

    monkeypatch.setattr(Checkpoints, "_prune", with_notes)
    config = small(train__updates=6, save__every=1, valid__every=2, save__keep=1)
    train(config, tmp_path / "run", console=QUIET)
    assert (tmp_path / "run" / "best" / "notes").read_text() == "mine"
    kept = tmp_path / "run" / "checkpoints" / "update-00000002"
    assert names(kept) == ["notes"]  # what we wrote there is gone


def test_a_run_of_an_older_version_goes_on_and_is_marked(finished, small):
    (finished / MARKER).unlink()
    with pytest.raises(ConfigError, match="not one that Overtone marked"):
        train(small(), finished, overwrite=True, console=QUIET)
    train(small(train__updates=3), finished, resume=True, console=QUIET)
    assert strangers(finished) == []


def test_links_out_of_the_folder_are_not_written_through(finished, small, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(finished / "checkpoints")
    (finished / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="outside of"):
        train(small(train__updates=5), finished, resume=True, console=QUIET)
    assert not any((tmp_path / "elsewhere").iterdir())
