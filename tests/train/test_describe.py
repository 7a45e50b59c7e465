"""`overtone info RUN`."""

import io

import pytest
from rich.console import Console

from overtone.errors import ConfigError
from overtone.train.describe import describe
from overtone.train.run import train


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
