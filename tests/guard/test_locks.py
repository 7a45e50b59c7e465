"""One writer for a folder; the second is told who the first is; the dead hold nothing."""

import json
import os
import socket
import subprocess
import sys

import pytest

import overtone as ot
from overtone.guard import locks
from overtone.guard.locks import LOCK, locked

HOLDS = """
import os, signal, sys
from overtone.guard.locks import locked
with locked(sys.argv[1]):
    if os.fork() == 0:       # a process that reads data beside the run
        os.write(1, b"child\\n")
        signal.pause()
    os.write(1, b"locked\\n")
    signal.pause()
"""


def test_the_second_is_told_who_the_first_is(tmp_path):
    with locked(tmp_path / "run"):
        with (
            pytest.raises(ot.DataError, match=rf"process {os.getpid()} on .*, since \d+.*left"),
            locked(tmp_path / "run", error=ot.DataError),
        ):
            pass
        assert json.loads((tmp_path / "run" / LOCK).read_text())["host"] == socket.gethostname()


def test_a_released_lock_leaves_nothing_behind(tmp_path):
    with locked(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()
    with locked(tmp_path / "kept"):
        (tmp_path / "kept" / "file").touch()
    assert os.listdir(tmp_path / "kept") == ["file"]
    with locked(tmp_path / "kept"):
        pass
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_an_empty_folder_of_the_user_stays(tmp_path):
    with locked(tmp_path):
        pass
    assert tmp_path.is_dir()


@pytest.mark.parametrize("content", ["", "[]", "\0\xff", '{"process": 1, "host": "elsewhere"}'])
def test_a_file_that_nobody_holds_is_stale(tmp_path, content):
    (tmp_path / LOCK).write_text(content)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()


def test_a_killed_process_holds_nothing_even_if_its_children_live(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path], stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert {process.stdout.readline(), process.stdout.readline()} == {"child\n", "locked\n"}
        with pytest.raises(ot.OvertoneError, match=f"process {process.pid} "), locked(tmp_path):
            pass
        process.kill()
        process.wait()
        with locked(tmp_path):
            pass
    finally:
        os.killpg(process.pid, 9)
        process.stdout.close()


def test_without_locks_of_the_kernel_the_named_process_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead = {"process": child.pid, "host": socket.gethostname(), "since": "then"}
    (tmp_path / LOCK).write_text(json.dumps(dead))
    with locked(tmp_path), pytest.raises(ot.OvertoneError, match="in use"), locked(tmp_path):
        pass
    (tmp_path / LOCK).write_text(json.dumps(dead | {"host": "elsewhere"}))
    with pytest.raises(ot.OvertoneError, match="on elsewhere, since then"), locked(tmp_path):
        pass


def test_hostile_content_is_shown_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    (tmp_path / LOCK).write_text(json.dumps({"process": 1, "host": "\x1b[2J", "since": "now"}))
    with pytest.raises(ot.OvertoneError, match=r"\\x1b\[2J"), locked(tmp_path):
        pass


def test_a_folder_that_gets_another_name_takes_its_lock_along(tmp_path):
    with locked(tmp_path / "one") as lock:
        (tmp_path / "one" / "file").touch()
        (tmp_path / "one").rename(tmp_path / "two")
        lock.folder = tmp_path / "two"
    assert os.listdir(tmp_path / "two") == ["file"]


def test_folders_that_were_made_on_the_way_go_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with locked("here/deep/run"):
        assert (tmp_path / "here/deep/run").is_dir()
    assert [path.name for path in tmp_path.rglob("*")] == ["here"]
    with locked("here/deep/run"):
        (tmp_path / "here/deep/run/kept").touch()
    assert (tmp_path / "here/deep/run/kept").is_file()
