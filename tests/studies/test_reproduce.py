import json
import shutil
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from overtone.errors import ConfigError, OvertoneError
from studies import reproduce as reproduce_module
from studies import tune
from studies.archive import Archive
from studies.reproduce import _write_json, reproduce
from studies.study import Comparison, Study, Training, Untrained

RECIPE = "kuramoto-sivashinsky-mini"


@pytest.fixture(scope="module")
def study(small):
    """Two models and persistence."""
    fixed = {**small, "model.tokenizer": "fixed", "model.patches": [16]}
    models = (
        Training("csm", RECIPE, small, label="flexible"),
        Training("fixed16", RECIPE, fixed, label="fixed"),
    )
    comparison = Comparison(
        "both", ("csm", "fixed16"), ("16", "4-8-16"), steps=4, start=2,
        untrained=(Untrained("persistence", "persistence"),), curves=("vrmse",),
    )  # fmt: skip
    return Study("small", "a test", models, (comparison,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(autouse=True)
def quicker(monkeypatch, request, folder):
    monkeypatch.setenv("OVERTONE_CACHE", str(folder / "cache"))
    request.getfixturevalue("first")
    monkeypatch.setattr("overtone.report.html.fill_report", stand_in)


@pytest.fixture(scope="module")
def first(folder, study):
    """The study from nothing; later tests run it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERTONE_CACHE", str(folder / "cache"))
        patch.setattr("overtone.report.html.fill_report", stand_in)
        return run(study, folder)


def stand_in(place, results, samples, *, curves):
    """For the report, which has tests of its own and takes long to draw."""
    assert all(path.exists() for path in curves.values())
    (place / "report.html").write_text("drawn")


def run(study, folder):
    console = Console(quiet=True)
    return reproduce(study, folder / "out", results=folder / "results", workers=1, console=console)


def text(results):
    """Comparable where a number is missing: NaN is not equal to itself."""
    return results.model_dump_json()


def stamps(folder):
    kept = [*folder.glob("out/runs/*/best/model.safetensors"), *folder.rglob("report.html")]
    return {path: path.stat().st_mtime_ns for path in kept}


def test_a_study_goes_from_nothing_to_numbers(folder, first):
    (results,) = first
    assert [model.name for model in results.models] == ["flexible", "fixed", "persistence"]
    assert {run.schedule for run in results.models[0].runs} == {"16", "4-8-16"}
    assert results.models[0].training["updates"] == 6
    assert results.models[1].training["updates"] == 2
    assert results.command == "make reproduce STUDY=small"
    assert [path.name for path in (folder / "results").iterdir()] == ["small.json"]
    copy = Archive.load(folder / "results" / "small.json").comparisons["both"]
    assert copy.data == results.data
    for model, kept in zip(results.models, copy.models, strict=True):
        assert kept.training.get("updates") == model.training.get("updates")
        for run, same in zip(model.runs, kept.runs, strict=True):
            assert same.vrmse_all.value == pytest.approx(run.vrmse_all.value, rel=1e-4)
            assert len(same.vrmse) == len(run.vrmse)
            assert run.spectra
            assert not same.spectra
    assert (folder / "out" / "small" / "both" / "report.html").read_text() == "drawn"


def test_what_is_there_is_not_done_again(study, folder, first):
    before = stamps(folder)
    assert [text(results) for results in run(study, folder)] == [text(results) for results in first]
    assert stamps(folder) == before


def test_another_start_is_another_evaluation(study, folder, first):
    (comparison,) = study.comparisons
    moved = replace(study, comparisons=(replace(comparison, start=3),))
    (found,) = run(moved, folder)
    assert found.data.start == 3
    assert run(study, folder)[0].data.start == 2


def test_a_patch_left_out_of_training_is_asked_for_where_the_study_says_so(study, folder, first):
    (comparison,) = study.comparisons
    asked = replace(comparison, schedules=("16", "2"), models=("csm",), untrained=())
    (found,) = run(replace(study, comparisons=(asked,)), folder)
    assert [own.schedule for own in found.models[0].runs] == ["16"]
    request = json.loads((folder / "out/small/both/request.json").read_text())
    assert "allow_untrained" not in request["comparison"]  # as it was before one could ask
    allowed = replace(asked, allow_untrained=True)
    (found,) = run(replace(study, comparisons=(allowed,)), folder)
    assert [own.schedule for own in found.models[0].runs] == ["16", "2"]
    assert [step.patch for step in found.models[0].next_step] == [4, 8, 16, 2]
    run(study, folder)  # as the next test expects it


def test_what_is_kept_elsewhere_is_no_other_evaluation(study, folder, first):
    before = stamps(folder)
    (comparison,) = study.comparisons
    run(replace(study, comparisons=(replace(comparison, curves=("spectra",)),)), folder)
    assert stamps(folder) == before
    (copy,) = Archive.load(folder / "results" / "small.json").comparisons.values()
    assert all(r.spectra and not r.vrmse for model in copy.models for r in model.runs)


def test_a_missing_stage_is_made_up_and_gives_the_same(study, folder, first):
    shutil.rmtree(folder / "out" / "runs" / "fixed16")
    (folder / "out" / "small" / "both" / "request.json").unlink()
    (again,) = run(study, folder)
    for old, new in zip(first[0].models, again.models, strict=True):
        assert [r.vrmse for r in new.runs] == [r.vrmse for r in old.runs]


def test_an_interrupted_training_is_resumed(study, folder, first):
    summary = folder / "out" / "runs" / "csm" / "summary.json"
    content = json.loads(summary.read_text())
    summary.write_text(json.dumps({**content, "status": "interrupted"}))
    run(study, folder)
    assert json.loads(summary.read_text())["status"] == "finished"
    assert "resuming from update 6" in (folder / "out" / "logs" / "csm.log").read_text()


def test_runs_of_another_configuration_are_left_alone(study, folder, first):
    before = stamps(folder)
    changed = tuple(t.renamed(t.name, {"optimizer.lr": 1e-5}) for t in study.trainings)
    with pytest.raises(ConfigError, match="other settings"):
        run(replace(study, trainings=changed), folder)
    assert stamps(folder) == before


def test_a_library_that_is_missing_is_told_before_anything_is_trained(study, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "neuralop", None)
    monkeypatch.setattr(reproduce_module, "run_jobs", lambda *_, **__: pytest.fail("trained"))
    plain = {key: v for key, v in study.trainings[0].changes.items() if "model." not in key}
    fno = Training("fno", RECIPE, {**plain, "model.name": "fno", "model.size": "mini"})
    others = study.trainings[0].renamed("new", {}), fno
    with pytest.raises(OvertoneError, match=r"need the neuraloperator library.*pip install"):
        run(replace(study, trainings=others), folder)


def test_forms_are_chosen_by_trials_and_kept_with_their_scores(study, folder, first, monkeypatch):
    few = {name: tune.FORMS[name] for name in ("adamw-0.002", "muon-0.008")}
    monkeypatch.setattr(tune, "PLAIN_FORMS", few)
    (csm, _), (comparison,) = study.trainings, study.comparisons
    tuned = replace(csm, name="tuned", form_of="tuned")
    comparison = replace(comparison, name="tuned", models=("tuned",))
    run(Study("forms", "a test", (tuned,), (comparison,)), folder)
    kept = Archive.load(folder / "results" / "forms.json").forms["models"]["tuned"]
    assert kept["chosen"] == min(kept["scores"], key=lambda form: kept["scores"][form])
    assert kept["scores"].keys() - few.keys() == {f"{min(few, key=kept['scores'].get)}-unrolled"}
    trained = json.loads((folder / "out" / "runs" / "tuned" / "config.json").read_text())
    assert trained["optimizer"]["lr"] == tune.FORMS[kept["chosen"]]["optimizer.lr"]
    assert trained["optimizer"]["kind"] == tune.FORMS[kept["chosen"]]["optimizer.kind"]
    assert trained["train"]["unroll"] == tune.FORMS[kept["chosen"]]["train.unroll"]


def test_a_packaged_model_is_taken_as_it_is(folder, monkeypatch):
    monkeypatch.setattr(reproduce_module, "run_jobs", lambda *_, **__: pytest.fail("it is trained"))
    training = Training("shear-flow-mini-csm", "shear-flow-mini", label="flexible", packaged=True)
    reproduce_module._train([training], folder, 1, Console(quiet=True))
    found = reproduce_module._candidate(training, folder)
    assert (found.name, found.model.patches) == ("flexible", (4, 8, 16))
    assert reproduce_module._run_of(replace(training, packaged=False), folder).parent.name == "runs"


def test_scores_of_trials_that_blew_up_are_strict_json(tmp_path):
    _write_json(tmp_path / "rates.json", {"scores": {"0.1": float("inf")}})
    text = (tmp_path / "rates.json").read_text()
    assert json.loads(text, parse_constant=lambda _: 1 / 0) == {"scores": {"0.1": "Infinity"}}
