"""A small dataset, small runs, and a way to start them as their users do."""

import os
import subprocess
import sys

import pytest

from overtone.solvers.datasets import build_system, generate
from overtone.train.recipes import recipe
from overtone.train.settings import change

SMALL = {
    "data.workers": 0,
    "model.width": 16,
    "model.heads": 2,
    "model.blocks": 2,
    "model.mlp_dim": 24,
    "model.context": 3,
    "model.patches": [4, 8],
    "train.batch": 4,
    "train.threads": 1,
    "train.updates": 12,
    "train.shift": 1.0,
    "train.unroll": 1,
    "train.unroll_from": 0.0,
    "valid.every": 6,
    "valid.windows": 4,
    "valid.rollouts": 2,
    "valid.rollout_steps": 3,
    "save.every": 4,
    "log.every": 1,
    "log.tensorboard": False,
    "log.report": False,
}


@pytest.fixture(scope="session")
def waves(tmp_path_factory):
    """A Well folder of a 1D system: 6 trajectories of 14 frames on 64 cells."""
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = tmp_path_factory.mktemp("waves")
    return generate(system, folder, trajectories=6, steps=14, splits=(0.5, 0.25, 0.25), per_file=2)


@pytest.fixture
def small(waves):
    """Makes the configuration of a small run, with some settings changed."""

    def make(**changes):
        dotted = {key.replace("__", "."): value for key, value in changes.items()}
        base = recipe("kuramoto-sivashinsky-mini")
        return change(base, SMALL | {"data.path": str(waves)} | dotted)

    return make


@pytest.fixture
def start(tmp_path):
    """Starts a run as its own process, by `torchrun` if there are several ranks."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}

    def popen(config, out, *options, ranks=1, restarts=0, code=None, group=False):
        path = tmp_path / "given.yaml"
        path.write_text(config.to_yaml())
        command = [config.recipe, "--config", str(path), "--out", str(out), *options]
        launcher = [sys.executable, "-m"]
        if ranks > 1:
            launcher += ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
            launcher += [f"--max-restarts={restarts}", "--monitor-interval=0.2", "-m"]
        if code is not None:
            script = tmp_path / "script.py"
            script.write_text(code)
            launcher = [*launcher[:-1], str(script)]
            return _popen([*launcher, "train", *command], environment)
        return _popen([*launcher, "overtone", "train", *command], environment, group)

    return popen


def _popen(command, environment, group=False):
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=group,
    )  # fmt: skip
