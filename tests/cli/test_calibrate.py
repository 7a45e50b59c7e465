"""`overtone calibrate`, `rollout --estimate` and `diagnose --model`."""

import json

import pytest

from overtone.data import WellFolder
from overtone.hub import CALIBRATION as FILE
from overtone.models.storage import load_model
from overtone.solvers.datasets import build_system, generate


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = tmp_path_factory.mktemp("flows")
    return generate(system, folder, trajectories=6, steps=30, splits=(0.34, 0.33, 0.33))


@pytest.fixture
def model(data, make_model, tmp_path):
    make_model(WellFolder(data, "test").domain, patches=(4, 8)).save(tmp_path / "model")
    return tmp_path / "model"


def test_estimates_before_and_after(overtone, model, data, tmp_path):
    options = ("--schedule", "adaptive:5+shift", "--steps", 6, "--estimate")
    code, said = overtone("rollout", model, data, "--out", tmp_path / "before", *options)
    assert code == 0, said
    assert "not calibrated" in said
    for one in json.loads((tmp_path / "before" / "rollout.json").read_text())["rollouts"]:
        assert [*one["error by field"]] == [*WellFolder(data, "test").domain.fields]
        columns = zip(*one["error by field"].values(), strict=True)
        assert [sum(own) / len(own) for own in columns] == pytest.approx(one["error"], rel=1e-4)
    code, said = overtone("calibrate", model, data, "--steps", 4, "--windows", 20)
    assert code == 0, said
    assert "4-8+shift" in said
    assert load_model(model).calibration.data["windows"] == 20
    code, said = overtone("rollout", model, data, "--out", tmp_path / "after", *options)
    assert "estimated VRMSE, with 90 % intervals" in said
    log = json.loads((tmp_path / "after" / "rollout.json").read_text())
    assert log["calibrated"] is True
    for one in log["rollouts"]:
        low, high = one["interval 0.9"]
        rows = zip(low, one["error"], high, strict=True)
        assert all(a <= b <= c for a, b, c in rows)
        assert len(one["patch"]) == len(one["tokens"]) == 6
    code, said = overtone("diagnose", tmp_path / "after", "--model", model)
    assert code == 0, said
    assert "estimated error (VRMSE)" in said


def test_mistakes(overtone, model, data, tmp_path):
    code, said = overtone("calibrate", model, data, "--steps", 999)
    assert (code, "error:" in said) == (2, True)
    assert not (model / FILE).exists()
    code, said = overtone("calibrate", "persistence", data)
    assert (code, "has no folder to keep a calibration in" in said) == (2, True)
    code, said = overtone("diagnose", data)
    assert (code, "give one of the two" in said) == (2, True)
    budget = ("--schedule", "adaptive:0.1:budget=1", "--out", tmp_path / "x")
    code, said = overtone("rollout", model, data, *budget)
    assert (code, "budget is 1 tokens" in said) == (2, True)
