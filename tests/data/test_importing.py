"""Arrays of all kinds become the same folder."""

import os
import pickle
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import (
    FieldSpec,
    Storage,
    WellFolder,
    check,
    from_files,
    import_arrays,
    importing,
    parse_fields,
)
from overtone.data.variables import open_arrays
from overtone.files import remove_leftovers

FIELDS = "density,velocity:1"


@pytest.fixture(scope="session")
def array():
    """Random values that change slowly, `(n, T, C, X, Y)`."""
    noise = np.random.default_rng(0).standard_normal((10, 7, 3, 4, 6), dtype=np.float32)
    return noise + 3 * noise[:, :1]


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
    a, u, tensor = FieldSpec("a"), FieldSpec("u", 1), FieldSpec("S", 2)
    assert parse_fields("a, u:1,S:2") == {a: (), u: (), tensor: ()}
    assert parse_fields("u:1 = vx + g/vy,a=b") == {u: ("vx", "g/vy"), a: ("b",)}
    for text in ("", "a,,b", "u:3", "u:x", "u:1=", "u:1=a+", "=a"):
        with pytest.raises(ot.DataError, match="expected names with commas"):
            parse_fields(text)


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
        (tmp_path / "a.csv", FIELDS, {}, r"ends in one of .npy, .npz, .zarr, .nc, .hdf5, .h5"),
        (tmp_path / "classic.nc", FIELDS, {}, "classic netCDF file; convert it"),
        (source, "a,b", {}, r"shape \(10, 7, 3, 4, 6\), which fits none .* name its channels"),
        (source, "a,b", {"layout": "ntcxy"}, r"shape \(10, 7, 3, 4, 6\).*C = 3 .* expected C = 2"),
        (several, "densty,velocity:1", {}, "no array 'densty'.*did you mean 'density'"),
        (several, "density,velocity", {"layout": "ntxy"}, "velocity' has shape .*expected 4 axes"),
        (several, None, {}, "several arrays: density .* velocity .* --fields"),
        (broken, FIELDS, {}, "trajectory 3 of .* is NaN or missing at step 2, field 'velocity_x'"),
        (source, FIELDS, {"splits": (0.5, 0.5)}, "three fractions"),
        (source, FIELDS, {"splits": (0.5, 0.4, 0.4)}, "add up to 1"),
        (source, FIELDS, {"per_file": 0}, "per_file is 0"),
    ]
    for number, (path, fields, options, message) in enumerate(cases):
        with pytest.raises(ot.DataError, match=message):
            import_arrays(path, tmp_path / f"out{number}", fields=fields, **options)
        assert not [*tmp_path.glob("out*"), *tmp_path.glob(".*")]
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


def test_values_beyond_float32_have_a_place(tmp_path, array):
    wide = array.astype(np.float64)
    wide[4, 5, 2, 1, 3] = -1e39
    path = save_npy(tmp_path / "wide", wide)
    place = r"trajectory 4 .* step 5, field 'velocity_y', cell \(1, 3\); nothing is written"
    with pytest.raises(ot.DataError, match=place) as caught:
        import_arrays(path, tmp_path / "out", fields=FIELDS)
    assert "the value -1e+39, which float32 can't hold" in str(caught.value)
    storage = Storage("float64")
    out = import_arrays(path, tmp_path / "out", fields=FIELDS, storage=storage, seed=None)
    assert trajectories(out, "train")[4][5, 2, 1, 3] == -np.inf  # as the reader has float32


def test_trajectories_with_nan_can_be_left_out(tmp_path, array):
    bad = array.copy()
    bad[3, 2, 1, 0, 5], bad[7, 6, 0, 0, 0] = np.nan, np.inf
    path = save_npy(tmp_path / "bad", bad)
    data = from_files(path, fields=FIELDS)
    assert data.drop_nan() == [f"trajectory {i} of '{path}'" for i in (3, 7)]
    out = import_arrays(path, tmp_path / "out", fields=FIELDS, drop_nan=True, seed=None)
    found = [x for split in ("train", "valid", "test") for x in trajectories(out, split)]
    assert np.array_equal(found, np.delete(array, [3, 7], axis=0))
    data = from_files(save_npy(tmp_path / "worse", bad * np.nan), fields=FIELDS)
    with pytest.raises(ot.DataError, match="all 10 trajectories have values that are NaN"):
        data.drop_nan()


@pytest.fixture
def written(monkeypatch):
    """Names of the files that are written, and a file at which somebody presses Ctrl-C."""
    names, original = [], importing._write

    def write(path, *rest):
        if path.name == write.stop:
            raise KeyboardInterrupt
        names.append(path.name)
        original(path, *rest)

    write.stop, write.names = None, names
    monkeypatch.setattr(importing, "_write", write)
    return write


def test_an_interrupted_import_goes_on(tmp_path, array, written):
    source = save_npy(tmp_path / "flow", array)
    options = {"fields": FIELDS, "per_file": 2, "dt": 0.5}
    written.stop = "flow_002.hdf5"
    with pytest.raises(KeyboardInterrupt):
        import_arrays(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    assert written.names == ["flow_000.hdf5", "flow_001.hdf5"]
    written.stop = None
    import_arrays(source, tmp_path / "out", **options)
    # Two were there, of train; two are left of it, then one each of valid and test.
    assert written.names[2:] == ["flow_002.hdf5", "flow_003.hdf5", "flow_000.hdf5", "flow_000.hdf5"]
    at_once = import_arrays(source, tmp_path / "whole" / "out", **options)
    files = [p.relative_to(at_once) for p in sorted(at_once.rglob("*")) if p.is_file()]
    assert len(files) == 8  # six of data, statistics and the marker
    assert all((tmp_path / "out" / p).read_bytes() == (at_once / p).read_bytes() for p in files)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["flow.npy", "out", "whole"]


@pytest.mark.parametrize("change", ["options", "source"])
def test_what_is_left_of_another_import_is_not_gone_on_with(tmp_path, array, written, change):
    source = save_npy(tmp_path / "flow", array)
    options = {"fields": FIELDS, "per_file": 2, "seed": None}
    written.stop = "flow_002.hdf5"
    with pytest.raises(KeyboardInterrupt):
        import_arrays(source, tmp_path / "out", **options)
    written.stop = None
    if change == "options":
        options["seed"] = 1
    else:
        save_npy(tmp_path / "flow", -array)
        os.utime(source, ns=(1, 1))
    out = import_arrays(source, tmp_path / "out", **options)
    assert len(written.names) == 2 + 6
    sign = 1 if change == "options" else -1
    train = trajectories(out, "train")
    assert all(any(np.array_equal(x, sign * row) for row in array) for x in train)
    left = [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert len(left) == 1  # nobody's after a day
    os.utime(left[0], (1, 1))
    import_arrays(source, tmp_path / "out2", **options)
    remove_leftovers(tmp_path / "out")
    assert not left[0].exists()


def test_memory_in_use_does_not_grow_with_the_length(tmp_path, monkeypatch):
    """Frames are read some at a time, those of all trajectories of a file side by side."""
    array = np.random.default_rng(0).standard_normal((3, 50, 4, 4)).cumsum(axis=1)
    source = save_npy(tmp_path / "long", array.astype(np.float32))
    monkeypatch.setattr(importing, "BLOCK_BYTES", 7 * 8 * 3 * 16)
    data = from_files(source, layout="ntxy")
    lengths = [len(block) for _, block in importing.blocks(data, range(3))]
    assert lengths == [7] * 7 + [1]
    out = data.save(tmp_path / "out", splits=(1, 0, 0), seed=None)
    assert np.array_equal(np.stack(trajectories(out, "train"))[:, :, 0], array.astype(np.float32))


def test_a_source_that_changes_meanwhile(tmp_path, array):
    source = save_npy(tmp_path / "flow", array)
    data = from_files(source, fields=FIELDS)
    data.close()
    os.utime(source, ns=(1, 1))
    with pytest.raises(ot.DataError, match="flow.npy' has changed since it was first read"):
        data.save(tmp_path / "out")
    assert [*tmp_path.iterdir()] == [source]


def test_many_files_and_few_open_at_a_time(tmp_path, array, monkeypatch):
    monkeypatch.setattr("overtone.data.trajectories.MAX_OPEN", 2)
    (tmp_path / "runs").mkdir()
    for number, run in enumerate(array):
        np.save(tmp_path / f"runs/{number}.npy", run)
    data = from_files(tmp_path / "runs", fields=FIELDS, layout="tcxy")
    assert np.array_equal([data.read(i, slice(None)) for i in range(10)], array)
    assert len(data._opened) == 2
    copy = pickle.loads(pickle.dumps(data))  # as it goes to a worker
    assert np.array_equal(copy[7], data[7])
