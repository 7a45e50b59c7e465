"""True frames, read one at a time."""

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import Header, WellFolder, write_well
from overtone.evaluate import Trajectories


def read(toy, context=3, **reading):
    return Trajectories(toy, ("a", "clock"), context, reading)


def whole(toy):
    """All frames, `(n, T, C, *shape)`, the slow and obvious way."""
    data = WellFolder(toy, "test", 1, whole=True)
    items = [data[i] for i in range(len(data))]
    return torch.stack([torch.cat([window.fields, rest]) for window, rest in items])


def test_windows_and_frames_are_those_of_the_files(toy):
    frames, truth = whole(toy), read(toy, start=2)
    assert (len(truth), truth.first, truth.num_targets(0)) == (5, 5, 11)
    assert torch.equal(truth.window([1, 4], 3, 5).fields, frames[[1, 4], 2:5])
    assert torch.equal(truth.frame([0, 3], 9), frames[[0, 3], 9])
    assert truth.name == "toy"
    assert truth.parameters(4) == {"wind": 2.0}


def test_stride_and_coarsening(toy):
    truth = read(toy, stride=2, coarsen=(2, 4))
    frames = whole(toy)[:, ::2].reshape(5, 8, 2, 8, 2, 8, 4).mean(dim=(4, 6))
    assert truth.domain.shape == (8, 8)
    assert truth.domain.dt == 1.0
    assert torch.allclose(truth.frame([2], 7), frames[[2], 7])


def test_batches_respect_size_and_files(toy):
    truth = read(toy)
    assert [*truth.batches(2)] == [[0, 1], [2, 3], [4]]
    assert [*truth.batches(10)] == [[0, 1, 2, 3, 4]]
    assert [*truth.batches(10, by_file=True)] == [[0, 1, 2], [3, 4]]
    assert [*read(toy, trajectories=2).batches(3)] == [[0, 1]]
    with pytest.raises(ot.DataError, match="batch is 0"):
        [*truth.batches(0)]


def test_batches_keep_domains_apart(tmp_path):
    for number, dt in enumerate((0.5, 0.5, 0.25)):
        header = Header("toy", (8,), (1.0,), "periodic", dt)
        write_well(tmp_path / f"{number}.hdf5", {"a": np.ones((1, 4, 8))}, header)
    assert [*Trajectories(tmp_path, ("a",), 2, {}).batches(3)] == [[0, 1], [2]]


def test_too_few_frames_says_how_many_there_are(toy):
    read(toy, start=1).require_steps(12)
    with pytest.raises(ot.DataError, match="13 steps.*16 frames, which leaves 12 steps"):
        read(toy, start=1).require_steps(13)
    with pytest.raises(ot.DataError, match="at least 1"):
        read(toy).require_steps(0)


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"split": "tset"}, "did you mean 'test'"),
        ({"start": -1}, "start is -1"),
        ({"trajectories": 0}, "trajectories 0"),
        ({"coarsen": 3}, "must divide"),
    ],
)
def test_mistakes(toy, reading, message):
    with pytest.raises(ot.DataError, match=message):
        read(toy, **reading)


def test_fields_must_be_there_in_the_same_order(toy):
    with pytest.raises(ot.DataError, match="no field 'b'"):
        Trajectories(toy, ("b",), 2, {})
    with pytest.raises(ot.DataError, match="in the order"):
        Trajectories(toy, ("clock", "a"), 2, {})
    assert Trajectories(toy, ("clock",), 2, {}).frame([0], 7).unique().tolist() == [7.0]


def test_nan_in_the_truth_is_named(tmp_path):
    values = np.ones((2, 6, 8), np.float32)
    values[1, 4, 2] = np.nan
    path = write_well(tmp_path / "x.hdf5", {"a": values}, Header("toy", (8,), (1.0,), "periodic"))
    truth = Trajectories(path, ("a",), 2, {})
    truth.frame([0, 1], 3)
    with pytest.raises(ot.DataError, match="trajectory 1 of 'toy', frame 4"):
        truth.window([0, 1], 2, 5)
