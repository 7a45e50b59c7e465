"""Sizes are estimated and refused before anything is allocated or written."""

import errno

import pytest

import overtone as ot
from overtone.guard import limits


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (4.32e13, "43.2 TB")]
)
def test_readable(size, text):
    assert limits.readable(size) == text


def test_the_limit_on_memory_can_be_set(monkeypatch):
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "1.5 kB")
    limits.require_memory(1500, "this", "ask for less")
    with pytest.raises(ot.DataError, match=r"this takes 1\.5 kB, but only 1\.5 kB.*ask for less"):
        limits.require_memory(1501, "this", "ask for less")


@pytest.mark.parametrize("text", ["much", "-1GB", "1e9", "1 EB", "nan"])
def test_a_limit_that_is_no_size(monkeypatch, text):
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", text)
    with pytest.raises(ot.OvertoneError, match="OVERTONE_MAX_MEMORY.*expected a size"):
        limits.available_memory()


def test_an_empty_limit_is_none(monkeypatch):
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "")
    found = limits.available_memory()
    assert found is None or found > 2**20


def test_what_does_not_fit_on_the_disk(tmp_path):
    limits.require_disk(0, tmp_path / "not" / "there", "nothing")
    with pytest.raises(ot.DataError, match="flows takes 1.0 PB.*choose another folder"):
        limits.require_disk(1e15, tmp_path / "not" / "there", "flows")


def test_a_place_to_write_to_is_tried_and_left_as_it_was(tmp_path):
    limits.require_writable(tmp_path / "new" / "deep")
    limits.require_writable_file(tmp_path / "new" / "file.png")
    assert not list(tmp_path.iterdir())
    (tmp_path / "old").mkdir()
    limits.require_writable(tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/a", "file/a/b"):
        with pytest.raises(ot.DataError, match=f"nothing can be written to '.*{place}'"):
            limits.require_writable(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_that_is_a_folder_is_refused(tmp_path):
    with pytest.raises(ot.DataError, match="is a folder; expected the name of a file"):
        limits.require_writable_file(tmp_path)


def test_a_disk_that_is_read_only_is_refused_and_nothing_stays(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(limits, "NamedTemporaryFile", refuse)
    with pytest.raises(ot.CheckpointError, match="Read-only file system. Nothing was computed"):
        limits.require_writable(tmp_path / "a" / "b", error=ot.CheckpointError)
    assert not list(tmp_path.iterdir())
