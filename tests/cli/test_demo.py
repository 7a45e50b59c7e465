"""The demo, made small: what it writes, what it says, and that nobody was trained on its flows."""

import json
import shlex
from pathlib import Path

import pytest
import torch
from rich.console import Console

pytest.importorskip("h5py")

import overtone as ot
from overtone.cli import demo
from overtone.data import WellFolder
from overtone.evaluate.results import Results
from overtone.guard.folders import MARKER
from overtone.models import storage
from overtone.report import html
from overtone.train.parallel import Ranks
from overtone.train.recipes import recipe
from overtone.train.run import data_folder
from overtone.train.settings import change

SMALL = {
    "data.generate.grid": [32, 32],
    "data.generate.settings": {"reynolds": 500.0},
    "data.coarsen": 1,
}
FILES = {
    "report.html",
    "results.json",
    "rollout.gif",
    "rollout.png",
    "samples.safetensors",
    "view.html",
}


@pytest.fixture
def overtone(overtone, monkeypatch, tmp_path):
    """Run a command with small data and two untrained models in the place of the packaged ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "PACKAGED", tmp_path / "weights")
    monkeypatch.setattr(demo, "recipe", lambda name: change(recipe(name), SMALL))
    monkeypatch.setattr(html, "drawings", lambda *_: ())  # they take long, and have their tests
    monkeypatch.setattr(demo, "DEVELOPED", 3)
    monkeypatch.setattr(demo, "WINDOWS", 2)
    fields = ("tracer", "pressure", "velocity_x", "velocity_z")
    domain = ot.Domain((32, 32), (1.0, 2.0), "periodic", fields, 0.1)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2, "domain": domain}
    torch.manual_seed(0)
    for name, tokenizer, patches in (("csm", "csm", (4, 8, 16)), ("fixed16", "fixed", 16)):
        model = ot.build("axial", tokenizer=tokenizer, patches=patches, **small)
        model.save(tmp_path / f"weights/shear-flow-mini-{name}", training={"seed": 0})
    return overtone


def test_the_demo_and_what_it_suggests(overtone, tmp_path):
    code, text = overtone("demo", "--out", "out", "--steps", 4, "--flows", 2)
    assert code == 0, text
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES | {MARKER}
    assert all((out / name).stat().st_size > 5000 for name in FILES)

    results = Results.load(out / "results.json")
    assert results.command == "overtone demo --steps 4 --flows 2 --seed 0"
    assert (results.steps, results.data.trajectories, results.data.start) == (4, 2, 1)
    runs = {(model.name, run.schedule): run for model in results.models for run in model.runs}
    flexible = {("csm", schedule) for schedule in demo.SCHEDULES}
    assert set(runs) == flexible | {("fixed16", "16"), ("fixed16", "16+shift")}
    assert set(demo.SHOWN) < set(runs)
    for (model, schedule), run in runs.items():
        (line,) = [s for s in text.splitlines() if s.split()[:2] == [model, schedule]]
        for value in (run.vrmse_10.value, run.vrmse_all.value):
            assert f"{value:.4f}" in line
        assert str(run.tokens) in line.split()

    # The last line leads to the viewer; the one before it is a command, which works as it stands,
    # and on the very same flows.
    *_, line, last = text.strip().splitlines()
    assert last.endswith(": overtone view")
    assert str(Path("out/view.html")) in last
    command = line.partition(": ")[2]
    code, text = overtone(*shlex.split(command)[1:], "--no-report")
    assert code == 0, text
    again = Results.load("evaluation/results.json")
    assert (again.data, again.steps) == (results.data, results.steps)
    assert [run.schedule for run in again.models[0].runs] == ["bursts:16:4:5+shift"]


@pytest.mark.usefixtures("overtone")
def test_flows_are_kept_and_a_seed_makes_others(tmp_path):
    def flows(seed):
        data = demo.unseen_data(flows=1, frames=2, seed=seed)
        return data_folder(data, Ranks(0, 1, torch.device("cpu")), Console())

    first = flows(0)
    (file,) = (tmp_path / "cache").rglob("*.hdf5")
    before = file.stat().st_mtime_ns
    assert flows(0) == first
    assert file.stat().st_mtime_ns == before
    frames = [WellFolder(path, "test", 1).frames(0, 0, 1).fields for path in (first, flows(1))]
    assert not torch.allclose(*frames)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_flows_are_like_those_trained_on_but_others(seed):
    trained = recipe("shear-flow-mini").data
    unseen = demo.unseen_data(flows=3, frames=60, seed=seed)
    same = {"system", "grid", "settings", "per_file"}
    assert unseen.generate.model_dump(include=same) == trained.generate.model_dump(include=same)
    assert unseen.coarsen == trained.coarsen
    assert unseen.generate.seed > trained.generate.seed
    assert unseen.generate.splits == (0, 0, 1)
    assert (unseen.generate.trajectories, unseen.generate.steps) == (3, 60)


def test_a_model_that_is_not_there(overtone, tmp_path):
    (tmp_path / "weights/shear-flow-mini-fixed16").rename(tmp_path / "weights/other")
    code, text = overtone("demo")
    assert code == 2
    assert "'shear-flow-mini-fixed16' does not come with this installation" in text
    assert "other, shear-flow-mini-csm" in text
    assert "make reproduce STUDY=shear-flow-mini" in text
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", "0"), "--steps"),
        (("--flows", "0"), "--flows"),
        (("--seed", "-1"), "--seed"),
        (("--updates", "3"), "--updates"),
        (("--out", "mine.txt"), "is a file"),
        (("--out", "mine"), "it is left alone"),
    ],
)
def test_bad_options_are_one_message_and_exit_code_two(overtone, tmp_path, options, message):
    (tmp_path / "mine.txt").write_text("a file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/results.json").write_text(json.dumps({"of": "somebody else"}))
    code, text = overtone("demo", *options)
    assert code == 2
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "cache").exists()
