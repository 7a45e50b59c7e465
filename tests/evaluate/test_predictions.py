"""Predictions written as a dataset, read back and compared with the rollout itself."""

import shutil

import h5py
import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import Header, WellFolder, check, write_well
from overtone.evaluate import Candidate, Trajectories, write_predictions
from overtone.guard.folders import MARKER

SCHEDULE = ot.parse_schedule("4-8")


def predict(candidate, toy, out, steps=5, **options):
    return write_predictions(candidate, toy, out, schedule=SCHEDULE, steps=steps, **options)


@pytest.mark.parametrize("batch", [2, 8])
def test_the_folder_holds_the_rollout(emulator, toy, tmp_path, batch):
    seen = []
    candidate = Candidate("e", emulator)
    options = {"start": 2, "batch": batch, "progress": lambda n, m: seen.append((n, m))}
    found = predict(candidate, toy, tmp_path / "pred", **options)
    assert (found.path, found.steps, found.lengths) == (tmp_path / "pred", 5, (5,) * 5)
    assert found.complete
    out = found.path
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
    out = predict(roller, toy, tmp_path / "pred", trajectories=1).path
    with h5py.File(out / "data" / "test" / "toy_00000.hdf5") as file:
        assert file.attrs["overtone_predicted_frames"] == "2 to 6, counted from 0"
        assert file.attrs["overtone_model"] == "roller"
        assert file.attrs["overtone_schedule"] == "4-8"
        assert str(tmp_path) not in str(dict(file.attrs))


def test_steps_may_go_beyond_the_data(roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred", steps=30).path
    assert WellFolder(out, "test").num_frames(0) == 32


def test_an_existing_folder_is_refused_unless_told(roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred").path
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


def exploding(steppers, moment, *amplitudes):
    """Right until the clock shows `moment`; then trajectories of these amplitudes are lost."""
    return Candidate("x", steppers["Exploding"](amplitudes=amplitudes, moment=moment))


def test_a_blow_up_ends_its_own_trajectory_and_no_other(steppers, toy, tmp_path):
    """Amplitude 2 is trajectory 1; the clock starts at 0 and shows 6 at the fifth step."""
    seen = []
    bad = exploding(steppers, 6.0, 2.0)
    found = predict(bad, toy, tmp_path / "pred", 9, progress=lambda n, m: seen.append((n, m)))
    assert (found.steps, found.lengths) == (9, (9, 4, 9, 9, 9))
    assert not found.complete
    assert found.notes == (
        "trajectory 1 blew up at step 5 of 9; the 4 frames before it are written",
    )
    assert seen[-1] == (18, 18)
    assert seen == sorted(seen)
    names = sorted(path.name for path in (found.path / "data" / "test").iterdir())
    assert names == [f"toy_{number:05d}.hdf5" for number in (0, 1, 2, 3)]
    assert {path.name for path in found.path.iterdir()} == {"data", MARKER}
    assert not [f for f in check(found.path) if f.severity == "error"]
    data, truth = WellFolder(found.path, "test", 1), Trajectories(toy, ("a", "clock"), 2, {})
    assert [data.num_frames(row) for row in range(5)] == [11, 6, 11, 11, 11]
    for row in range(5):
        frames = data.frames(row, 0, data.num_frames(row)).fields
        assert torch.equal(frames, truth.folder.frames(row, 0, len(frames)).fields)
        assert data.parameters(data.first_item(row)) == truth.parameters(row)
    data.close()
    with h5py.File(found.path / "data" / "test" / "toy_00001.hdf5") as file:
        assert file.attrs["overtone_predicted_frames"] == "2 to 5, counted from 0"
        assert file.attrs["overtone_blow_up"] == "at step 5 of 9"
    with h5py.File(found.path / "data" / "test" / "toy_00002.hdf5") as file:
        assert "overtone_blow_up" not in file.attrs


def test_where_all_blow_up_the_valid_frames_are_kept(steppers, toy, tmp_path):
    calls = []
    bad = exploding(steppers, 5.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    model = bad.model.__class__.__call__
    bad.model.__class__ = type(
        "Counting", (bad.model.__class__,),
        {"__call__": lambda self, *a: calls.append(1) or model(self, *a)},
    )  # fmt: skip
    found = predict(bad, toy, tmp_path / "pred", 1000)
    assert found.lengths == (3,) * 5
    assert len(calls) == 2 * 4  # nobody goes on without trajectories
    assert WellFolder(found.path, "test", 1).num_frames(0) == 5
    assert len([*(found.path / "data" / "test").iterdir()]) == 2


def test_without_any_valid_frame_the_context_is_all_there_is(steppers, toy, tmp_path):
    found = predict(exploding(steppers, 2.0, 1.0, 4.0, 5.0), toy, tmp_path / "pred", trajectories=1)
    assert found.lengths == (0,)
    assert "only its context is written" in found.notes[0]
    assert WellFolder(found.path, "test", 1).num_frames(0) == 2
    (file,) = (found.path / "data" / "test").iterdir()
    with h5py.File(file) as opened:
        assert opened.attrs["overtone_predicted_frames"] == "none"


def test_vectors_survive_the_splitting_of_a_file(tmp_path):
    """Channels come back in the order in which the model has them."""
    shape = (8, 8)
    header = Header("flow", shape, (1.0, 1.0), "periodic", 0.5)
    fields = {
        "p": np.random.default_rng(0).standard_normal((3, 4, *shape)).astype("float32"),
        "v": np.random.default_rng(1).standard_normal((3, 4, *shape, 2)).astype("float32"),
    }
    write_well(tmp_path / "flow" / "data" / "test" / "a.hdf5", fields, header)
    domain = WellFolder(tmp_path / "flow", "test", 1).domain

    class Lost:
        patches, context, num_parameters = (4,), 2, 0

        def __init__(self):
            self.domain, self.calls = domain, 0

        def __call__(self, window, patch, shift=0):
            self.calls += 1
            frame = window.fields[:, -1].clone()
            if self.calls == 2:
                frame[1] = torch.inf
            return frame

    found = write_predictions(
        Candidate("l", Lost()),
        tmp_path / "flow",
        tmp_path / "out",
        schedule=ot.Constant(4),
        steps=3,
    )
    assert found.lengths == (3, 1, 3)
    read, true = WellFolder(tmp_path / "out", "test", 1), WellFolder(tmp_path / "flow", "test", 1)
    for row in range(3):
        assert torch.equal(read.frames(row, 0, 2).fields, true.frames(row, 0, 2).fields)
        assert torch.equal(read.frames(row, 2, 1).fields, true.frames(row, 1, 1).fields)


def test_a_failure_leaves_an_older_folder_as_it_was(steppers, roller, toy, tmp_path):
    out = predict(roller, toy, tmp_path / "pred").path
    copy = shutil.copytree(out, tmp_path / "copy")

    def fail(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(roller, toy, out, overwrite=True, progress=fail)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "pred"]
    names = [p.relative_to(out) for p in out.rglob("*")]
    assert names == [p.relative_to(copy) for p in copy.rglob("*")]


@pytest.mark.parametrize("name", ["{folder}/victim", "../../../x", "..", "a/b", "con", ""])
def test_the_name_of_a_dataset_leads_nowhere_else(roller, toy, tmp_path, name):
    data = shutil.copytree(toy, tmp_path / "in" / "toy")
    for path in (data / "data" / "test").iterdir():
        with h5py.File(path, "r+") as file:
            file.attrs["dataset_name"] = name.format(folder=tmp_path)
    victim = tmp_path / "victim_00000.hdf5"
    victim.write_text("years of work")
    with pytest.raises(ot.DataError, match="it would become the name of a file"):
        predict(roller, data, tmp_path / "out" / "a" / "pred")
    assert victim.read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "victim_00000.hdf5"]


def test_more_frames_than_the_disk_holds_are_refused(roller, toy, tmp_path):
    with pytest.raises(ot.DataError, match="1000000000000 frames of 5 trajectories takes .* PB"):
        predict(roller, toy, tmp_path / "pred", 10**12)
    assert [*tmp_path.iterdir()] == []


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


def test_each_trajectory_keeps_its_own_scalars_when_another_blows_up(tmp_path, toy, steppers):
    """The batch becomes files of one, two and one trajectories; the amplitude tells them apart."""
    amplitudes = [1.0, 2.0, 3.0, 4.0]
    source = WellFolder(toy, "test", 1)
    frames = torch.stack([source.frames(row, 0, 12).fields for row in range(4)])
    header = Header("toy", (16, 32), (1.0, 2.0), "periodic", 0.5)
    fields = {"a": frames[:, :, 0], "clock": frames[:, :, 1]}
    scalars = {"amplitude": amplitudes}
    write_well(tmp_path / "in/data/test/a.hdf5", fields, header, scalars=scalars)
    found = predict(exploding(steppers, 5.0, 1.0, 4.0), tmp_path / "in", tmp_path / "out", 6)
    assert found.lengths == (3, 6, 6, 3)
    data = WellFolder(tmp_path / "out", "test", 1)
    known = [data.parameters(data.first_item(row))["amplitude"] for row in range(4)]
    sizes = [data.frames(row, 0, 1).fields[0, 0].square().mean().sqrt() for row in range(4)]
    assert known == amplitudes
    assert [round(size.item()) for size in sizes] == amplitudes
