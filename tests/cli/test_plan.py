"""`overtone plan`, as a user types it, and what follows its file."""

import json
import shlex

import numpy as np
import pytest
import torch

pytest.importorskip("h5py")

import overtone as ot
from overtone.assess.plan_file import Plan
from overtone.data import Header, WellFolder, write_well

FEW = ("--steps", 3, "--tokens", 60, "--trajectories", 3, "--starts", 1)


@pytest.fixture
def overtone(overtone, monkeypatch, tmp_path):
    """Run a command in a folder with two models and a dataset."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    values = random.standard_normal((4, 8, 16, 16), np.float32).cumsum(axis=1)
    header = Header("walk", (16, 16), (1.0, 1.0), "periodic", 0.1)
    for split in ("valid", "test"):
        write_well(tmp_path / f"walk/data/{split}/a.hdf5", {"u": values}, header)
    domain = WellFolder("walk", "test").domain
    torch.manual_seed(0)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2, "domain": domain}
    for name in ("flex", "other"):
        ot.build("axial", patches=(4, 8), **small).save(name)
    return overtone


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name not in ("walk",))


def test_a_plan_is_made_drawn_and_followed(overtone, tmp_path):
    code, text = overtone("plan", "flex", "walk", *FEW)
    assert code == 0, text
    made = Plan.load("plan.json")
    assert made.cost.tokens <= 60
    assert f"{made.schedule}: VRMSE" in text
    assert "front of" in text
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    assert made.command.startswith("overtone plan flex walk --tokens 60")
    assert str(tmp_path) not in (tmp_path / "plan.json").read_text()
    # What is suggested works as it is.
    suggested = text.split("next: ")[1].splitlines()[0]
    words = shlex.split(suggested)[1:]
    code, text = overtone(*words, "--windows", 2, "--no-report")
    assert code == 0, text
    results = json.loads((tmp_path / "evaluation/results.json").read_text())
    assert [run["schedule"] for run in results["models"][0]["runs"]] == [made.schedule]
    code, text = overtone(
        "rollout", "flex", "walk", "--schedule", "plan:plan.json", "--steps", 2, "--out", "made"
    )
    assert code == 0, text
    words = ("--plan", "plan.json", "--export", "view.html", "--steps", 1, "--split", "valid")
    code, text = overtone("view", "flex", "walk", *words)
    assert code == 0, text
    assert f'"plan":"{made.schedule}"' in (tmp_path / "view.html").read_text()  # for its button
    # An older plan is replaced, and what was typed makes the same plan again.
    code, text = overtone(*shlex.split(made.command)[1:])
    assert code == 0, text
    assert Plan.load("plan.json").schedule == made.schedule


def test_a_plan_for_another_model_or_a_damaged_one_is_refused(overtone, tmp_path):
    assert overtone("plan", "flex", "walk", *FEW)[0] == 0
    words = ("--schedule", "plan:plan.json", "--steps", 2)
    code, text = overtone("rollout", "other", "walk", *words, "--out", "made")
    assert (code, "was made for another model" in text) == (2, True)
    assert not (tmp_path / "made").exists()
    code, text = overtone("view", "other", "walk", "--plan", "plan.json", "--export", "view.html")
    assert (code, "was made for another model" in text) == (2, True)
    code, text = overtone("evaluate", "other", "walk", *words, "--windows", 2, "--no-report")
    assert (code, "was made for another model" in text) == (2, True)
    (tmp_path / "plan.json").write_text('{"format": "overtone-plan-1"')
    code, text = overtone("rollout", "flex", "walk", *words, "--out", "made")
    assert (code, "can't be read as a plan" in text, "Traceback" in text) == (2, True, False)


def test_an_error_out_of_reach_is_said_and_the_best_is_kept(overtone, tmp_path):
    few = ("--steps", 3, "--trajectories", 3, "--starts", 1)
    code, text = overtone("plan", "flex", "walk", *few, "--error", 1e-6, "--out", "p/best.json")
    assert (code, "no schedule reaches 1e-06" in text) == (3, True)
    assert not Plan.load("p/best.json").fits
    assert files(tmp_path / "p") == ["best.json", "best.png"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing is limited"),
        (("--tokens", 5), "no schedule of 3 steps fits into 5 tokens: the cheapest, '8', takes 12"),
        (("--tokens", 60, "--split", "test"), "on the test split"),
        (("--tokens", 60, "--split", "train"), "train"),
        (("--tokens", 60, "--steps", 99), "99 steps were asked for"),
        (("--seconds", -1), "seconds is -1.0; expected a positive number"),
        (("--tokens", 60, "--out", "walk"), "'walk' is a folder"),
        (("--tokens", 60, "--out", "mine.json"), "not from `overtone plan`; it is left alone"),
        (("--tokens", 60, "--coarsen", "two"), "coarsen is 'two'"),
    ],
)
def test_mistakes_are_one_message_and_leave_nothing(words, said, overtone, tmp_path):
    (tmp_path / "mine.json").write_text("[]")
    before = files(tmp_path)
    code, text = overtone("plan", "flex", "walk", "--steps", 3, *words)
    assert (code, said in text, "Traceback" in text) == (2, True, False), text
    assert files(tmp_path) == before
    assert (tmp_path / "mine.json").read_text() == "[]"


def test_an_interrupt_leaves_no_file(overtone, tmp_path, monkeypatch):
    from overtone.assess.search_beam import Beam

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Beam, "search", stop)
    before = files(tmp_path)
    code, text = overtone("plan", "flex", "walk", "--steps", 3, "--tokens", 60)
    assert (code, "interrupted" in text) == (130, True)
    assert files(tmp_path) == before
