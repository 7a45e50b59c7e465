"""Folders that are complete at any moment, and the same number for the same files."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overtone import files
from overtone.data.location import find_files
from overtone.files import (
    fingerprint,
    replacing,
    replacing_files,
    replacing_folder,
    restore_folder,
)

EXCHANGES = pytest.mark.parametrize("exchanges", [True, False])

# Replaces a folder again and again, in a child that is killed before its n-th line, for every n.
KILLED_EVERYWHERE = """
import os, signal, shutil, sys
from itertools import count
from pathlib import Path
from overtone import files

path, exchanges = Path(sys.argv[1]), sys.argv[2] == "True"
if not exchanges:
    files._exchange = lambda one, other: False
SOURCES = {files.__file__, shutil.__file__}

def fill(folder, content):
    (folder / "inner").mkdir()
    for name in ("a", "inner/b"):
        (folder / name).write_text(content)

def found():
    names = [path / "a", path / "inner" / "b"]
    return [name.read_text() if name.exists() else None for name in names]

def replace(kill_at):
    lines = count(1)
    def trace(frame, event, _):
        if frame.f_code.co_filename not in SOURCES:
            return None
        if event == "line" and next(lines) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace
    with files.replacing_folder(path) as scratch:
        fill(scratch, "new")
        sys.settrace(trace)
        files.put_in_place(scratch, path)
        os._exit(0)

seen = set()
for kill_at in count(1):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    fill(path, "old")
    child = os.fork()
    if child == 0:
        replace(kill_at)
    _, status = os.waitpid(child, 0)
    assert path.exists() or not exchanges, f"line {kill_at}: nothing there"
    files.restore_folder(path)
    assert found() in (["old"] * 2, ["new"] * 2), f"line {kill_at}: {found()}"
    seen.add(found()[0])
    if not os.WIFSIGNALED(status):
        assert os.WEXITSTATUS(status) == 0 and found()[0] == "new"
        break
assert seen == {"old", "new"} and kill_at > 20, (seen, kill_at)
"""


def fill(folder, content):
    (folder / "inner").mkdir()
    (folder / "inner" / "text").write_text(content)


def text(folder):
    return (folder / "inner" / "text").read_text()


@pytest.fixture
def folder(tmp_path):
    with replacing_folder(tmp_path / "folder") as scratch:
        fill(scratch, "old")
    return tmp_path / "folder"


@pytest.fixture
def in_steps(monkeypatch):
    """As on systems that can't exchange two names."""
    monkeypatch.setattr(files, "_exchange", lambda one, other: False)


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


@EXCHANGES
@pytest.mark.skipif(sys.platform != "linux", reason="forks, and exchanges names")
def test_a_kill_at_any_line_leaves_the_old_folder_or_the_new_one(tmp_path, exchanges):
    command = [sys.executable, "-c", KILLED_EVERYWHERE, str(tmp_path / "folder"), str(exchanges)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_failure_between_the_renames_restores_the_old_folder(folder, in_steps, monkeypatch):
    rename = Path.rename

    def fail(self, target):
        if files._aside(folder) not in (self, target):
            raise OSError("the disk is gone")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="disk is gone"), replacing_folder(folder) as scratch:
        fill(scratch, "new")
    assert text(folder) == "old"
    assert listing(folder.parent) == ["folder"]


def test_a_folder_that_was_put_aside_is_back_before_the_next_is_written(folder, in_steps):
    folder.rename(folder.parent / ".folder-replaced.tmp")  # and then the process was killed
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder):
        assert text(folder) == "old"
        raise KeyboardInterrupt
    assert text(folder) == "old"
    restore_folder(folder)
    assert listing(folder.parent) == ["folder"]


@EXCHANGES
def test_replacing_leaves_nothing_else(folder, exchanges, monkeypatch):
    if not exchanges:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    with replacing_folder(folder) as scratch:
        fill(scratch, "new")
        assert text(folder) == "old"
    assert text(folder) == "new"
    assert listing(folder.parent) == ["folder"]


def test_all_is_on_the_disk_before_the_name_changes_and_the_name_before_the_old_one_goes(
    folder, monkeypatch
):
    events, exchange, rmtree = [], files._exchange, shutil.rmtree
    monkeypatch.setattr(files, "_sync", lambda path: events.append(("sync", path.name)))
    monkeypatch.setattr(
        files, "_exchange", lambda *paths: events.append("exchange") or exchange(*paths)
    )
    with replacing_folder(folder) as scratch:
        fill(scratch, "new")
        monkeypatch.setattr(
            shutil, "rmtree", lambda *a, **k: events.append("remove") or rmtree(*a, **k)
        )
    content = [("sync", name) for name in ("inner", "text", scratch.name)]
    assert events[:5] == [*content, "exchange", ("sync", folder.parent.name)]
    assert set(events[5:]) == {"remove"}


def test_what_killed_processes_left_goes_after_a_day_and_other_names_keep_theirs(folder):
    beside = folder.parent
    old, fresh = beside / ".folder-00c0ffee.tmp", beside / ".folder-0badcafe.tmp"
    names = ".folder-b-00c0ffee.tmp", ".folder-b-replaced.tmp", "folder-a"
    others = [beside / name for name in names]
    for path in (old, fresh, *others):
        path.mkdir()
        if path != fresh:
            os.utime(path, (0, 0))
    (beside / ".folder-replaced.tmp").mkdir()
    with replacing_folder(folder) as scratch:
        fill(scratch, "new")
    assert set(listing(beside)) == {"folder", fresh.name, *names}


def test_a_link_stays_a_link_and_a_file_is_left_alone(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    with replacing_folder(link) as scratch:
        fill(scratch, "new")
    assert link.is_symlink()
    assert text(folder) == "new"
    file = folder.parent / "file"
    file.write_text("thesis")
    with pytest.raises(NotADirectoryError), replacing_folder(file) as scratch:
        fill(scratch, "new")
    assert file.read_text() == "thesis"
    assert listing(folder.parent) == ["file", "folder", "link"]


def test_it_is_the_hash_that_the_docs_describe(tmp_path):
    (tmp_path / "b.hdf5").write_bytes(b"bb")
    (tmp_path / "a.hdf5").write_bytes(b"a" * 3_000_000)
    text = ""
    for name in ("a.hdf5", "b.hdf5"):
        content = (tmp_path / name).read_bytes()
        text += f"{name}\0{len(content)}\0{hashlib.sha256(content).hexdigest()}\0"
    assert fingerprint(find_files(tmp_path, "test")) == hashlib.sha256(text.encode()).hexdigest()


def test_place_and_order_do_not_matter_but_content_and_name_do(tmp_path):
    toy = tmp_path / "toy"
    toy.mkdir()
    for name in "ab":
        (toy / f"{name}.hdf5").write_bytes(name.encode() * 100)
    own, seen = fingerprint(find_files(toy, "test")), []
    copy = shutil.copytree(toy, tmp_path / "elsewhere")
    backwards = find_files(copy, "test")[::-1]
    assert fingerprint(backwards, progress=lambda n, m: seen.append((n, m))) == own
    assert seen == [(1, 2), (2, 2)]
    file = copy / "a.hdf5"
    file.rename(file.with_name("aa.hdf5"))
    assert fingerprint(find_files(copy, "test")) != own
    file.with_name("aa.hdf5").rename(file)
    assert fingerprint(find_files(copy, "test")) == own
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert fingerprint(find_files(copy, "test")) != own


def test_a_full_disk_keeps_the_old_file_and_names_it(tmp_path, full_disk):
    path = tmp_path / "numbers.json"
    path.write_text("old")
    with pytest.raises(OSError, match="numbers.json") as caught, replacing(path) as scratch:  # noqa: SIM117
        with full_disk(10):
            scratch.write_text("new" * 10)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["numbers.json"]


def test_an_error_about_another_file_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "new"):
        (tmp_path / "input").read_text()
    assert caught.value.filename == str(tmp_path / "input")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "full"), ValueError])
def test_files_are_replaced_together_or_not_at_all(folder, error):
    (folder / "own").write_text("mine")
    with pytest.raises(type(error) if isinstance(error, OSError) else error):  # noqa: SIM117
        with replacing_files(folder) as scratch:
            fill(scratch, "new")
            raise error
    assert text(folder) == "old"
    assert listing(folder) == ["inner", "own"]
    with replacing_files(folder) as scratch:
        fill(scratch, "new")
        (scratch / "more").write_text("more")
        assert text(folder) == "old"
    assert text(folder) == "new"
    assert listing(folder) == ["inner", "more", "own"]
    assert (folder / "own").read_text() == "mine"


def test_files_that_came_to_nothing_leave_no_folder(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing_files(tmp_path / "new"):
        raise KeyboardInterrupt
    assert listing(tmp_path) == []


def test_what_a_killed_process_left_of_files_goes_a_day_later(tmp_path):
    left = tmp_path / ".files-01234567.tmp"
    left.mkdir()
    os.utime(left, (0, 0))
    with replacing_files(tmp_path) as scratch:
        (scratch / "a").write_text("a")
    assert listing(tmp_path) == ["a"]
