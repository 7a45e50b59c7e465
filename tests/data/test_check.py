"""Each seeded fault is found, in the right file and at the right place."""

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data import FieldSpec, check, write_stats, write_well


@pytest.fixture
def folder(make_folder):
    path, _ = make_folder()
    write_stats(path)
    return path


def found(folder, severity="error"):
    return [(f.file, f.message) for f in check(folder) if f.severity == severity]


def test_a_good_dataset_has_no_findings(folder):
    progress = []
    assert check(folder, progress=lambda n, m: progress.append((n, m))) == []
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_truncated(folder):
    path = folder / "data/train/toy_1.hdf5"
    path.write_bytes(path.read_bytes()[:-2000])
    ((file, message),) = found(folder)
    assert file == str(path)
    assert "truncated or damaged" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is an empty file"),
        (b"<!DOCTYPE html><html>404", "not an HDF5 file: it begins with '<!DOCTYPE html>"),
        (b"version https://git-lfs.github.com/spec/v1", "It may be a failed download"),
    ],
)
def test_failed_downloads(folder, content, message):
    (folder / "data/valid/toy_0.hdf5").write_bytes(content)
    ((_, text),) = found(folder)
    assert message in text


def test_not_finite_values_are_located(folder):
    path = folder / "data/test/toy_0.hdf5"
    with h5py.File(path, "r+") as file:
        file["t1_fields/velocity"][1, 4, 2, 3, 1] = np.nan
        file["t1_fields/velocity"][1, 6, 0, 0, 0] = np.inf
        file["t0_fields/pressure"][0, 8, 5, 7] = -np.inf
    messages = [message for file, message in found(folder) if file == str(path)]
    assert "Inf in trajectory 0, step 8, field 'pressure', cell (5, 7)" in messages
    assert "NaN in trajectory 1, step 4, field 'velocity_y', cell (2, 3)" in messages
    assert "field 'velocity' has 2 values that are NaN or infinite in all" in messages


def test_missing_group(folder):
    with h5py.File(folder / "data/train/toy_0.hdf5", "r+") as file:
        del file["scalars"]
    ((_, message),) = found(folder)
    assert "lacks the group 'scalars'" in message


def test_damaged_values(folder, make_header, make_values):
    from overtone.data import Storage

    values = make_values()
    path = folder / "data/train/toy_1.hdf5"
    write_well(path, values, make_header(), storage=Storage(fletcher32=True))
    content = bytearray(path.read_bytes())
    content[content.find(next(iter(values.values()))[0, 0].tobytes()[:64]) + 5] ^= 1
    path.write_bytes(content)
    ((_, message),) = found(folder)
    assert "can't be read" in message


def test_other_grid_fields_and_boundaries(folder, make_header, make_values):
    other = folder / "data/train/z.hdf5"
    write_well(other, make_values((6, 6)), make_header((6, 6)))
    ((file, message),) = found(folder)
    assert (file, message.split(";")[0]) == (str(other), "grid is (6, 6)")
    write_well(other, make_values(specs=(FieldSpec("density"),)), make_header())
    ((_, message),) = found(folder)
    assert message.startswith("channels is (density)")
    write_well(other, make_values(), make_header(boundaries="wall", dt=0.5))
    ((_, message),) = found(folder)
    assert message.startswith("boundaries is ((wall, wall)")
    assert "dt 0.5 and extent" in found(folder, "warning")[0][1]


def test_missing_and_incomplete_statistics(folder):
    text = (folder / "stats.yaml").read_text()
    (folder / "stats.yaml").write_text(text.replace("pressure", "presure"))
    assert len(found(folder)) == 6
    assert "lacks pressure" in found(folder)[0][1]
    (folder / "stats.yaml").unlink()
    assert "no stats.yaml" in found(folder, "warning")[0][1]


def test_missing_and_empty_splits_and_constant_fields(folder, make_header, make_values):
    (folder / "data/test/toy_0.hdf5").unlink()
    assert "split 'test' has no HDF5 files" in found(folder)[0][1]
    (folder / "data/test").rmdir()
    assert "no split test" in found(folder, "warning")[0][1]
    values = make_values()
    next(iter(values.values()))[:] = 1.0
    write_well(folder / "data/train/toy_1.hdf5", values, make_header())
    assert "field 'density' never changes" in [m for _, m in found(folder, "warning")]


def test_one_file_and_no_folder(folder, tmp_path):
    assert check(folder / "data/train/toy_0.hdf5") == []
    with pytest.raises(ot.DataError, match="does not exist"):
        check(tmp_path / "nothing")
