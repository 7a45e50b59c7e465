"""A run that is killed before any of its file-system events goes on to the same weights.

The events are those that change something: a file opened for writing, a folder made, a name changed
or removed, and what happens outside of Python (safetensors' writes, the exchange of two names).
"""

import subprocess
import sys

import pytest

# Runs in a process of its own: every attempt is a fork of it, killed before its n-th event.
SCRIPT = """
import os, signal, sys, traceback
from pathlib import Path
import safetensors.torch, torch
from rich.console import Console
from overtone import files
from overtone.files import sha256
from overtone.train.config import RunConfig
from overtone.train.run import train

base, config, overwrite, exchanges, first, stride = Path(sys.argv[1]), *sys.argv[2:]
config = RunConfig.model_validate_json(config)
overwrite, exchanges, stride = overwrite == "True", exchanges == "True", int(stride)
QUIET = Console(quiet=True)
torch.set_num_threads(1)
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink", "os.link"}

seen = kill_at = 0
def event():
    global seen
    seen += 1
    if seen == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

def hook(name, arguments):
    if name in CHANGES:
        event()
    elif name == "open" and isinstance(arguments[0], str) and str(base) in arguments[0]:
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            event()

def counted(function):
    def call(*arguments, **options):
        event()
        return function(*arguments, **options)
    return call

def attempt(folder, at, **options):
    # Trains in a child; returns whether it was killed, and the number of its events.
    global kill_at
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        kill_at = at
        files._exchange = counted(files._exchange) if exchanges else lambda one, other: False
        safetensors.torch.save_file = counted(safetensors.torch.save_file)
        sys.addaudithook(hook)
        code = 1
        try:
            code = 0 if train(config, folder, console=QUIET, **options).status == "finished" else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os.write(writer, str(seen).encode())
            os._exit(code)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    count = os.read(reader, 20).decode()
    os.close(reader)
    killed = os.WIFSIGNALED(status)
    assert killed or os.WEXITSTATUS(status) == 0, folder.name
    return killed, int(count or 0)

def weights(folder):
    return [sha256(folder / name / "model.safetensors") for name in ("best", "last")]

def earlier(folder):
    # Another run of the same folder, to be replaced.
    other = config.model_copy(update={"train": config.train.model_copy(update={"seed": 5})})
    train(other, folder, console=QUIET)

def left(folder):
    return sorted(p.name for p in folder.rglob("*") if p.name.endswith((".tmp", ".part", ".lock")))

def prepare(folder):
    if overwrite:
        earlier(folder)

prepare(base / "whole")
_, events = attempt(base / "whole", 0, overwrite=overwrite)
expected = weights(base / "whole")
points = range(int(first), events + 1, stride)
for at in points:
    folder = base / f"run-{at}"
    prepare(folder)
    before = weights(folder) if overwrite else None
    killed, _ = attempt(folder, at, overwrite=overwrite)
    assert killed, f"event {at} of {events} did not come"
    if overwrite and not any((folder / n).exists() for n in ("checkpoints", "last")):
        # Nothing of the new run yet: the old one must be somewhere, whole.
        found = [folder, *base.glob(f".run-{at}-earlier-*")]
        assert any((p / "last").exists() and weights(p) == before for p in found), f"event {at}"
    again = {"overwrite": True} if overwrite else {"resume": True}
    if overwrite and (folder / "config.json").exists():
        import json
        if json.loads((folder / "config.json").read_text())["train"]["seed"] != 5:
            again = {"resume": True}
    attempt(folder, 0, **again)
    assert weights(folder) == expected, f"event {at}: other weights"
    assert left(folder) == [], f"event {at}: {left(folder)}"
    assert not [*base.glob(f".run-{at}-*")], f"event {at}: an earlier run was left"
print(events, len(points))
"""


def crash(config, tmp_path, *, overwrite=False, exchanges=True, first=1, stride=1):
    """Returns the number of events, and of those before which the run was killed."""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, tmp_path, config.model_dump_json()]
    command += map(str, (overwrite, exchanges, first, stride))
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stderr[-3000:]
    return tuple(map(int, done.stdout.split()))


@pytest.fixture
def short(small):
    """A run that logs, validates, keeps its best, saves and removes old checkpoints."""
    return small(
        train__updates=3, save__every=1, save__keep=1, valid__every=1, valid__rollout_steps=1,
        valid__windows=1, valid__rollouts=1, model__blocks=1, model__patches=[8],
    )  # fmt: skip


def test_some_crash_points(short, tmp_path):
    events, tried = crash(short, tmp_path, first=7, stride=47)
    assert events > 100
    assert tried >= 3


PARTS = 6
"""Into how many tests all points are divided: no test may take more than a few minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize(
    ("overwrite", "exchanges"), [(False, True), (False, False), (True, True)], ids=str
)
def test_all_crash_points(short, tmp_path, overwrite, exchanges, part, record_property):
    events, tried = crash(
        short, tmp_path, overwrite=overwrite, exchanges=exchanges, first=part, stride=PARTS
    )
    assert events > 100
    assert tried == len(range(part, events + 1, PARTS))
    record_property("events", tried)  # for benchmarks/faults.py
