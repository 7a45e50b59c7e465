"""`overtone report` of several evaluations; that of one is in test_evaluate.py."""

import pytest

from overtone.evaluate.results import Data, Results


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
