"""Rollouts without torch, beside those of the model."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.export import player as module
from overtone.export.player import Player
from overtone.export.program import waves


@pytest.fixture(scope="module")
def player(exported):
    return Player(exported, threads=1)


@pytest.fixture(scope="module")
def window(small_model):
    return waves(small_model.domain, 5, samples=2)


def frames(rollout):
    return np.stack([np.asarray(frame) for frame in rollout], axis=1)


@pytest.mark.parametrize(
    "schedule",
    ["4-8", "8", "random:4-8:3", "warmup:4-4:8", "4-8+shift:at:3x0-9x0-1x16", "bursts:8:4:3"],
)
def test_ten_steps_are_those_of_the_model(small_model, player, window, schedule):
    own = frames(ot.rollout(small_model, window, steps=10, schedule=schedule))
    played = frames(player.rollout(window.fields.numpy(), steps=10, schedule=schedule))
    start = window.fields[:, -1:].numpy()
    assert played.dtype == np.float32
    assert np.abs(own[:, -1:] - start).max() > 0.3  # they lead somewhere
    assert np.abs(played - own).max() < 1e-4


def test_a_grid_that_can_not_move_is_said_or_held(small_model, player, window):
    array = window.fields.numpy()
    with pytest.raises(ot.OvertoneError, match="along axis 1 these programs take none"):
        frames(player.rollout(array, steps=5, schedule="4-8+shift"))
    held = frames(player.rollout(array, steps=5, schedule="4-8+shift", hold=True))
    schedule = ot.parse_schedule("4-8+shift")
    offsets = [(schedule(step).shift[0], 0) for step in range(5)]
    same = ot.Shifted(ot.Cycle(4, 8), offsets=offsets)
    own = frames(ot.rollout(small_model, window, steps=5, schedule=same))
    assert np.abs(held - own).max() < 1e-4


def test_shifts_are_meant_modulo_the_patch(player, window):
    array = window.fields.numpy()
    for shift in (10**12 + 3, -5):
        moved = player.step(array, 8, (shift, 0))
        assert np.array_equal(moved, player.step(array, 8, (shift % 8, 0)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x[..., :-1], r"shape \(2, 5, 2, 16, 21\); expected \(B, T, 2, 16, 22\)"),
        (lambda x: x[0], "shape"),
        (lambda x: x[:, :2], "2 frames; expected at least 3"),
        (lambda x: x * np.nan, "finite"),
        (lambda x: x.astype(int), "floating-point"),
    ],
)
def test_windows_that_do_not_fit(player, window, change, said):
    with pytest.raises(ot.OvertoneError, match=said):
        player.step(change(window.fields.numpy()), 8)


def test_patches_that_are_not_there(player, window):
    with pytest.raises(ot.OvertoneError, match="no ONNX program for patch 2; there is one for 4"):
        player.step(window.fields.numpy(), 2)


def test_a_changed_file_is_refused(exported, tmp_path, window):
    folder = shutil.copytree(exported, tmp_path / "changed")
    with (folder / "patch-8.onnx").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(ot.OvertoneError, match="not the file that was exported"):
        Player(folder).step(window.fields.numpy(), 8)


def test_a_folder_without_onnx_is_refused(exported, tmp_path):
    content = json.loads((exported / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(content | {"programs": []}))
    with pytest.raises(ot.OvertoneError, match="no ONNX programs"):
        Player(tmp_path)


def test_the_file_in_the_folder_runs_without_torch(small_model, exported, window, tmp_path):
    np.save(tmp_path / "window.npy", window.fields.numpy())
    code = (
        "import sys, runpy; sys.modules['torch'] = sys.modules['overtone'] = None; "
        "script = sys.argv[1]; sys.argv = sys.argv[1:]; runpy.run_path(script, run_name='__main__')"
    )
    words = [exported / "rollout.py", "window.npy", "--steps", "4", "--schedule", "4-8"]
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = frames(ot.rollout(small_model, window, steps=4, schedule="4-8"))
    assert np.abs(np.load(tmp_path / "frames.npy") - own).max() < 1e-4
    wrong = subprocess.run([*command, "--schedule", "5"], cwd=tmp_path, capture_output=True)
    assert wrong.returncode == 2
    assert b"no ONNX program for patch 5" in wrong.stderr
    assert b"Traceback" not in wrong.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.npy"], "missing.npy"),
        (["text.npy"], "'text.npy' holds no array of numbers; expected a .npy file"),
        (["several.npz"], "several arrays"),
        (["window.npy", "--steps", "0"], "--steps is 0; expected 1 or more"),
        (["window.npy", "--schedule", "zigzag"], "zigzag"),
        (["window.npy", "--out", "no/folder/frames.npy"], "no/folder/frames.npy"),
    ],
)
def test_mistakes_of_the_command_are_one_message(
    player, window, tmp_path, monkeypatch, capsys, words, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "Player", lambda: player)
    np.save("window.npy", window.fields.numpy())
    (tmp_path / "text.npy").write_text("1 2 3")
    np.savez("several.npz", a=np.zeros(3))
    with pytest.raises(SystemExit) as ended:
        module.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_frames_are_written_where_they_were_asked_for(player, window, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "Player", lambda: player)
    np.save("window.npy", window.fields.numpy())
    module.main(["window.npy", "--steps", "2", "--out", "frames.bin"])
    assert np.load("frames.bin").shape == (2, 2, 2, 16, 22)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frames.bin", "window.npy"]


def test_what_the_folder_lacks_is_said(exported, tmp_path, window, monkeypatch):
    with pytest.raises(ot.OvertoneError, match="expected a folder that overtone export wrote"):
        Player(tmp_path)
    folder = shutil.copytree(exported, tmp_path / "copy")
    (folder / "patch-8.onnx").unlink()
    with pytest.raises(ot.OvertoneError, match=r"patch-8\.onnx' is not there"):
        Player(folder).step(window.fields.numpy(), 8)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ot.OvertoneError, match="pip install onnxruntime"):
        Player(folder).step(window.fields.numpy(), 4)


def test_a_blow_up_is_said(player, window):
    array = window.fields.numpy().copy()
    array[0, -1] = 3e38
    with pytest.raises(ot.OvertoneError, match="frame of step 0 is not finite"):
        frames(player.rollout(array, steps=2, schedule=4))


def test_any_number_of_samples(small_model, player):
    for samples in (1, 4):
        some = waves(small_model.domain, 3, samples=samples, seed=7)
        with torch.no_grad():
            own = small_model(some, 4)
        assert np.abs(player.step(some.fields.numpy(), 4) - own.numpy()).max() < 1e-5
