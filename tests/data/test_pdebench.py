"""PDEBench's kinds of files, made here by the sizes and names that its own have."""

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data import from_files

TIMES, X, Y = np.arange(6) * 0.05, np.linspace(-1, 1, 16, endpoint=False), np.arange(10) / 10


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((4, 6, 16, 10, 2), dtype=np.float32)


def write(path, content):
    with h5py.File(path, "w") as file:
        for name, array in content.items():
            file[name] = array
    return path


COORDINATES = {"t-coordinate": np.arange(7) * 0.05, "x-coordinate": X, "y-coordinate": Y}


def test_one_tensor_in_one_dimension(tmp_path, values):
    content = {"tensor": values[..., 0, 0], **COORDINATES}
    del content["y-coordinate"]
    data = from_files(write(tmp_path / "1D_Burgers.hdf5", content), layout="pdebench")
    assert (len(data), data.domain.shape, data.domain.extent) == (4, (16,), (2.0,))
    assert (data.domain.dt, data.domain.fields) == (0.05, ("tensor",))
    assert data.facts["layout"].origin == "names of PDEBench"
    assert np.array_equal(data.read(2, slice(None))[:, 0], values[2, ..., 0, 0])


def test_one_tensor_with_channels(tmp_path, values):
    path = write(tmp_path / "2D.hdf5", {"tensor": values, **COORDINATES})
    data = from_files(path)  # names are enough
    assert data.domain.fields == ("tensor_0", "tensor_1")
    named = from_files(path, layout="pdebench", fields="h,u")
    assert (named.domain.fields, named.domain.extent) == (("h", "u"), (2.0, 1.0))
    assert np.array_equal(named.read(1, slice(2, 4))[:, 1], values[1, 2:4, ..., 1])


def test_one_dataset_for_each_field(tmp_path, values):
    names = {"Vx": values[..., 0], "Vy": values[..., 1], "density": -values[..., 0]}
    path = write(tmp_path / "2D_CFD.hdf5", {**names, "pressure": values[..., 1], **COORDINATES})
    data = from_files(path, layout="pdebench")
    assert data.domain.fields == ("density", "pressure", "velocity_x", "velocity_y")
    expected = np.stack(
        [-values[3, ..., 0], values[3, ..., 1], values[3, ..., 0], values[3, ..., 1]], 1
    )
    assert np.array_equal(data.read(3, slice(None)), expected)
    assert from_files(path, layout="pdebench", fields="density").domain.fields == ("density",)


def test_one_group_for_each_trajectory(tmp_path, values):
    content = {}
    for number in (10, 2, 0, 1):
        content[f"{number:04d}/data"] = values[number % 4]
        content |= {f"{number:04d}/grid/{k}": v for k, v in (("t", TIMES), ("x", X), ("y", Y))}
    path = write(tmp_path / "2D_diff-react.h5", content)
    data = from_files(path, fields="u,v")
    assert (len(data), data.domain.dt, data.domain.extent) == (4, 0.05, (2.0, 1.0))
    for found, expected in zip(range(4), (0, 1, 2, 2), strict=True):
        assert np.array_equal(data.read(found, slice(None))[:, 1], values[expected, ..., 1])
    path = tmp_path / "other.h5"
    write(path, content | {"0011/data": values[0, :, :8], "0011/grid/x": X[:8]})
    with pytest.raises(ot.DataError, match="'0011/data' has shape .*'0000/data' has .*one grid"):
        from_files(path)


def test_several_files(tmp_path, values):
    paths = [
        write(tmp_path / f"{i}.hdf5", {"tensor": part, **COORDINATES})
        for i, part in enumerate(np.split(values, 2))
    ]
    data = from_files(paths, layout="pdebench")
    assert np.array_equal(np.moveaxis(data.read(2, slice(None)), 1, -1), values[2])


def test_incompressible_flow(tmp_path, values):
    """Channels in any case, no coordinates of space, and times of each trajectory."""
    times = np.tile(TIMES, (4, 1))
    content = {"velocity": values, "particles": values[..., :1], "t": times, "force": values[:, 0]}
    path = write(tmp_path / "ns.h5", content)
    data = from_files(path, layout="pdebench")
    assert data.domain.fields == ("particles", "velocity_x", "velocity_y")
    assert (data.domain.dt, data.domain.extent) == (0.05, (16.0, 10.0))
    times[2] *= 2
    path = write(tmp_path / "other.h5", content | {"t": times})
    with pytest.raises(ot.DataError, match="trajectories have different times in 't'"):
        from_files(path, layout="pdebench")


def test_files_that_are_not_pdebenchs(tmp_path, values):
    path = write(tmp_path / "a.h5", {"something": values})
    with pytest.raises(ot.DataError, match="none of PDEBench's files: it has something; expected"):
        from_files(path, layout="pdebench")
    path = write(tmp_path / "darcy.h5", {"tensor": values[:, :1], **COORDINATES})
    with pytest.raises(ot.DataError, match="1 frame in each trajectory"):
        from_files(path)
