"""The same simulation from any format gives the same windows, and what is open is asked for."""

import re

import h5py
import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec, WellFolder, check, from_arrays, from_files, from_xarray
from overtone.data.origins import import_arrays

NUM, STEPS, SHAPE = 5, 8, (12, 20)
DT, EXTENT, SIDES = 0.1, (1.5, 4.0), ("periodic", ("wall", "open"))
BOUNDARIES = "periodic,wall/open"
TIMES = np.arange(STEPS) * DT
X, Y = ((np.arange(n) + 0.5) * length / n for n, length in zip(SHAPE, EXTENT, strict=True))


@pytest.fixture(scope="session")
def waves():
    """Waves that travel, `(n, T, X, Y)`: neither symmetric nor periodic in anything."""
    t, x, y = (a.reshape(s) for a, s in ((TIMES, (-1, 1, 1)), (X, (-1, 1)), (Y, (1, -1))))
    return np.stack(
        [np.sin((2 + 0.3 * i) * x - 3 * t + i) * np.exp(-0.1 * y) + 0.2 * y for i in range(NUM)]
    ).astype(np.float32)


def as_xarray(waves, **attributes):
    xarray = pytest.importorskip("xarray")
    dims, coordinates = ("sample", "time", "x", "y"), {"time": TIMES, "x": X, "y": Y}
    return xarray.Dataset(
        {"u": (dims, waves)}, coordinates, {"boundaries": BOUNDARIES} | attributes
    )


def to_netcdf(data, path, **options):
    pytest.importorskip("h5netcdf")
    data.to_netcdf(path, engine="h5netcdf", **options)
    return path


def save_npy(folder, waves):
    np.save(folder / "w.npy", waves)
    options = {"layout": "ntxy", "fields": "u", "dt": DT, "extent": EXTENT, "boundaries": SIDES}
    return folder / "w.npy", options


def save_zarr(folder, waves):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder / "w.zarr"), mode="w", attributes={"boundaries": BOUNDARIES})
    arrays = {"u": (waves, ["run", "time", "x", "y"]), "time": (TIMES, ["time"])}
    for name, (values, dims) in (arrays | {"x": (X, ["x"]), "y": (Y, ["y"])}).items():
        group.create_array(name, data=values, dimension_names=dims)
    return folder / "w.zarr", {}


def save_xarray(folder, waves):
    data = as_xarray(waves).transpose("y", "sample", "time", "x")  # names decide, not the order
    return to_netcdf(data, folder / "w.nc"), {}


def save_plain_netcdf(folder, waves):
    """As the netCDF library does it: dimensions with and without coordinate variables."""
    with h5py.File(folder / "w.nc", "w") as file:
        scales = []
        for name, values in (("member", None), ("Time", TIMES), ("x", None), ("lat", Y)):
            size = waves.shape[len(scales)]
            if values is None:
                scale = file.create_dataset(name, (size,), ">f4")
                scale.make_scale(f"This is a netCDF dimension but not a netCDF variable.{size:10d}")
            else:
                scale = file.create_dataset(name, data=values)
                scale.make_scale(name)
            scales.append(scale)
        u = file.create_dataset("u", data=waves.astype(">f8"))
        for axis, scale in zip(u.dims, scales, strict=True):
            axis.attach_scale(scale)
        file.attrs["extent"], file.attrs["boundaries"] = np.array(EXTENT), BOUNDARIES
    return folder / "w.nc", {}


def save_pdebench(folder, waves):
    with h5py.File(folder / "w.hdf5", "w") as file:
        file["tensor"] = waves[..., None]
        file["t-coordinate"] = np.arange(STEPS + 1) * DT  # one more than there are frames
        file["x-coordinate"], file["y-coordinate"] = X.astype("f4"), Y.astype("f4")
    return folder / "w.hdf5", {"layout": "pdebench", "fields": "u", "boundaries": SIDES}


def save_runs(folder, waves):
    (folder / "w").mkdir()
    for number, run in enumerate(waves):
        # 8, 9, 10, 11, 12: people count run 9 before run 10.
        np.savez(folder / f"w/run_{number + 8}.npz", u=run, t=TIMES, x=X, y=Y)
    return folder / "w", {"boundaries": SIDES}


FORMATS = [save_npy, save_zarr, save_xarray, save_plain_netcdf, save_pdebench, save_runs]


@pytest.mark.parametrize("save", FORMATS)
def test_the_same_simulation_from_six_formats(tmp_path, waves, save):
    source, options = save(tmp_path, waves)
    out = import_arrays(source, tmp_path / "out", seed=None, splits=(0.6, 0.2, 0.2), **options)
    assert check(out) == []
    found = []
    for split, num in (("train", 3), ("valid", 1), ("test", 1)):
        data = WellFolder(out, split, context=3)
        assert data.num_trajectories == num
        assert (data.domain.shape, data.domain.fields) == (SHAPE, ("u",))
        assert (data.domain.dt, data.domain.extent) == (DT, EXTENT)
        assert data.domain == ot.Domain(SHAPE, EXTENT, SIDES, ("u",), DT)
        assert len(data) == num * (STEPS - 3)
        found += [data.frames(i, 0, STEPS).fields[:, 0].numpy() for i in range(num)]
        window, target = data[1]
        first = waves[len(found) - num]
        assert np.array_equal(window.fields[:, 0], first[1:4])
        assert np.array_equal(target[:, 0], first[4:5])
    assert np.array_equal(found, waves)


@pytest.mark.parametrize("save", FORMATS)
def test_every_fact_names_its_origin(tmp_path, waves, save):
    source, options = save(tmp_path, waves)
    data = from_files(source, **options)
    origins = {what: origin for what, _, origin in data.understood()}
    values = {what: value for what, value, _ in data.understood()}
    assert (values["trajectories"], values["frames"], values["grid"]) == ("5", "8", "12 x 20")
    assert (values["dt"], values["extent x"], values["extent y"]) == ("0.1", "1.5", "4")
    assert values["boundaries"] == "x periodic, y wall/open"
    asked = "option" if "dt" in options else "coordinate"
    assert origins["dt"].startswith(asked)
    assert origins["extent y"].startswith(asked)
    assert origins["boundaries"] == (
        "option" if "boundaries" in options else "attribute 'boundaries'"
    )
    assert (origins["extent x"] == "attribute 'extent'") == (save is save_plain_netcdf)
    assert all(f"{what}: {values[what]} ({origins[what]})" in repr(data) for what in origins)
    data.close()


def test_defaults_are_called_defaults(tmp_path, waves):
    data = from_arrays(waves, layout="ntxy")
    facts = {what: (value, origin.split(";")[0]) for what, value, origin in data.understood()}
    assert facts["dt"] == ("1", "default")
    assert facts["extent y"] == ("20", "default: cells of length 1")
    assert facts["boundaries"] == ("x periodic, y periodic", "default")
    out = data.save(tmp_path / "out")
    assert [f.message.split(":")[0] for f in check(out)] == ["dt is 1 by default"]


def test_arrays_and_tensors_in_memory(waves):
    options = {"layout": "ntxy", "fields": "u", "dt": DT, "extent": EXTENT, "boundaries": SIDES}
    several = {"u": waves[0], "t": TIMES, "x": X, "y": Y}
    cases = [
        from_arrays(waves, **options),
        from_arrays(torch.from_numpy(waves).requires_grad_(), **options),
        from_arrays(list(waves), **(options | {"layout": "txy"})),
        from_arrays([torch.from_numpy(run) for run in waves], **(options | {"layout": "txy"})),
        from_arrays(np.moveaxis(waves, 1, 3)[..., None], **(options | {"layout": "bxytc"})),
        from_arrays([several | {"u": run} for run in waves], boundaries=SIDES),
    ]
    for data in cases:
        assert data.domain == ot.Domain(SHAPE, EXTENT, SIDES, ("u",), DT)
        assert np.array_equal([data.read(i, slice(None))[:, 0] for i in range(len(data))], waves)
    half = torch.from_numpy(waves).bfloat16()
    assert np.array_equal(
        from_arrays(half, **options).read(2, slice(3, 5))[:, 0], half[2, 3:5].float()
    )


def test_xarray_in_memory(waves):
    data = as_xarray(waves)
    plain = data.isel(sample=2, drop=True)
    for found, number in (
        (from_xarray(data), 2),
        (from_xarray(data.transpose("y", "x", "sample", "time")), 2),
        (from_xarray([data.isel(sample=i) for i in range(NUM)]), 2),
        (from_xarray(plain["u"].transpose("time", "y", "x"), boundaries=SIDES), 0),
    ):
        assert found.domain == ot.Domain(SHAPE, EXTENT, SIDES, ("u",), DT)
        assert np.array_equal(found.read(number, slice(None))[:, 0], waves[2])
    with pytest.raises(ot.DataError, match="data is a list; expected xarray's|is a ndarray"):
        from_xarray(waves)
    dates = data.assign_coords(time=np.datetime64("2000-01-01") + 600 * np.arange(STEPS))
    assert from_xarray(dates.astype("f8")).domain.dt == 600 * 86400  # days are seconds


def test_xarray_that_is_not_installed(waves, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(ot.DataError, match=r"pip install 'overtone\[xarray\]'"):
        from_xarray(waves)


def test_times_since_a_date_are_seconds(tmp_path, waves):
    xarray = pytest.importorskip("xarray")
    dims = ("n", "t", "lon", "lat")
    data = xarray.Dataset({"u": (dims, waves)}, {"t": np.arange(STEPS) * 6})
    for units, dt in (("hours since 2000-01-01", 21600.0), ("s", 6.0), ("day since 1-1-1", 518400)):
        data["t"].attrs["units"] = units
        path = to_netcdf(data, tmp_path / f"{dt}.nc")
        assert from_files(path).domain.dt == dt


def test_trajectories_are_a_sequence_of_arrays(tmp_path, waves):
    """What is trained on in memory is what would be read from the folder."""
    wide = waves.astype(np.float64)
    data = from_arrays(wide, layout="ntxy", dt=DT, extent=EXTENT, fields="u")
    out = data.save(tmp_path / "out", splits=(1, 0, 0), seed=None)
    there = WellFolder(out, context=1, whole=True)
    for here, (window, target) in zip(data, there, strict=True):
        assert np.array_equal(here, torch.cat([window.fields, target]))
        assert here.dtype == np.float32
    assert there.domain == data.domain
    assert np.array_equal(data[-1], data[4])
    assert np.array_equal(data[1:3], [data[1], data[2]])
    data[0][:] = 0  # a copy
    assert np.array_equal(data[0][:, 0], waves[0])
    with pytest.raises(IndexError):
        _ = data[5]


def test_all_fields_of_a_file(tmp_path, waves):
    xarray = pytest.importorskip("xarray")
    dims = ("sample", "time", "x", "y")
    data = xarray.Dataset(
        {
            "u": (dims, waves),
            "v": (dims, -waves),
            "rho": (dims, 2 * waves),
            "mask": (("x", "y"), np.ones(SHAPE)),
            "bounds": (("time", "two"), np.zeros((STEPS, 2))),
            "w": ((*dims, "component"), np.stack([waves, 3 * waves], -1)),
        }
    )
    path = to_netcdf(data, tmp_path / "w.nc")
    found = from_files(path)
    assert found.domain.fields == ("rho", "u", "v", "w_x", "w_y")
    assert {row[0]: row[1] for row in found.understood()}["left out"] == "bounds, mask"
    parts = "velocity:1=u+v,rho"
    found = from_files(path, fields=parts)
    assert found.domain.fields == ("rho", "velocity_x", "velocity_y")  # The Well's order
    expected = np.stack([2 * waves[1], waves[1], -waves[1]], 1)
    assert np.array_equal(found.read(1, slice(None)), expected)
    same = {FieldSpec("velocity", 1): ("u", "v"), FieldSpec("rho"): ("rho",)}
    assert np.array_equal(from_xarray(data, fields=same).read(1, slice(None)), expected)
    assert from_files(path, dataset=["/v", "u"]).domain.fields == ("v", "u")
    with pytest.raises(ot.DataError, match="'velocity:1' has 2 components on 2 axes; u .* has 1"):
        from_files(path, fields="velocity:1=u")


def test_hdf5_of_any_layout(tmp_path, waves):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["deep/down/tensor"] = np.moveaxis(np.stack([waves, -waves], -1), 1, 3)
        file["other"] = np.zeros((3, 4))
        file["deep/down/round"] = file["deep"]  # a circle
    with pytest.raises(ot.DataError, match="several arrays: .*tensor .*--dataset"):
        from_files(path)
    found = from_files(path, dataset="/deep/down/tensor", layout="nxytc")
    assert found.domain.fields == ("tensor_0", "tensor_1")
    assert np.array_equal(found.read(3, slice(2, 4))[:, 1], -waves[3, 2:4])


def test_a_vector_of_few_channels_in_any_place(waves):
    both = np.stack([waves, -waves], 2)
    for arrays in (both, {"u": both}, {"u": np.moveaxis(both, 2, -1)}):
        assert from_arrays(arrays, fields="u:1").domain.fields == ("u_x", "u_y")


AMBIGUOUS = [
    ((60, 64, 64), None, ("txy", "ntx", "tcx", "txc")),
    ((60, 64, 64), "u", ("txy", "ntx")),
    ((5, 8, 12, 20), None, ("ntxy", "txyz", "ntcx", "ntxc", "tcxy", "txyc")),
    ((5, 8, 12, 20), "u", ("ntxy", "txyz")),
    ((5, 8, 3, 3), "a,b,c", ("ntcx", "ntxc", "txyc")),
    ((4, 6, 3, 8, 9), None, ("ntxyz", "ntcxy", "ntxyc", "tcxyz", "txyzc")),
]


@pytest.mark.parametrize(("shape", "fields", "layouts"), AMBIGUOUS)
def test_what_is_ambiguous_is_asked_for(shape, fields, layouts):
    array = np.zeros(shape)
    with pytest.raises(ot.DataError, match=f"can be read in {len(layouts)} ways") as caught:
        from_arrays(array, fields=fields)
    listed = re.findall(
        r"--layout (\w+): (\d+) traj\w+ of (\d+) frames on (\S+) cells", str(caught.value)
    )
    assert sorted(entry[0] for entry in listed) == sorted(layouts)
    for layout, num, steps, cells in listed:  # each of them can be chosen, and is what it says
        data = from_arrays(array, fields=fields, layout=layout)
        assert (len(data), data.runs[0].steps) == (int(num), int(steps))
        assert "x".join(map(str, data.domain.shape)) == cells


def test_names_that_leave_a_choice(waves):
    xarray = pytest.importorskip("xarray")
    cases = {
        ("time", "i", "j"): ["txy", "tnx", "txn", "tcx", "txc"],
        ("time", "step", "x", "y"): ["ntxy", "tnxy", "ctxy", "tcxy"],
        ("a", "t", "x", "y"): ["ntxy", "ctxy", "ztxy"],
    }
    for dims, expected in cases.items():
        data = xarray.Dataset({"u": (dims, waves if len(dims) == 4 else waves[0])})
        with pytest.raises(ot.DataError, match=re.escape(f"'u' ({', '.join(dims)})")) as caught:
            from_xarray(data)
        listed = re.findall(r"--layout (\w+):", str(caught.value))
        assert set(expected) <= set(listed)
        assert "any other order" in str(caught.value)
    known = xarray.Dataset({"u": (("a", "t", "x", "y"), waves)}, {"a": ("a", np.zeros(NUM))})
    known["a"].attrs["standard_name"] = "realization"
    assert len(from_xarray(known)) == NUM
    still = xarray.Dataset({"u": (("x", "y"), waves[0, 0])})
    with pytest.raises(ot.DataError, match="no array with an axis of time"):
        from_xarray(still)
    with pytest.raises(ot.DataError, match="has no axis of time; expected one that is called"):
        from_xarray(still, fields="u")


def test_folders_must_agree(tmp_path, waves):
    runs = [{"u": waves[0], "t": TIMES, "x": X, "y": Y} for _ in range(2)]
    changes = {
        "dt 0.2 .*'a.0.' has 0.1 .*one dataset has one dt": {"t": 2 * TIMES},
        "extent x 3 .* has 1.5 .* give --extent": {"x": 2 * X},
        "grid 6x20, .* has 12x20": {"u": waves[0, :, :6], "x": X[:6]},
        "fields v:0, .* has u:0": {"u": None, "v": waves[0]},
    }
    for message, change in changes.items():
        other = {k: v for k, v in (runs[1] | change).items() if v is not None}
        with pytest.raises(ot.DataError, match=message):
            from_arrays([runs[0], other], name="a")
    given = from_arrays([runs[0], runs[1] | {"t": 2 * TIMES}], dt=0.3)
    assert given.domain.dt == 0.3
    longer = np.concatenate([waves[0], waves[1]])
    data = from_arrays([waves[0], longer, waves[1]], layout="txy")
    out = data.save(tmp_path / "out", splits=(1, 0, 0))
    assert [WellFolder(out, whole=True, context=1).num_frames(i) for i in range(3)] == [8, 8, 16]


def test_uneven_coordinates_say_where(waves):
    late = TIMES.copy()
    late[5:] += 0.05
    arrays = {"u": waves[0], "t": late, "x": X, "y": Y**2}
    with pytest.raises(ot.DataError, match="'t' is uneven: from frame 4 to 5 .* by 0.15, mostly"):
        from_arrays(arrays)
    with pytest.raises(ot.DataError, match="'y' is uneven: from cell 0 to 1 .* --extent"):
        from_arrays(arrays, dt=DT)
    assert from_arrays(arrays, dt=DT, extent=EXTENT).domain.extent == EXTENT
    good = {"u": waves[0], "t": TIMES, "x": X, "y": Y}
    with pytest.raises(ot.DataError, match="'t' runs backwards"):
        from_arrays(good | {"t": -TIMES})
    with pytest.raises(ot.DataError, match="'x' has values that are NaN"):
        from_arrays(good | {"x": np.full(12, np.nan)})
    assert from_arrays(good | {"y": Y[::-1]}).domain.extent == EXTENT
    shifted = (1e4 + X).astype(np.float32)  # even but for rounding
    assert from_arrays(good | {"x": shifted}).domain.extent[0] == pytest.approx(1.5, rel=0.01)


BAD = [
    (np.zeros((2, 3, 8, 8), np.complex64), "complex numbers .complex64.; expected real"),
    (np.zeros((2, 3, 8, 8), bool), "holds bool"),
    (np.array([["a"] * 9] * 9), "expected numbers"),
    (np.zeros((2, 0, 8, 8)), "its axis 1 has length 0"),
    (np.zeros((2, 1, 8, 8)), "1 frame in each trajectory; expected at least 2"),
    ([[1.0]], "arrays are a list; expected arrays of NumPy"),
    ([], "arrays is empty"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD)
def test_arrays_that_are_no_fields(arrays, message):
    with pytest.raises(ot.DataError, match=message):
        from_arrays(arrays, layout="tx" if getattr(arrays, "ndim", 0) == 2 else "ntxy")


@pytest.mark.parametrize("dtype", [">f8", ">f4", "<i4", ">u2", "f2", "longdouble"])
def test_numbers_of_every_kind(tmp_path, waves, dtype):
    whole = np.round(waves * 50) + 100
    np.save(tmp_path / "a.npy", whole.astype(dtype))
    out = import_arrays(tmp_path / "a.npy", tmp_path / "out", layout="ntxy", splits=(1, 0, 0))
    data = WellFolder(out, context=1)
    assert np.array_equal(data.frames(2, 0, STEPS).fields[:, 0], whole[2])


def test_masked_and_packed_values(tmp_path, waves):
    masked = np.ma.masked_array(waves.copy(), mask=np.zeros(waves.shape, bool))
    masked[3, 2, 1, 4] = np.ma.masked
    with pytest.raises(ot.DataError, match=r"trajectory 3 of 'arrays' has a value that is NaN or "
                       r"missing at step 2, field 'field', cell \(1, 4\).*--drop-nan"):  # fmt: skip
        from_arrays(masked, layout="ntxy").save(tmp_path / "out")
    data = as_xarray(waves.copy())
    packed = {"u": {"dtype": "i2", "scale_factor": 1e-3, "add_offset": 0.5, "_FillValue": -9999}}
    found = from_files(to_netcdf(data, tmp_path / "p.nc", encoding=packed))
    assert np.abs(found.read(1, slice(None))[:, 0] - waves[1]).max() <= 0.0005001
    data["u"][1, 6, 0, 0] = np.nan
    found = from_files(to_netcdf(data, tmp_path / "q.nc", encoding=packed))
    with pytest.raises(ot.DataError, match="trajectory 1 of .*q.nc' has .* missing at step 6"):
        found.save(tmp_path / "out")
    assert [*tmp_path.glob("*out*"), *tmp_path.glob(".*")] == []


def test_values_that_were_never_written(tmp_path, waves):
    """netCDF fills an array before it is written; HDF5 stores nothing, which is damage."""
    with h5py.File(tmp_path / "a.nc", "w") as file:
        u = file.create_dataset("u", waves[0].shape, "f4", chunks=(1, 12, 20), fillvalue=9.96921e36)
        u[:7] = waves[0, :7]
        u[7, 0] = 9.96921e36
    with pytest.raises(ot.DataError, match="NaN or missing at step 7, field 'u', cell .0, 0."):
        import_arrays(tmp_path / "a.nc", tmp_path / "out", layout="txy", splits=(1, 0, 0))
    with h5py.File(tmp_path / "b.nc", "w") as file:
        file.create_dataset("u", waves[0].shape, "f4")
    with pytest.raises(ot.DataError, match="never written in full"):
        from_files(tmp_path / "b.nc", layout="txy")


def test_files_that_need_no_import_or_can_have_none(tmp_path, waves):
    out = from_arrays(waves, layout="ntxy").save(tmp_path / "out")
    with pytest.raises(ot.DataError, match="a Well folder, which needs no import"):
        from_files(out)
    with pytest.raises(ot.DataError, match="in The Well's layout already"):
        from_files(next(out.rglob("*.hdf5")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ot.DataError, match="a folder without files of arrays"):
        from_files(tmp_path / "empty")
    with pytest.raises(ot.DataError, match="no file is given"):
        from_files([])
    for options, message in (
        ({"dt": -1}, "dt is -1; expected a positive"),
        ({"extent": (1, 0)}, "extent is 0; expected a positive"),
        ({"extent": (1.0,)}, "extent is 1; expected one length for each of 2"),
        ({"boundaries": "mirror"}, "boundary is 'mirror'.*option"),
        ({"layout": "ntxyq"}, "layout is 'ntxyq'"),
        ({"layout": "ntxyz"}, "expected 5 axes for the layout 'ntxyz'"),
        ({"fields": "a,b"}, "C = 1 channels; expected C = 2 for a:0, b:0"),
    ):
        with pytest.raises(ot.DataError, match=message):
            from_arrays(waves, **({"layout": "ntxy"} | options))
