"""True frames, read one at a time.

What a file said about itself is said again.
"""

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec, Header, WellFolder, write_well
from overtone.data.location import Location
from overtone.evaluate import Trajectories
from overtone.evaluate.trajectories import coordinates, fields_of, header_like


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
        [*truth.batches(0)]  # pyright: ignore[reportUnusedExpression]


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


@pytest.fixture
def file(tmp_path):
    y = np.linspace(-1, 1, 8) ** 3
    header = Header(
        "toy", (6, 8), (3.0, 2.0), ("periodic", "wall"), 0.25, axes=("x", "z"),
        coordinates=(np.arange(6) / 2, y), parameters={"speed": 3.0}, grid_type="uneven",
    )  # fmt: skip
    values = {"b": np.ones((2, 3, 6, 8)), "v": np.ones((2, 3, 6, 8, 2))}
    path = write_well(tmp_path / "a.hdf5", values, header)
    return Location(str(path)), y


def test_coordinates_and_their_means(file):
    place, y = file
    layout = place.layout()
    own = coordinates(place, layout, (6, 8))
    assert np.allclose(own[0], np.arange(6) / 2)
    assert np.allclose(own[1], y, atol=1e-6)
    coarse = coordinates(place, layout, (3, 2))
    assert np.allclose(coarse[0], [0.25, 1.25, 2.25])
    assert np.allclose(coarse[1], [y[:4].mean(), y[4:].mean()], atol=1e-6)


def test_the_header_is_the_same_again(file, tmp_path):
    place, _ = file
    layout = place.layout()
    header = header_like(place, layout, layout.domain, {"note": "again"})
    path = write_well(tmp_path / "b.hdf5", {"b": np.ones((2, 3, 6, 8))}, header)
    again = Location(str(path)).layout()
    for name in ("dataset_name", "grid_type", "axes", "shape", "boundaries", "dt", "parameters"):
        assert getattr(again, name) == getattr(layout, name), name
    assert again.extent == pytest.approx(layout.extent, rel=1e-4)
    with Location(str(path)).open() as opened:
        assert opened.attrs["note"] == "again"


def test_fields_from_channels(file):
    layout = file[0].layout()
    assert layout.channels == ("b", "v_x", "v_z")
    whole = [FieldSpec("b"), FieldSpec("v", 1)]
    assert fields_of(layout, ("b", "v_x", "v_z")) == (whole, [0, 1, 2])
    assert fields_of(layout, ("v_z",)) == ([FieldSpec("v_z")], [0])
    assert fields_of(layout, ("b", "v_z")) == ([FieldSpec("b"), FieldSpec("v_z")], [0, 1])


def test_a_part_of_a_vector_goes_before_whole_ones(tmp_path):
    values = {"v": np.ones((1, 2, 4, 6, 2)), "w": np.ones((1, 2, 4, 6, 2))}
    header = Header("toy", (4, 6), (1.0, 1.0), "periodic")
    layout = Location(str(write_well(tmp_path / "c.hdf5", values, header))).layout()
    specs, order = fields_of(layout, ("v_x", "v_y", "w_y"))
    assert specs == [FieldSpec("w_y"), FieldSpec("v", 1)]
    assert order == [2, 0, 1]
