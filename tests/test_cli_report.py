"""`overtone report`, as a user types it."""

import subprocess
import sys

import pytest
import torch

from overtone.domain import Domain
from overtone.results import Data, Estimate, ModelResult, NextStep, Results
from overtone.samples import Samples


@pytest.fixture
def evaluation(tmp_path):
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


def test_a_report_beside_the_results(overtone, evaluation):
    code, text = overtone("report", evaluation)
    assert (code, "wrote" in text) == (0, True)
    assert (evaluation / "report.html").is_file()
    assert (evaluation / "rollout.gif").is_file()


def test_a_report_elsewhere_without_samples(overtone, evaluation, tmp_path):
    (evaluation / "samples.safetensors").unlink()
    code, text = overtone("report", evaluation, "--out", tmp_path / "new", "--animate", "none")
    assert code == 0
    assert "no samples" in text
    assert {p.name for p in (tmp_path / "new").iterdir()} == {
        "report.html",
        "results.json",
        "figures",
    }


@pytest.mark.parametrize("options", [("--animate", "avi"), ("--curves", "none.jsonl")])
def test_wrong_options_are_one_message(overtone, evaluation, options):
    code, text = overtone("report", evaluation, *options)
    assert code == 2
    assert text.strip().splitlines()[-1].startswith("error: ")


def test_a_folder_without_results_is_refused(overtone, tmp_path):
    code, text = overtone("report", tmp_path)
    assert (code, "overtone evaluate" in text) == (2, True)


def test_help_does_not_load_matplotlib():
    code = "import sys, overtone.cli; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
