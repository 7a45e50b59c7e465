"""The same dataset, local and remote, and how trajectories are shared by its splits."""

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.data import WellFolder, check, write_stats
from overtone.data.location import Location, split_counts


@pytest.fixture
def remote(make_folder):
    """A copy of a folder in fsspec's memory."""
    fsspec = pytest.importorskip("fsspec")
    folder, _ = make_folder()
    write_stats(folder)
    system = fsspec.filesystem("memory")
    for path in folder.rglob("*"):
        if path.is_file():
            system.pipe(f"/wells/{path.relative_to(folder)}", path.read_bytes())
    yield folder, "memory://wells"
    system.rm("/wells", recursive=True)


def test_remote_folders_are_read_by_the_same_class(remote):
    folder, url = remote
    here, there = WellFolder(folder, context=3), WellFolder(url, context=3)
    assert len(here) == len(there)
    for index in (0, 7, len(here) - 1):
        assert torch.equal(here[index][0].fields, there[index][0].fields)
        assert torch.equal(here[index][1], there[index][1])
    assert there.stats == here.stats
    assert there.where(0).file == "memory://wells/data/train/toy_0.hdf5"
    assert check(url) == []
    one = WellFolder(f"{url}/data/valid/toy_0.hdf5", context=3)
    assert len(one) == 12
    assert one.stats == here.stats


def test_remote_mistakes(remote, monkeypatch):
    _, url = remote
    for path, message in (
        ("memory://nowhere", "does not exist"),
        ("nosuch://x/y", "can't be opened by fsspec"),
    ):
        with pytest.raises(ot.DataError, match=message):
            WellFolder(path)
    with pytest.raises(ot.DataError, match="is remote; copy the dataset here"):
        write_stats(url)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ot.DataError, match=r"pip install 'overtone\[remote\]'"):
        WellFolder(url)


def test_unfinished_files_are_not_listed(make_folder):
    folder, _ = make_folder()
    (folder / "data/train/.toy_9.hdf5-ab12.tmp").write_bytes(b"half")
    (folder / "data/train/.toy_9.hdf5").write_bytes(b"half")
    assert len(WellFolder(folder).files) == 2


def test_parents():
    assert Location("s3://bucket/a/b").parent().path == "s3://bucket/a"
    assert Location("s3://bucket/a/b").child("c", "d").path == "s3://bucket/a/b/c/d"
    assert Location("data").child("x").name == "x"


@given(num=st.integers(3, 5000), valid=st.floats(0.001, 0.4), test=st.floats(0.001, 0.4))
def test_counts_add_up_and_no_split_is_empty(num, valid, test):
    fractions = 1 - valid - test, valid, test
    counts = [*split_counts(num, fractions).values()]
    assert sum(counts) == num
    assert min(counts) >= 1
    for count, fraction in zip(counts, fractions, strict=True):
        assert abs(count - num * fraction) <= 2


def test_the_usual_split():
    assert split_counts(24, (0.8, 0.1, 0.1)) == {"train": 19, "valid": 3, "test": 2}
    assert split_counts(5, (1, 0, 0)) == {"train": 5, "valid": 0, "test": 0}
    with pytest.raises(ot.DataError, match="2 trajectories can't fill 3 splits"):
        split_counts(2, (0.8, 0.1, 0.1))


@pytest.mark.parametrize(
    "fractions",
    [(float("nan"), 0, 1), (float("inf"), 0, 0), (-1, 1, 1), (1, 1), (2, -0.5, -0.5), (0, 0, 0.9)],
)
def test_fractions_that_are_none(fractions):
    with pytest.raises(ot.DataError, match="splits are .*from 0 to 1, that add up to 1"):
        split_counts(10, fractions)
