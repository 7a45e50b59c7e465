"""What holds for a training whoever starts it: checks before it, words after it."""

import io
import re
import shlex
import shutil

import pytest
from rich.console import Console

from overtone.errors import ConfigError, DataError
from overtone.solvers.datasets import build_system, generate
from overtone.train.run import train


def test_a_batch_of_more_windows_than_there_are(small, tmp_path):
    with pytest.raises(ConfigError, match=r"train.batch is 34; there are 33 windows .*most 33"):
        train(small(train__batch=34), tmp_path / "runs/x", console=Console(quiet=True))
    assert list(tmp_path.iterdir()) == []
    all_of_them = small(train__batch=33, train__updates=1, valid__every=1)
    train(all_of_them, tmp_path / "runs/x", console=Console(quiet=True))


def said(config, folder, **options):
    text = io.StringIO()
    train(config, folder, console=Console(file=text, width=200), **options)
    return text.getvalue()


@pytest.fixture(scope="module")
def long_waves(tmp_path_factory):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = tmp_path_factory.mktemp("long")
    return generate(system, folder, trajectories=3, steps=44, splits=(0.34, 0.33, 0.33))


def test_the_end_names_the_next_command(small, waves, long_waves, tmp_path):
    """The whole of it where it needs no options, and those that it needs."""
    short = {"train__updates": 1, "valid__every": 1}
    text = said(small(**short), tmp_path / "a run")
    assert f"next: overtone evaluate '{tmp_path}/a run' {waves} --steps 11\n" in text
    text = said(small(**short, data__path=str(long_waves)), tmp_path / "b")
    assert f"next: overtone evaluate {tmp_path}/b {long_waves}\n" in text
    shutil.copytree(waves, tmp_path / "untested")
    shutil.rmtree(tmp_path / "untested/data/test")
    text = said(small(**short, data__path=str(tmp_path / "untested")), tmp_path / "c")
    (command,) = re.findall("next: (.*)", text)
    assert shlex.split(command)[4:] == ["--split", "valid", "--steps", "11"]


def test_data_that_the_model_would_refuse_leaves_no_folder(small, waves, tmp_path):
    """A split that differs from the other one in what a model is built for."""
    shutil.copytree(waves, tmp_path / "mixed")
    shutil.rmtree(tmp_path / "mixed/data/valid")
    slower = build_system("kuramoto_sivashinsky", grid=(64,), dt=1.0)
    made = generate(slower, tmp_path / "slow", trajectories=3, steps=14, splits=(0.34, 0.33, 0.33))
    shutil.copytree(made / "data/valid", tmp_path / "mixed/data/valid")
    with pytest.raises(ValueError, match="dt is 1.0 in trajectory 0 of split 'valid', and 0.5 in"):
        train(small(data__path=str(tmp_path / "mixed")), tmp_path / "run", console=Console())
    assert not (tmp_path / "run").exists()


def test_data_without_windows_is_refused(small, waves, tmp_path, monkeypatch):
    monkeypatch.setattr("overtone.data.WellFolder.__len__", lambda self: 0)
    with pytest.raises(DataError, match="the training data has no windows"):
        train(small(), tmp_path / "run", console=Console(quiet=True))
