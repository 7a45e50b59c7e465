"""Arrays of all kinds become the same folder."""

import os
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec, WellFolder, check, import_arrays, parse_fields
from overtone.data.arrays import open_arrays

FIELDS = "density,velocity:1"


@pytest.fixture(scope="session")
def array():
    return np.random.default_rng(0).standard_normal((10, 7, 3, 4, 6), dtype=np.float32)


def save_npy(path, array):
    np.save(path.with_suffix(".npy"), array)
    return path.with_suffix(".npy")


def save_npz(path, array):
    np.savez(path.with_suffix(".npz"), anything=array)
    return path.with_suffix(".npz")


def by_field(array):
    return {"density": array[:, :, 0], "velocity": np.moveaxis(array[:, :, 1:], 2, -1)}


def save_npz_by_field(path, array):
    np.savez_compressed(path.with_suffix(".npz"), **by_field(array))
    return path.with_suffix(".npz")


def save_netcdf(path, array):
    with h5py.File(path.with_suffix(".nc"), "w") as file:
        file["time"] = np.arange(7.0)
        for name, values in by_field(array).items():
            file[name] = values
    return path.with_suffix(".nc")


def save_zarr(path, array):
    zarr = pytest.importorskip("zarr")
    zarr.save(str(path.with_suffix(".zarr")), array)
    return path.with_suffix(".zarr")


def save_zarr_group(path, array):
    zarr = pytest.importorskip("zarr")
    zarr.save_group(str(path.with_suffix(".zarr")), **by_field(array))
    return path.with_suffix(".zarr")


def trajectories(folder, split):
    data = WellFolder(folder, split, context=1, whole=True)
    return [torch.cat([window.fields, target]).numpy() for window, target in data]


@pytest.mark.parametrize(
    "save", [save_npy, save_npz, save_npz_by_field, save_netcdf, save_zarr, save_zarr_group]
)
@pytest.mark.filterwarnings("ignore::UserWarning:zarr", "ignore::FutureWarning:zarr")
def test_every_trajectory_is_in_one_split(tmp_path, array, save):
    source = save(tmp_path / "flow", array)
    out = import_arrays(
        source,
        tmp_path / "out",
        fields=FIELDS,
        dt=0.5,
        boundaries=("periodic", ("wall", "open")),
        extent=(1.0, 3.0),
        splits=(0.6, 0.2, 0.2),
        per_file=4,
    )
    found = {split: trajectories(out, split) for split in ("train", "valid", "test")}
    assert {split: len(entries) for split, entries in found.items()} == {
        "train": 6,
        "valid": 2,
        "test": 2,
    }
    everything = [entry for entries in found.values() for entry in entries]
    matches = [[np.array_equal(entry, row) for row in array].index(True) for entry in everything]
    assert sorted(matches) == list(range(10))
    assert matches != list(range(10))  # shuffled
    domain = WellFolder(out).domain
    assert domain.fields == ("density", "velocity_x", "velocity_y")
    assert (domain.extent, domain.dt) == ((1.0, 3.0), 0.5)
    assert domain.boundaries[1] == (ot.Boundary.WALL, ot.Boundary.OPEN)
    assert check(out) == []
    assert len(list((out / "data/train").iterdir())) == 2


def test_order_is_kept_without_a_seed(tmp_path, array):
    source = save_npy(tmp_path / "flow", array)
    out = import_arrays(source, tmp_path / "out", fields=FIELDS, seed=None)
    found = [x for split in ("train", "valid", "test") for x in trajectories(out, split)]
    assert all(np.array_equal(a, b) for a, b in zip(found, array, strict=True))


def test_pickles_are_refused(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    objects = np.empty((1, 2, 3, 4), dtype=object)
    objects[:] = Bomb()
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "b.npz", a=objects)
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ot.DataError, match="can't be read as"):
            import_arrays(tmp_path / name, tmp_path / "out", fields="a,b,c")
    assert not (tmp_path / "out").exists()


def test_parse_fields():
    assert parse_fields("a, u:1,S:2") == (FieldSpec("a"), FieldSpec("u", 1), FieldSpec("S", 2))
    for text in ("", "a,,b", "u:3", "u:x"):
        with pytest.raises(ot.DataError, match="expected names with commas"):
            parse_fields(text)
    with pytest.raises(ot.DataError, match="scalars first"):
        parse_fields("u:1,a")


def test_mistakes_are_explained(tmp_path, array):
    source = save_npy(tmp_path / "flow", array)
    several = save_npz_by_field(tmp_path / "several", array)
    bad = array.copy()
    bad[3, 2, 1, 0, 5] = np.nan
    broken = save_npy(tmp_path / "broken", bad)
    (tmp_path / "a.csv").write_text("1,2")
    (tmp_path / "classic.nc").write_bytes(b"CDF\x01")
    cases = [
        (tmp_path / "no.npy", FIELDS, {}, "does not exist"),
        (tmp_path / "a.csv", FIELDS, {}, r"ends in .npy, .npz, .zarr or .nc"),
        (tmp_path / "classic.nc", FIELDS, {}, "classic netCDF file; convert it"),
        (source, "a,b", {}, r"shape \(10, 7, 3, 4, 6\).*C = 2"),
        (several, "densty,velocity:1", {}, "no array 'densty'.*did you mean 'density'"),
        (several, "density,velocity", {}, "expected .n, T, .S. with the same"),
        (broken, FIELDS, {}, "trajectory 3 has a value that is NaN.*step 2, channel 1"),
        (source, FIELDS, {"splits": (0.5, 0.5)}, "three fractions"),
        (source, FIELDS, {"splits": (0.5, 0.4, 0.4)}, "add up to 1"),
        (source, FIELDS, {"per_file": 0}, "per_file is 0"),
    ]
    for number, (path, fields, options, message) in enumerate(cases):
        with pytest.raises(ot.DataError, match=message):
            import_arrays(path, tmp_path / f"out{number}", fields=fields, **options)
        assert not [*tmp_path.glob("out*"), *tmp_path.glob(".import*")]
    out = import_arrays(source, tmp_path / "out", fields=FIELDS)
    with pytest.raises(ot.DataError, match="is not empty; it is left alone"):
        import_arrays(source, out, fields=FIELDS)


def test_zarr_that_is_not_installed(tmp_path, monkeypatch):
    (tmp_path / "a.zarr").mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ot.DataError, match=r"pip install 'overtone\[arrays\]'"):
        import_arrays(tmp_path / "a.zarr", tmp_path / "out", fields="a")


@pytest.mark.parametrize(
    "name", ["../../x", "/elsewhere/x", "a/b", "..", ".hidden", "-rf", "a\x1b[1m", "nul"]
)
def test_a_name_can_not_lead_elsewhere(tmp_path, array, name):
    source = save_npy(tmp_path / "flow", array)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ot.DataError, match=r"the dataset's name .name. is '.*', which"):
        import_arrays(source, tmp_path / "a/b/c/out", fields=FIELDS, name=name)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_whose_name_can_not_be_that_of_a_dataset(tmp_path, array):
    source = save_npy(tmp_path / "a:b", array)
    with pytest.raises(ot.DataError, match=r"the dataset's name .name. is 'a:b'"):
        import_arrays(source, tmp_path / "out", fields=FIELDS)
    out = import_arrays(source, tmp_path / "out", fields=FIELDS, name="ab")
    assert next((out / "data/test").iterdir()).name == "ab_000.hdf5"


def test_a_netcdf_file_that_is_cut_while_it_is_read(tmp_path, array):
    path = save_netcdf(tmp_path / "flow", array)
    with open_arrays(path) as arrays:
        assert np.array_equal(arrays["density"][0], array[0, :, 0])
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(ot.DataError, match="flow.nc' has changed while it was read"):
            _ = arrays["density"][9]


def test_more_than_the_disk_holds(tmp_path, array, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(ot.DataError, match="a dataset of .* takes 20.2 kB, but only 1.0 kB are fr"):
        import_arrays(save_npy(tmp_path / "flow", array), tmp_path / "out", fields=FIELDS)


def test_seeds_of_any_size(tmp_path, array):
    source = save_npy(tmp_path / "flow", array)
    out = import_arrays(source, tmp_path / "out", fields=FIELDS, seed=10**30)
    assert len(trajectories(out, "train")) == 8
