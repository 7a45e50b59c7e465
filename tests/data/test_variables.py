"""What files say about their arrays, in each format."""

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data.variables import Variable, is_known, open_arrays

VALUES = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_names_its_axes(tmp_path, version):
    xarray, _ = pytest.importorskip("xarray"), pytest.importorskip("zarr")
    data = xarray.Dataset({"u": (("t", "x", "y"), VALUES)}, {"t": ("t", [0.0, 0.5], {"axis": "T"})})
    data.attrs = {"dt": 0.5, "history": "long"}
    data.to_zarr(tmp_path / "a", zarr_format=version, consolidated=False)
    assert is_known(tmp_path / "a")  # by what is in it
    with open_arrays(tmp_path / "a") as arrays:
        assert arrays["u"].dims == ("t", "x", "y")
        assert arrays["t"].attributes["axis"] == "T"
        assert arrays.attributes == {"dt": 0.5}
        assert np.array_equal(arrays["u"][1, :, 2:], VALUES[1, :, 2:])


@pytest.mark.filterwarnings("ignore")  # of zarr, about texts
def test_members_of_a_zarr_group_that_are_no_numbers_are_left_out(tmp_path):
    zarr = pytest.importorskip("zarr")
    for version in (2, 3):
        group = zarr.open_group(str(tmp_path / f"{version}.zarr"), mode="w", zarr_format=version)
        group.create_array("u", data=VALUES)
        group.create_array("mask", data=VALUES > 3)
        group.create_array("name", data=np.array(["a", "b"]))
        with open_arrays(tmp_path / f"{version}.zarr") as arrays:
            assert list(arrays) == ["u"]


def test_hdf5_names_its_axes_by_labels_and_scales(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/u"] = VALUES
        for axis, label in zip(file["g/u"].dims, "txy", strict=True):
            axis.label = label
        file["half"] = VALUES
        file["half"].dims[0].label = "t"
        file["g/x"] = np.arange(3)
        file["g/x"].make_scale("x")
        file["v"] = VALUES[0]
        file["v"].dims[0].attach_scale(file["g/x"])
        file["v"].dims[1].label = "y"
        file["_nc4_non_coord_w"] = VALUES
        file["text"] = np.bytes_("abc")
        file["dt"], file.attrs["boundaries"] = 0.25, "wall"
        file["soft"], file["loop"] = h5py.SoftLink("/nowhere"), h5py.SoftLink("/g")
    with open_arrays(tmp_path / "a.h5") as arrays:
        assert sorted(arrays) == ["g/u", "g/x", "half", "v", "w"]
        found = {name: array.dims for name, array in arrays.items()}
        assert found["g/u"] == ("t", "x", "y")
        assert found["v"] == ("g/x", "y")
        assert found["g/x"] == ("g/x",)
        assert found["half"] == found["w"] == ()
        assert arrays.attributes == {"dt": 0.25, "boundaries": "wall"}


def test_a_dimension_without_a_variable_is_no_damage(tmp_path):
    bare = "This is a netCDF dimension but not a netCDF variable.         4"
    for name, scale, shape in (("good", bare, (4,)), ("bad", "x", (4,)), ("worse", bare, (4, 4))):
        with h5py.File(tmp_path / f"{name}.nc", "w") as file:
            file.create_dataset("x", shape, ">f4").make_scale(scale)
            file["u"] = VALUES
    with open_arrays(tmp_path / "good.nc") as arrays:
        assert list(arrays) == ["u"]
    for name in ("bad", "worse"):
        with (
            pytest.raises(ot.DataError, match="/x declares .* never written in full"),
            open_arrays(tmp_path / f"{name}.nc"),
        ):
            pass


def test_values_are_unpacked_and_missing_ones_are_nan():
    stored = np.array([1, 2, -99, 7], ">i2")
    plain = Variable("a", stored)
    assert plain[:].dtype == np.int16
    assert plain[:].dtype.isnative
    packed = Variable("a", stored, (), {"scale_factor": 0.5, "add_offset": 10, "_FillValue": -99})
    assert np.array_equal(packed[:], [10.5, 11, np.nan, 13.5], equal_nan=True)
    several = Variable("a", stored.astype("f4"), (), {"missing_value": [2, 7]})
    assert np.array_equal(several[:], [1, np.nan, -99, np.nan], equal_nan=True)
    masked = Variable("a", np.ma.masked_greater(stored, 1))
    assert np.array_equal(masked[:], [1, np.nan, -99, np.nan], equal_nan=True)


def test_names_of_files():
    from pathlib import Path

    for name in ("a.npy", "b.NPZ", "c.nc", "d.nc4", "e.h5", "f.hdf5"):
        assert is_known(Path(name)), name
    for name in ("a.csv", "a", "a.mat", "a.npy.tmp", "a.zarr"):  # a store is a folder
        assert not is_known(Path(name)), name
