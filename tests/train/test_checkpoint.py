"""Checkpoints are complete or absent."""

import json

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


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_flipped_bit_anywhere_is_found(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=9)
    save(checkpoints, 4)
    save(checkpoints, 8)
    files = files_of(checkpoints.folder / "update-00000008")
    assert {file.name for file in files} > {"COMPLETE", "state.json", "state.safetensors"}
    for file in files:
        content = file.read_bytes()
        for place in {*range(0, len(content), 7), len(content) - 1}:
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            file.write_bytes(flipped)
            found, notes = checkpoints.newest()
            if found.update == 8:  # a space behind the checksum of COMPLETE
                assert (file.name, place) == ("COMPLETE", len(content) - 1)
            else:
                assert (found.update, len(notes)) == (4, 1)
        file.write_bytes(content)
    assert checkpoints.newest()[0].update == 8


@pytest.mark.parametrize("name", ["COMPLETE", "state.json", "state/state.safetensors"])
@pytest.mark.parametrize("content", [b"[]", b"{}", b"\xff", b"[" * 100_000, b"null", None])
def test_other_content_or_none_is_found(tmp_path, name, content):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=9)
    save(checkpoints, 4)
    save(checkpoints, 8)
    file = checkpoints.folder / "update-00000008" / name
    file.unlink() if content is None else file.write_bytes(content)
    found, notes = checkpoints.newest()
    assert (found.update, len(notes)) == (4, 1)


def older_version(folder, **changes):
    """Make a checkpoint one of the versions that did not seal state.json, and change that."""
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | changes))
    (folder / "COMPLETE").write_text("")


def test_checkpoints_of_older_versions_are_read(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE)
    save(checkpoints, 5)
    older_version(checkpoints.folder / "update-00000005")
    assert checkpoints.newest()[0].update == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"update": 6},
        {"update": -5},
        {"update": "5"},
        {"update": True},
        {"update": None},
        {"sha256": []},
        {"sha256": {}},
        {"sha256": {"../../elsewhere": "0"}},
        {"sha256": {"/dev/zero": "0"}},
    ],
    ids=str,
)
def test_mistakes_of_older_versions_are_found_as_far_as_they_can_be(tmp_path, changes):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=9)
    save(checkpoints, 1)
    save(checkpoints, 5)
    older_version(checkpoints.folder / "update-00000005", **changes)
    found, (note,) = checkpoints.newest()
    assert (found.update, "'update-00000005' is damaged" in note) == (1, True)


def test_the_newest_before_another(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE, keep=9)
    for update in (1, 2, 3):
        save(checkpoints, update)
    assert checkpoints.newest(below=3)[0].update == 2
    assert checkpoints.newest(below=1) == (None, [])
    assert checkpoints.any_complete()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"exp_avg.w": torch.zeros(3, 2)}, ""),
        ({"exp_avg.x": torch.zeros(3, 2)}, "state/ lacks exp_avg.x"),
        ({"exp_avg.w": torch.zeros(2, 3)}, r"exp_avg.w in state/ is \(3, 2\), .*expected \(2, 3\)"),
        ({"exp_avg.w": torch.zeros(3, 2).double()}, "exp_avg.w in state/ .*expected .*float64"),
    ],
)
def test_tensors_must_be_there_as_they_are_needed(tmp_path, wanted, message):
    checkpoints = Checkpoints(tmp_path, ALONE)
    save(checkpoints, 5)
    found, _ = checkpoints.newest()
    if not message:
        return found.require_tensors(wanted)
    with pytest.raises(CheckpointError, match=message):
        found.require_tensors(wanted)


def test_a_state_that_is_no_safetensors(tmp_path):
    checkpoints = Checkpoints(tmp_path, ALONE)
    save(checkpoints, 5)
    found, _ = checkpoints.newest()
    (found.path / "state/state.safetensors").write_bytes(b"no safetensors")
    with pytest.raises(CheckpointError, match="state/ can't be read"):
        found.require_tensors({})


def test_no_checkpoint_at_all(tmp_path):
    assert Checkpoints(tmp_path, ALONE).newest() == (None, [])
    assert not Checkpoints(tmp_path, ALONE).any_complete()


def test_one_that_is_half_removed_does_not_look_complete(tmp_path, monkeypatch):
    """A kill, or a full disk, while an older one is deleted file by file."""
    checkpoints = Checkpoints(tmp_path, ALONE, keep=1)
    save(checkpoints, 1)

    def stop(path, names):
        (path / "state/state.safetensors").unlink()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("overtone.train.checkpoint.folders.remove", stop)
    with pytest.raises(CheckpointError, match="Input/output error"):
        save(checkpoints, 2)
    assert not (checkpoints.folder / "update-00000001/COMPLETE").exists()
    assert checkpoints.newest()[0].update == 2
    found, (note,) = checkpoints.newest(below=2)
    assert found is None
    assert "has no COMPLETE marker" in note
