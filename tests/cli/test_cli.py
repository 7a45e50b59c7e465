"""The command line as a user meets it."""

import errno
import os
import subprocess
import sys
import warnings

import pytest
import torch
import typer
from safetensors import SafetensorError

from overtone import DataError, PatchError
from overtone.cli import app as cli
from overtone.files import cache_dir
from overtone.version import __version__, gather, package_version


def test_help_lists_the_commands(overtone):
    code, said = overtone("--help")
    assert code == 0
    assert "demo" in said
    assert "info" in said


def commands(group=None, path=()):
    """Every command of the program, with the words that lead to it."""
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_help_shows_every_character_that_was_written(capsys):
    """Brackets among them, which rich would take for markup: [slurm], [NAME=]PATH."""
    seen = ""
    for path, command in commands():
        with pytest.raises(SystemExit):
            typer.main.get_command(cli.app)([*path, "--help"], prog_name="overtone")
        shown = " ".join(capsys.readouterr().out.split())
        for parameter in command.params:
            written = " ".join((getattr(parameter, "help", None) or "").split())
            assert written in shown, (path, written)
        seen += shown
    assert "overtone[slurm]" in seen
    assert "[NAME=]PATH" in seen


def test_version():
    """As a module, in a process of its own: all else here is what its `main` says."""
    command = [sys.executable, "-m", "overtone", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"overtone {__version__}"


def test_info_shows_versions_device_threads_and_caches(overtone):
    code, said = overtone("info")
    assert code == 0
    for word in ("overtone", "torch", "device", "threads", "cache", torch.__version__):
        assert word in said


@pytest.mark.parametrize("arguments", [("inof",), ("demo", "--steps", "many"), ("demo", "-x")])
def test_wrong_arguments_are_one_message_with_code_2(overtone, arguments):
    code, said = overtone(*arguments)
    assert code == 2
    assert "Traceback" not in said
    assert "Error" in said


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (PatchError("patch 3 is odd"), 2, "error: patch 3 is odd\n"),
        (RuntimeError("boom"), 1, "error: RuntimeError: boom (overtone --debug ... shows the"),
        (DataError("a\x1b[2J\udcff\nb"), 2, "error: a\\x1b[2J\\xff\nb\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "x/metrics.jsonl"),
            2,
            "error: No space left on device: 'x/metrics.jsonl'; make room there",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "x"),
            2,
            "error: Permission denied: 'x'; ",
        ),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "x"), 2, "error: Is a directory: 'x'; "),
        (OSError(errno.EMFILE, "Too many open files", "x"), 2, "error: Too many open files: 'x'; "),
        (OSError("Unable to open file"), 2, "error: Unable to open file\n"),
        (MemoryError(), 2, "error: there is not enough memory; ask for"),
        (
            RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
            ),
            2,
            "error: there is not enough memory: DefaultCPUAllocator: can't",
        ),
        (
            RecursionError("maximum recursion depth exceeded"),
            2,
            "error: a file or a setting is nested",
        ),
        (SafetensorError("IoError(Os { code: 28, kind: StorageFull })"), 2, "error: IoError(Os"),
    ],
)
def test_errors_are_one_line_and_debug_shows_the_traceback(
    monkeypatch, capsys, error, code, message
):
    def fail():
        raise error

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr(sys, "argv", ["overtone", "info"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == code
    assert capsys.readouterr().err.startswith(message)
    monkeypatch.setattr(sys, "argv", ["overtone", "--debug", "info"])
    with pytest.raises(type(error)):
        cli.main()


def test_ctrl_c_is_one_line(monkeypatch, capsys):
    commands = typer.Typer()

    @commands.command()
    def wait(debug: bool = False):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["overtone"])
    with pytest.raises(SystemExit) as stop:
        cli.main(commands)
    assert stop.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
    monkeypatch.setattr(sys, "argv", ["overtone", "--debug"])
    with pytest.raises(KeyboardInterrupt):
        cli.main(commands)


def test_a_warning_is_one_line(monkeypatch, capsys):
    def warn():
        warnings.simplefilter("always")
        warnings.warn("line 3 of \x1b is left out", stacklevel=1)

    monkeypatch.setattr(sys, "argv", ["overtone"])
    with pytest.raises(SystemExit) as stop:
        cli.main(warn)
    assert stop.value.code == 0
    assert capsys.readouterr().err == "warning: line 3 of \\x1b is left out\n"


def test_a_reader_who_leaves_ends_nothing_and_any_terminal_will_do():
    """As `overtone train list | head -0` on a terminal that knows ASCII alone."""
    command = [sys.executable, "-m", "overtone", "train", "list"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_output_that_is_lost_is_said_to_be():
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "overtone", "train", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == (
        b"error: the output is incomplete: No space left on device. All else was done\n"
    )


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path / "here"))
    assert gather()["cache"] == str(tmp_path / "here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OVERTONE_CACHE", "")
    assert cache_dir() == tmp_path / "overtone"
    monkeypatch.delenv("OVERTONE_CACHE")
    assert cache_dir() == tmp_path / "overtone"


def test_missing_packages_are_said_to_be_missing():
    assert package_version("no-such-package") == "not installed"


INTERRUPTED_IMPORT = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
import overtone_command
overtone_command.main()
"""


def test_ctrl_c_while_the_program_is_loading_is_one_line():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, "interrupted\n", "")
