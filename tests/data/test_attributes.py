"""What attributes may be, and what is said of others; of whole files, see test_layout."""

import h5py
import numpy as np
import pytest

from overtone.data.attributes import find_dataset, read_count, read_flags, read_names, read_word
from overtone.errors import DataError


@pytest.fixture
def file():
    with h5py.File("memory", "w", driver="core", backing_store=False) as opened:
        yield opened


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (read_count, 3, 3),
        (read_count, np.array([3.0]), 3),
        (read_word, "gas", "gas"),
        (read_word, np.array([b"gas"]), "gas"),
        (read_names, np.array([b"x", b"y\xff"]), ("x", "y\udcff")),
        (read_names, h5py.Empty("f"), ()),
    ],
)
def test_attributes_may_be_written_in_several_ways(file, read, value, found):
    file.attrs["key"] = value
    assert read(file, "key", "a.hdf5") == found


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (read_count, 2.5, "is '2.5'; expected a whole number"),
        (read_count, [1, 2], "expected a whole number"),
        (read_count, "3", "expected a whole number"),
        (read_word, np.array([b"x", b"y"]), "expected one name"),
        (read_names, 4.0, "expected names"),
        (read_names, np.array([[b"x"]]), "expected names"),
    ],
)
def test_what_an_attribute_is_not_is_said(file, read, value, message):
    file.attrs["key"] = value
    with pytest.raises(DataError, match=rf"'a.hdf5': attribute 'key' of / .*{message}"):
        read(file, "key", "a.hdf5")


def test_flags_are_as_many_as_are_asked_for(file):
    file.attrs["key"] = np.array([True, False])
    assert read_flags(file, "key", 2, "a.hdf5") == (True, False)
    with pytest.raises(DataError, match="expected 3 times true or false"):
        read_flags(file, "key", 3, "a.hdf5")


def test_a_dataset_is_one_of_its_own_group(file):
    file["group/one"], file["other"] = [1.0], [2.0]
    assert find_dataset(file["group"], "one", "a.hdf5")[:] == [1.0]
    for key in ("other", "../other", "/other"):
        with pytest.raises(DataError, match="/group lacks the dataset"):
            find_dataset(file["group"], key, "a.hdf5")
