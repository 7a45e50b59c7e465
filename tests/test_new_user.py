"""A new user's walk: a solver of one's own, and then what each command says comes next."""

import json
import re
import shlex

import h5py
import numpy as np
import pytest

FEW = ("train.updates=6", "model.width=16", "model.heads=2", "model.blocks=1", "model.mlp_dim=16",
       "valid.points=2", "valid.windows=4", "valid.rollouts=2", "train.threads=1",
       "log.tensorboard=false")  # fmt: skip


def burgers(runs, frames, *, cells=64, viscosity=0.05, dt=0.05, substeps=10):
    """u_t = ν u_xx - (u²/2)_x on [0, 2π), `(runs, frames, cells)`."""
    modes, step = np.arange(cells // 2 + 1), dt / substeps
    random = np.random.default_rng(0).normal(size=(2, runs, 4)) / [1, 2, 3, 4]
    spectrum = np.zeros((runs, len(modes)), complex)
    spectrum[:, 1:5] = cells / 4 * (random[0] + 1j * random[1])
    decay, made = np.exp(-viscosity * modes**2 * step), []
    for _ in range(frames * substeps):
        made.append(np.fft.irfft(spectrum))
        flux = np.fft.rfft(made[-1] ** 2 / 2) * (modes < cells / 3)
        spectrum = decay * (spectrum - step * 1j * modes * flux)
    return np.stack(made[::substeps], axis=1)


@pytest.fixture
def walk(overtone, tmp_path, monkeypatch):
    """Runs a command in a folder with the solver's file; any failure is one of the test."""
    monkeypatch.chdir(tmp_path)
    values = burgers(20, 40)
    with h5py.File("burgers.h5", "w") as file:
        file["velocity"] = values
        file["t"] = 0.05 * np.arange(values.shape[1])
        file["x"] = np.arange(values.shape[2]) * 2 * np.pi / values.shape[2]

    def step(*words):
        code, said = overtone(*words)
        assert code == 0, said
        return said

    return step


def following(said):
    """The command that a command names as the next one."""
    (command,) = re.findall(r"next: overtone (.*)", said)
    return shlex.split(command)


def test_from_a_file_to_a_diagnosis(walk, tmp_path):
    said = walk("data", "import", "burgers.h5", "--out", "flows")
    for fact in ("trajectories +20", "frames +40", "grid +64", "dt +0.05 .*'t'", "extent x +6.28"):
        assert re.search(fact, said), fact
    assert (tmp_path / "flows-frames.png").exists()
    assert "0 errors, 0 warnings" in walk(*following(said))
    walk("data", "show", "flows", "--out", "flows.png")
    said = walk("train", "mine", "--data", "flows", "--out", "run", *FEW)
    assert "patches  4-8-16" in said
    assert "to beat  persistence" in said
    said = walk(*following(said), "--steps", "6")
    verdict = next(line for line in said.splitlines() if line.startswith("run with schedule"))
    assert "persistence" in verdict
    assert said.index(verdict) < said.index("next")  # which heads a column of the table
    walk("report", "evaluation", "--out", "page", "--animate", "none")
    assert verdict[:60] in (tmp_path / "page" / "report.html").read_text()
    walk("rollout", "run", "flows", "--schedule", "4-8-16", "--steps", "6", "--out", "predicted")
    walk("diagnose", "predicted", "flows", "--split", "test")


@pytest.mark.slow
def test_a_minute_of_training_beats_what_needs_none(walk, tmp_path):
    walk("data", "import", "burgers.h5", "--out", "flows")
    said = walk("train", "mine", "--data", "flows", "--minutes", "1", "--out", "run",
                "log.tensorboard=false")  # fmt: skip
    walk(*following(said), "--no-report")
    found = json.loads((tmp_path / "evaluation" / "results.json").read_text())
    best = min(run["vrmse_10"]["value"] for run in found["models"][0]["runs"])
    for bare in found["yardsticks"]:
        assert best < bare["runs"][0]["vrmse_10"]["value"], bare["name"]
