"""Predictions written as a dataset, read back and compared with the rollout itself."""

import shutil

import h5py
import pytest
import torch

import overtone as ot
from overtone.data import WellFolder, check
from overtone.evaluate import Candidate, Trajectories, write_predictions

SCHEDULE = ot.parse_schedule("4-8")


def predict(candidate, toy, out, steps=5, **options):
    return write_predictions(candidate, toy, out, schedule=SCHEDULE, steps=steps, **options)


@pytest.mark.parametrize("batch", [2, 8])
def test_the_folder_holds_the_rollout(emulator, toy, tmp_path, batch):
    seen = []
    candidate = Candidate("e", emulator)
    options = {"start": 2, "batch": batch, "progress": lambda n, m: seen.append((n, m))}
    out = predict(candidate, toy, tmp_path / "pred", **options)
    files = sorted(path.name for path in (out / "data" / "test").iterdir())
    numbers = (0, 2, 3) if batch == 2 else (0, 3)
    assert files == [f"toy_{number:05d}.hdf5" for number in numbers]
    assert seen[-1] == (5 * len(files), 5 * len(files))
    assert not [f for f in check(out) if f.severity == "error"]
    data, truth = WellFolder(out, "test", 3, whole=True), Trajectories(toy, ("a", "clock"), 3, {})
    assert len(data) == 5
    assert data.domain == truth.domain
    for row in range(5):
        window, predicted = data[row]
        start = truth.window([row], 3, 5)
        assert torch.equal(window.fields, start.fields[0])
        frames = torch.cat([*ot.rollout(emulator, start, steps=5, schedule=SCHEDULE)])
        assert torch.allclose(predicted, frames, rtol=1e-4, atol=1e-5)
        assert data.parameters(row) == truth.parameters(row)


def test_files_say_what_they_are(roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred", trajectories=1)
    with h5py.File(out / "data" / "test" / "toy_00000.hdf5") as file:
        assert file.attrs["overtone_predicted_frames"] == "2 to 6, counted from 0"
        assert file.attrs["overtone_model"] == "roller"
        assert file.attrs["overtone_schedule"] == "4-8"
        assert str(tmp_path) not in str(dict(file.attrs))


def test_steps_may_go_beyond_the_data(roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred", steps=30)
    assert WellFolder(out, "test").num_frames(0) == 32


def test_an_existing_folder_is_refused_unless_told(roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred")
    with pytest.raises(ot.DataError, match="exists; choose another folder, or give --overwrite"):
        predict(roller, toy, out)
    predict(roller, toy, out, steps=2, overwrite=True)
    assert WellFolder(out, "test", 1).num_frames(0) == 4
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(ot.DataError, match=r"did not write: 'thesis\.tex'"):
        predict(roller, toy, out, overwrite=True)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ot.DataError, match="is a file; it is left alone"):
        predict(roller, toy, file, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pred"]


def test_a_blow_up_leaves_nothing_behind(steppers, roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred")
    copy = shutil.copytree(out, tmp_path / "copy")
    with pytest.raises(ot.RolloutDiverged, match="at rollout step 3"):
        bad = Candidate("x", steppers["Exploding"](moment=5.0))
        predict(bad, toy, out, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "pred"]
    names = [p.relative_to(out) for p in out.rglob("*")]
    assert names == [p.relative_to(copy) for p in copy.rglob("*")]


def test_bad_steps(roller, toy, tmp_path):
    with pytest.raises(ot.DataError, match="at least 1"):
        predict(roller, toy, tmp_path / "pred", steps=0)
    assert [*tmp_path.iterdir()] == []


def test_neither_the_source_nor_what_holds_it_is_replaced(roller, toy, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(toy, source)
    for out in (source, tmp_path):
        with pytest.raises(ot.DataError, match="which this command reads; it can't be replaced"):
            predict(roller, source, out, overwrite=True)
    assert WellFolder(source, "test", 1).num_frames(0) == WellFolder(toy, "test", 1).num_frames(0)


def test_a_dataset_that_is_not_of_predictions_is_left_alone(roller, toy, tmp_path):
    shutil.copytree(toy, tmp_path / "own")
    with pytest.raises(ot.DataError, match="not one that Overtone marked"):
        predict(roller, toy, tmp_path / "own", overwrite=True)
    assert len(WellFolder(tmp_path / "own", "test", 1))
