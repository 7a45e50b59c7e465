"""Metadata: what is read from it, and what is said when it is wrong."""

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data import FieldSpec, WellFolder, write_well
from overtone.data.location import Location
from overtone.domain import Boundary
from overtone.guard.names import shown


@pytest.fixture
def path(make_folder):
    folder, _ = make_folder(files=(1, 0, 0))
    return folder / "data" / "train" / "toy_0.hdf5"


def layout(path):
    return Location(str(path)).layout()


def test_everything_is_read(path):
    found = layout(path)
    assert found.dataset_name == "toy"
    assert (found.shape, found.axes, found.dt) == ((6, 8), ("x", "y"), 0.25)
    assert found.dt_range == (0.25, 0.25)
    assert found.extent == (1.5, 2.0)
    assert (found.num_trajectories, found.num_steps) == (2, 9)
    assert found.channels == (
        *("density", "pressure", "velocity_x", "velocity_y"),
        *("D_xx", "D_xy", "D_yx", "D_yy"),
    )
    assert found.notes == ()


@pytest.mark.parametrize(
    "boundaries",
    [
        ("periodic", "wall"),
        (("wall", "open"), ("open", "wall")),
        ("open", ("wall", "wall")),
    ],
)
def test_boundaries_of_each_side(tmp_path, make_header, make_values, boundaries):
    header = make_header(boundaries=boundaries)
    write_well(tmp_path / "a.hdf5", make_values(), header)
    domain = ot.Domain((6, 8), (1.5, 2.0), boundaries, ("any",))
    assert layout(tmp_path / "a.hdf5").boundaries == domain.boundaries


def test_masks_over_several_axes(path):
    """A wall is one only where it is complete; open and periodic need a single cell."""
    with h5py.File(path, "r+") as file:
        del file["boundary_conditions"]
        file.create_group("boundary_conditions")
        mask = np.zeros((6, 8), bool)
        mask[0], mask[-1, :4] = True, True
        add_condition(file, "frame", "wall", ["x", "y"], mask)
    x, y = layout(path).boundaries
    assert x == (Boundary.WALL, Boundary.OPEN)
    assert y == (Boundary.OPEN, Boundary.OPEN)


def test_one_axis_as_plain_text_and_one_periodic_end(path):
    with h5py.File(path, "r+") as file:
        del file["boundary_conditions"]
        file.create_group("boundary_conditions")
        add_condition(file, "ring", "Periodic", "y", np.arange(8) == 0)
    assert layout(path).boundaries[1] == (Boundary.PERIODIC, Boundary.PERIODIC)


@pytest.mark.parametrize(("number", "kind"), [(0, "wall"), (1, "open"), (2, "periodic")])
def test_kinds_may_be_the_wells_numbers(path, number, kind):
    with h5py.File(path, "r+") as file:
        del file["boundary_conditions"]
        file.create_group("boundary_conditions")
        add_condition(file, "sides", number, "y", np.isin(np.arange(8), (0, 7)))
    assert layout(path).boundaries[1] == (Boundary(kind), Boundary(kind))


def add_condition(file, name, kind, dims, mask):
    group = file["boundary_conditions"].create_group(name)
    group.attrs.update({"bc_type": kind, "associated_dims": dims})
    group["mask"] = mask


def drop_attribute(where, key):
    def change(file):
        del file[where].attrs[key]

    return change


def drop(where):
    def change(file):
        del file[where]

    return change


def set_attribute(where, key, value):
    def change(file):
        file[where].attrs[key] = value

    return change


def swap(where, values):
    def change(file):
        del file[where]
        file[where] = values

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_attribute("/", "n_trajectories"), "/ lacks the attribute 'n_trajectories'"),
        (drop_attribute("/", "simulation_parameters"), "lacks the attribute 'simulation_par"),
        (drop("scalars"), "lacks the group 'scalars'"),
        (drop("t2_fields"), "lacks the group 't2_fields'"),
        (drop("boundary_conditions"), "lacks the group 'boundary_conditions'"),
        (drop("dimensions/time"), "/dimensions lacks the dataset 'time'"),
        (drop("t0_fields/density"), "/t0_fields lacks the dataset 'density'"),
        (drop("boundary_conditions/x_periodic/mask"), "x_periodic lacks the dataset 'mask'"),
        (drop_attribute("t1_fields/velocity", "dim_varying"), "lacks the attribute 'dim_varying'"),
        (set_attribute("/", "n_spatial_dims", 3), "n_spatial_dims is 3"),
        (set_attribute("/", "n_trajectories", 3), r"shape \(2, 9, 6, 8\).*ask for \(3, 9, 6, 8\)"),
        (set_attribute("/", "n_trajectories", 0), "it is empty"),
        (set_attribute("t0_fields/density", "time_varying", False), r"ask for \(2, 6, 8\)"),
        (set_attribute("boundary_conditions/x_periodic", "bc_type", "SLIP"), "bc_type.*'SLIP'"),
        (swap("t0_fields/density", "text"), "has dtype object; expected numbers"),
        (swap("dimensions/x", np.arange(5.0)), "lacks the attribute 'sample_varying'"),
        (set_attribute("t0_fields", "field_names", ["denisty"]), "lacks the dataset 'denisty'"),
        (set_attribute("boundary_conditions/x_periodic", "associated_dims", ["w"]), "not .'x'"),
    ],
)
def test_what_is_missing_is_named(path, change, message):
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(ot.DataError, match=message) as caught:
        layout(path)
    assert str(path) in str(caught.value)


def test_odd_coordinates_and_times_are_noted(path):
    with h5py.File(path, "r+") as file:
        file["dimensions/x"][...] = 0
        file["dimensions/time"][...] = np.arange(9.0) ** 2
    found = layout(path)
    assert found.extent[0] == 6.0
    assert found.dt == 8.0
    assert found.dt_range == (1.0, 15.0)
    assert [note.split()[0] for note in found.notes] == ["coordinates", "frames"]


def test_extent_counts_half_a_cell_beyond_the_last_points(path):
    """Chebyshev-like points: from the first to the last, and half of the outer gaps."""
    with h5py.File(path, "r+") as file:
        file["dimensions/x"][...] = [0.0, 0.1, 0.4, 0.6, 0.9, 1.0]
    assert layout(path).extent[0] == pytest.approx(1.1)


def test_time_and_scalars_that_vary_with_the_sample(path):
    with h5py.File(path, "r+") as file:
        del file["dimensions/time"]
        file["dimensions/time"] = np.arange(9) * np.array([[0.5], [0.7]])
        file["dimensions/time"].attrs.update({"sample_varying": True, "time_varying": True})
    assert layout(path).dt == 0.5
    assert layout(path).dt_range == (0.5, 0.7)


def test_padded_axes_are_accepted(tmp_path, make_header, make_values):
    """Some files keep an axis of length 1 where a field does not vary along it."""
    specs = (FieldSpec("density"), FieldSpec("height", dim_varying=(True, False)))
    write_well(tmp_path / "a.hdf5", make_values(specs=specs), make_header())
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        values, attributes = file["t0_fields/height"][:], dict(file["t0_fields/height"].attrs)
        del file["t0_fields/height"]
        file["t0_fields/height"] = values[..., None]
        file["t0_fields/height"].attrs.update(attributes)
    assert layout(tmp_path / "a.hdf5").fields == specs


def test_names_that_are_no_text_are_read_and_can_be_shown(path):
    raw = b"p\xff\x1b"
    with h5py.File(path, "r+") as file:
        file["t0_fields"].move("pressure", raw)
        file["t0_fields"].attrs["field_names"] = np.array([b"density", raw])
        file["scalars"][raw] = 2.0
        file["scalars"][raw].attrs.update({"sample_varying": False, "time_varying": False})
        file["scalars"].attrs["field_names"] = np.array([raw])
        file.attrs["simulation_parameters"] = np.array([raw])
        file.attrs.create(raw, np.bytes_(b"\xfe"))
    found = layout(path)
    name = found.fields[1].name
    assert shown(name) == r"p\xff\x1b"
    data = WellFolder(path, context=2)
    assert data[0][0].fields.isfinite().all()
    assert [shown(key) for key in data.parameters(0)] == [r"p\xff\x1b"]
    assert data.fingerprint()


@pytest.mark.parametrize("first", [-1.0, 0.0, 7.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_axis_is_as_long_wherever_it_begins_and_whichever_way_it_runs(
    tmp_path, make_header, make_values, first, sign
):
    places = [first + sign * (np.arange(n) + 0.5) / 4 for n in (6, 8)]
    write_well(tmp_path / "a.hdf5", make_values(), make_header(coordinates=tuple(places)))
    assert layout(tmp_path / "a.hdf5").extent == (1.5, 2.0)
