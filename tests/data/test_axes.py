"""Letters of axes: from names and attributes, and from shapes where that leaves no choice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.data.axes import ORDERS, by_names, by_shape, choose, letter_of, parse_layout, reading


@pytest.mark.parametrize(
    ("name", "attributes", "letter"),
    [
        ("time", {}, "t"),
        ("Time", {}, "t"),
        ("group/T", {}, "t"),
        ("x", {}, "x"),
        ("south_north", {}, "y"),
        ("Sample", {}, "n"),
        ("channels", {}, "c"),
        ("dim_0", {}, ""),
        ("i", {"axis": "X"}, "x"),
        ("i", {"units": "hours since 2000-01-01"}, "t"),
        ("i", {"units": "degrees_north"}, "y"),
        ("i", {"units": "m"}, ""),
        ("x", {"standard_name": "latitude"}, "y"),  # what is said counts more than a name
        ("depth", {"axis": "Z"}, "z"),
        ("y", {"axis": 3}, "y"),
    ],
)
def test_letters_of_names(name, attributes, letter):
    assert letter_of(name, attributes) == letter


def test_layouts_in_letters():
    assert parse_layout("ntcxy") == parse_layout("btcxy") == "ntcxy"
    for text in ("", "t", "nbtx", "txx", "txz", "tyz", "qx", "t x"):
        with pytest.raises(ot.DataError, match=f"layout is '{text}'; expected each of n"):
            parse_layout(text)


@given(st.sampled_from(ORDERS), st.permutations([5, 6, 7, 8, 9, 11]), st.booleans())
def test_what_a_shape_is_is_among_its_readings(order, lengths, known):
    """Coordinates of different lengths leave one reading, in whatever order cells are."""
    shape = lengths[: len(order)]
    size = dict(zip(order, shape, strict=True))
    coordinates = {letter: size[letter] for letter in size if letter in "txyz"} if known else {}
    found = by_shape(shape, coordinates, None)
    assert order in found
    if known:
        assert all(dict(zip(o, shape, strict=True)).items() >= coordinates.items() for o in found)
        rows_first = order.replace("x", "_").replace("y", "x").replace("_", "y")
        if "y" in order:
            size = dict(zip(rows_first, shape, strict=True))
            turned = {letter: size[letter] for letter in size if letter in "txyz"}
            assert rows_first in by_shape(shape, turned, None)


def test_an_axis_of_one_is_none_of_time_or_space():
    assert by_shape((4, 5, 1, 8), {}, {1: 1, 2: 1, 3: 1}) == ["ntcx"]
    assert by_shape((1, 5, 8, 8), {}, {1: 1, 2: 1, 3: 1}) == ["ntxy"]
    assert by_shape((7,), {}, None) == []


@given(st.lists(st.sampled_from(["n", "t", "c", "x", "y", "z", ""]), min_size=2, max_size=6))
def test_readings_of_names_keep_what_is_known(letters):
    for found in by_names(letters):
        assert len(found) == len(letters)
        assert len(set(found)) == len(found)
        assert "t" in found
        assert set(found) & set("xyz")
        for letter, given_letter in zip(found, letters, strict=True):
            assert given_letter in ("", letter) or letters.count(given_letter) > 1


def test_names_without_doubt_have_one_reading():
    assert list(by_names(["t", "y", "x"])) == ["tyx"]
    assert list(by_names(["n", "t", "x", "c"])) == ["ntxc"]
    assert list(by_names(["x", "y"])) == []
    assert next(by_names(["t", "", ""])) == "txy"  # the most likely one is listed first


def test_choices():
    assert choose(["tx"], (3, 4), "it") == "tx"
    assert (
        reading("ntxyc", (2, 9, 4, 5, 3)) == "2 trajectories of 9 frames on 4x5 cells, 3 channels"
    )
    assert reading("tyx", (9, 4, 5)) == "1 trajectory of 9 frames on 5x4 cells"
    with pytest.raises(ot.DataError, match=r"it has shape \(2, 3\), which fits none .*\(tx\)"):
        choose([], (2, 3), "it")
    with pytest.raises(ot.DataError, match="two to six axes"):
        choose([], (2,) * 7, "it")
    many = [f"t{letter}" for letter in np.array(list("xyz")).repeat(4)]
    with pytest.raises(ot.DataError, match="in 12 ways(.|\n)* and 4 more"):
        choose(many, (2, 3), "it")
