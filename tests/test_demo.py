"""The demo, made small: every file it promises, and what it says."""

import json

import pytest

import overtone as ot
from overtone import demo
from overtone.solvers import ShearFlow


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo, "SYSTEM", ShearFlow(shape=(32, 32), reynolds=500.0))
    for name, value in {"STEPS": 10, "START": 4, "NUM_FRAMES": 18, "BATCH": 2}.items():
        monkeypatch.setattr(demo, name, value)


@pytest.mark.usefixtures("small")
def test_demo_writes_what_it_promises_and_caches_its_data(tmp_path, capsys):
    demo.run(tmp_path / "out", updates=2, seed=0)
    told = capsys.readouterr().out
    assert "trained for 2 updates only" in told
    for schedule in demo.SCHEDULES:
        assert schedule in told
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [run["schedule"] for run in results["runs"]] == list(demo.SCHEDULES)
    assert all(len(run["vrmse"]) == 10 for run in results["runs"])
    assert (tmp_path / "out" / "rollout.png").stat().st_size > 10_000
    assert ot.Emulator.from_pretrained(tmp_path / "out" / "model").patches == (4, 8, 16)

    (cached,) = (tmp_path / "cache").glob("*-n4-*")
    before = cached.stat().st_mtime_ns
    demo.run(tmp_path / "out", updates=1, seed=0)
    assert cached.stat().st_mtime_ns == before
