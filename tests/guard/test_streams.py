"""Printing goes on whatever happens to the other end."""

import errno
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from overtone.guard import streams
from overtone.guard.streams import Outlet, lasting_streams


def text_of(number):
    """A text stream on a file descriptor, as lasting_streams makes it, and its outlet."""
    outlet = Outlet(number, "w", closefd=True)
    return io.TextIOWrapper(io.BufferedWriter(outlet), encoding="utf-8"), outlet


def test_what_is_written_arrives(tmp_path):
    with (tmp_path / "out").open("wb") as file:
        stream, outlet = text_of(os.dup(file.fileno()))
        stream.write("é\n" * 10_000)
        stream.close()
    assert (tmp_path / "out").read_text() == "é\n" * 10_000
    assert outlet.failure is None


def test_a_closed_pipe_swallows_what_comes_later():
    reader, writer = os.pipe()
    stream, outlet = text_of(writer)
    os.close(reader)
    for _ in range(3):
        stream.write("x" * 100_000)
        stream.flush()
    stream.close()
    assert outlet.failure.errno == errno.EPIPE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_swallows_what_comes_later():
    stream, outlet = text_of(os.open("/dev/full", os.O_WRONLY))
    stream.write("x")
    stream.flush()
    stream.close()
    assert outlet.failure.errno == errno.ENOSPC


def test_a_full_pipe_that_does_not_block_is_waited_for():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    stream, outlet = text_of(writer)
    with ThreadPoolExecutor() as pool:
        heard = pool.submit(read_all, reader)
        stream.write("x" * 1_000_000)
        stream.close()
        assert heard.result() == 1_000_000
    assert outlet.failure is None


def read_all(number):
    with os.fdopen(number, "rb") as file:
        return len(file.read())


def test_streams_of_the_process_are_replaced_for_a_while(monkeypatch, tmp_path):
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        monkeypatch.setattr(sys, "stdout", file)
        monkeypatch.setattr(sys, "__stdout__", file)
        with lasting_streams() as lost:
            print("Rayleigh–Bénard \udcff")
            assert sys.stdout is not file
            assert lost() == ""
        assert sys.stdout is file
    assert (tmp_path / "out").read_text() == "Rayleigh\\u2013B\\xe9nard \\udcff\n"


@pytest.mark.parametrize(("number", "said"), [(errno.EPIPE, ""), (errno.ENOSPC, "No space left")])
def test_it_is_told_what_was_lost_but_not_to_who_left(monkeypatch, tmp_path, number, said):
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        monkeypatch.setattr(sys, "__stdout__", file)
        with lasting_streams() as lost:
            sys.stdout.buffer.raw.failure = OSError(number, os.strerror(number))
            print("unheard")
            assert lost().startswith(said)
            assert bool(lost()) == bool(said)


def test_streams_of_others_are_left_alone(monkeypatch):
    own = io.StringIO()
    monkeypatch.setattr(sys, "stdout", own)
    with lasting_streams():
        assert sys.stdout is own


CLOSED = """
import os, runpy, sys
streams = runpy.run_path(sys.argv[1])
os.close(2)
with streams["lasting_streams"]():
    print(os.open(os.devnull, os.O_RDONLY) > 2)
"""


def test_numbers_of_closed_streams_are_taken():
    """Else a file that is opened next gets what libraries print to standard error."""
    command = [sys.executable, "-c", CLOSED, streams.__file__]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"True\n"
