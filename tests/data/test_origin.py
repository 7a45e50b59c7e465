"""What a file said about itself is said again."""

import numpy as np
import pytest

from overtone.data import FieldSpec, Header, write_well
from overtone.data.location import Location
from overtone.data.origin import coordinates, fields_of, header_like


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
