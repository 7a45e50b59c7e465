"""The command line as a user meets it: in a process of its own."""

import subprocess
import sys

import pytest
import torch

import overtone
from overtone.cli import app as cli
from overtone.files import cache_dir
from overtone.version import gather, package_version


def run(*arguments, **environment):
    command = [sys.executable, "-m", "overtone", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "info" in done.stdout


def test_version():
    assert run("--version").stdout.strip() == f"overtone {overtone.__version__}"


def test_info_shows_versions_device_threads_and_caches():
    done = run("info")
    assert done.returncode == 0
    for word in ("overtone", "torch", "device", "threads", "cache", torch.__version__):
        assert word in done.stdout


@pytest.mark.parametrize("arguments", [("inof",), ("demo", "--steps", "many"), ("demo", "-x")])
def test_wrong_arguments_are_one_message_with_code_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Error" in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (overtone.PatchError("patch 3 is odd"), 2, "error: patch 3 is odd\n"),
        (RuntimeError("boom"), 1, "error: RuntimeError: boom (overtone --debug ... shows the"),
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


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path / "here"))
    assert gather()["cache"] == str(tmp_path / "here")
    monkeypatch.delenv("OVERTONE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "overtone"


def test_missing_packages_are_said_to_be_missing():
    assert package_version("no-such-package") == "not installed"
