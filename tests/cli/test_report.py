"""`overtone report` of one evaluation and of several, as a user types it."""

import pytest
import torch

from overtone.domain import Domain
from overtone.evaluate.results import Data, Estimate, ModelResult, NextStep, Results
from overtone.evaluate.samples import Samples
from overtone.guard.folders import MARKER


@pytest.fixture
def measured(tmp_path):
    domain = Domain((8, 8), (1.0, 1.0), "periodic", ("a",))
    error = Estimate(value=0.5, low=0.4, high=0.6)
    step = NextStep(patch=4, vrmse=error, fields={}, tokens=4, flops=9, seconds=0.1)
    model = ModelResult(
        name="m", seed=None, num_parameters=3, config={}, training={}, next_step=(step,), runs=()
    )
    data = Data(name="d", split="test", fingerprint="0", trajectories=2, start=0,
                domain=domain.to_dict())  # fmt: skip
    Results(command="c", seed=0, machine={}, data=data, steps=2, models=(model,)).save(
        tmp_path / "eval" / "results.json"
    )
    frames = torch.randn(2, 2, 1, 8, 8)
    Samples(domain, (1, 2), frames[0], {("m", "4"): frames[1]}).save(
        tmp_path / "eval" / "samples.safetensors"
    )
    return tmp_path / "eval"


def test_a_report_beside_the_results(overtone, measured):
    code, text = overtone("report", measured)
    assert (code, "wrote" in text) == (0, True)
    assert (measured / "report.html").is_file()
    assert (measured / "rollout.gif").is_file()


def test_a_report_elsewhere_without_samples(overtone, measured, tmp_path):
    (measured / "samples.safetensors").unlink()
    code, text = overtone("report", measured, "--out", tmp_path / "new", "--animate", "none")
    assert code == 0
    assert "no samples" in text
    assert {p.name for p in (tmp_path / "new").iterdir()} == {
        MARKER,
        "report.html",
        "results.json",
        "figures",
    }


@pytest.mark.parametrize("options", [("--animate", "avi"), ("--curves", "none.jsonl")])
def test_wrong_options_are_one_message(overtone, measured, options):
    code, text = overtone("report", measured, *options)
    assert code == 2
    assert text.strip().splitlines()[-1].startswith("error: ")


def test_a_folder_without_results_is_refused(overtone, tmp_path):
    code, text = overtone("report", tmp_path)
    assert (code, "overtone evaluate" in text) == (2, True)


@pytest.fixture
def evaluation(tmp_path):
    """Writes results without models into a folder."""

    def make(name, **changes):
        domain = {"shape": [8, 8], "extent": [1.0, 1.0], "boundaries": "periodic",
                  "fields": ["a"], "dt": 0.1}  # fmt: skip
        values = {"name": "flows", "split": "test", "fingerprint": "0" * 64, "trajectories": 2,
                  "start": 0, "domain": domain} | changes  # fmt: skip
        folder = tmp_path / name
        folder.mkdir(parents=True)
        results = Results(command=f"make {name}", seed=0, machine={}, data=Data(**values), steps=3,
                          models=())  # fmt: skip
        results.save(folder / "results.json")
        return folder

    return make


def test_several_are_put_side_by_side(evaluation, overtone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text = overtone("report", evaluation("a"), evaluation("b"), "--animate", "none")
    assert code == 0, text
    assert Results.load("comparison/results.json").command == "make a && make b"
    assert (tmp_path / "comparison" / "report.html").exists()
    assert not (tmp_path / "a" / "report.html").exists()


def test_other_data_is_one_message(evaluation, overtone, tmp_path):
    given = evaluation("a"), evaluation("b", split="valid")
    code, text = overtone("report", *given, "--out", tmp_path / "out")
    assert code == 2
    assert "split: test and valid" in text
    assert not (tmp_path / "out").exists()


def test_an_evaluation_is_never_replaced_by_a_report_of_several(evaluation, overtone):
    first, second = evaluation("a"), evaluation("b")
    before = (first / "results.json").read_bytes()
    code, text = overtone("report", first, second, "--out", first)
    assert code == 2
    assert "choose another folder" in " ".join(text.split())
    assert (first / "results.json").read_bytes() == before


def test_a_folder_without_results_is_named(evaluation, overtone, tmp_path):
    code, text = overtone("report", evaluation("a"), tmp_path / "missing")
    assert code == 2
    assert "missing" in text
