"""What a file says about itself, and names that it refuses."""

import h5py
import pytest

import overtone as ot
from overtone.data import FieldSpec, Header, WellWriter, write_well
from overtone.data.location import Location


def test_all_attributes_of_the_wells_layout(tmp_path, make_values, make_header):
    header = make_header(parameters={"Ra": 1e6}, boundaries=("periodic", ("wall", "open")))
    write_well(tmp_path / "a.hdf5", make_values(), header)
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert set(file.attrs) == {
            *("dataset_name", "grid_type", "n_spatial_dims", "n_trajectories"),
            *("simulation_parameters", "Ra"),
        }
        assert list(file) == [
            *("boundary_conditions", "dimensions", "scalars"),
            *("t0_fields", "t1_fields", "t2_fields"),
        ]
        assert list(file["dimensions"].attrs["spatial_dims"]) == ["x", "y"]
        assert list(file["scalars"].attrs["field_names"]) == ["Ra"]
        for key in ("time", "x", "y"):
            assert {"sample_varying", "time_varying"} <= set(file["dimensions"][key].attrs)
        assert list(file["boundary_conditions"]) == ["x_periodic", "y_open", "y_wall"]
        wall = file["boundary_conditions/y_wall"]
        assert set(wall.attrs) == {
            *("associated_dims", "associated_fields", "bc_type"),
            *("sample_varying", "time_varying"),
        }
        assert wall.attrs["bc_type"] == "WALL"
        assert wall["mask"][:].tolist() == [True] + [False] * 7
        tensor = file["t2_fields/D"]
        assert {"symmetric", "antisymmetric", "dim_varying"} <= set(tensor.attrs)
        assert tensor.attrs["dim_varying"].tolist() == [True, True]


def test_default_header():
    header = Header("a", (4,), (2.0,), "open")
    assert header.axes == ("x",)
    assert header.coordinates == ((0.25, 0.75, 1.25, 1.75),)


BAD_NAMES = ["a/b", "", ".a", "a\x1b[31m", "a\nb", "a\0", "a\udcff"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_others_would_take_for_something_else(tmp_path, make_header, make_values, name):
    calls = [
        lambda: make_header(axes=(name, "y")),
        lambda: make_header(parameters={name: 1.0}),
        lambda: make_header(attributes={name: "text"}),
        lambda: write_well(
            tmp_path / "a.hdf5", make_values(specs=(FieldSpec(name),)), make_header()
        ),
        lambda: write_well(tmp_path / "a.hdf5", make_values(), make_header(), scalars={name: 1.0}),
        lambda: WellWriter(tmp_path / "a.hdf5", make_header(), [FieldSpec(name)], 1),
    ]
    if name not in ("a/b", ".a"):
        calls.append(lambda: Header(name, (6, 8), (1.0, 1.0), "open"))
    for call in calls:
        with pytest.raises(ot.DataError, match="can't be the name of") as caught:
            call()
        assert str(caught.value).isprintable()
    assert [*tmp_path.iterdir()] == []


def test_names_in_other_alphabets_are_names(tmp_path, make_header, make_values):
    values = make_values(specs=(FieldSpec("ω"), FieldSpec("Strömung", 1)))
    path = write_well(tmp_path / "a.hdf5", values, make_header())
    assert Location(str(path)).layout().channels == ("ω", "Strömung_x", "Strömung_y")
