"""Checkpoints are complete or absent."""

import pytest
import torch

from overtone.errors import CheckpointError
from overtone.train.checkpoint import Checkpoints
from overtone.train.parallel import Ranks

ALONE = Ranks(0, 1, torch.device("cpu"))


def save(checkpoints, update, fail=False):
    def save_model(path):
        path.mkdir()
        (path / "config.json").write_text("{}")
        if fail:
            raise OSError(28, "No space left on device")

    tensors = {"exp_avg.w": torch.full((3, 2), float(update)), "exp_avg.b": torch.tensor([1.0])}
    checkpoints.save(update, save_model, tensors, {"seconds": 1.0}, sharded=False)


def test_what_is_saved_is_what_is_read(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE)
    save(checkpoints, 5)
    found, notes = checkpoints.newest()
    assert (found.update, found.state["seconds"], notes) == (5, 1.0, [])
    tensors = {"exp_avg.w": torch.zeros(3, 2), "exp_avg.b": torch.zeros(1)}
    found.load_tensors(tensors, sharded=False)
    assert torch.equal(tensors["exp_avg.w"], torch.full((3, 2), 5.0))


def test_older_ones_are_pruned_after_the_new_one(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=2)
    for update in (1, 2, 3):
        save(checkpoints, update)
    names = sorted(p.name for p in checkpoints.folder.iterdir())
    assert names == ["update-00000002", "update-00000003"]


def test_a_failed_write_keeps_the_one_before(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=1)
    save(checkpoints, 1)
    with pytest.raises(CheckpointError, match="update 2 can't be written.*No space left.*intact"):
        save(checkpoints, 2, fail=True)
    assert checkpoints.newest()[0].update == 1
    assert [p.name for p in checkpoints.folder.iterdir()] == ["update-00000001"]


def test_incomplete_and_damaged_ones_are_passed_over(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=9)
    for update in (0, 1, 2, 3):
        save(checkpoints, update)
    (checkpoints.folder / "update-00000003/COMPLETE").unlink()
    (checkpoints.folder / "update-00000001/model/config.json").write_text("[]")
    with (checkpoints.folder / "update-00000002/state/state.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    (checkpoints.folder / ".update-00000004.part").mkdir()
    found, notes = checkpoints.newest()
    assert found.update == 0
    assert "'.update-00000004.part' was not finished" in notes[0]
    assert "'update-00000003' has no COMPLETE" in notes[1]
    assert "'update-00000002' is damaged" in notes[2]
    assert "model/config.json is not the file that was saved" in notes[3]


def test_no_checkpoint_at_all(tmp_path):
    assert Checkpoints(tmp_path, ALONE).newest() == (None, [])
