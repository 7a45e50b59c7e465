"""A study's file: what it keeps, that it can be read back, and the files of this repository."""

import json
import math
from pathlib import Path

import pytest

from overtone.errors import DataError
from overtone.evaluate.results import Estimate
from studies.archive import Archive, thinned
from studies.catalogue import DRAWN, SHEAR, STUDIES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
MAX_BYTES = 5_000_000
"""Of all of `results/`, which every clone carries."""


@pytest.fixture(scope="module")
def archive():
    """The main study's, which keeps the most."""
    return Archive.load(RESULTS / f"{SHEAR}.json")


@pytest.fixture(scope="module")
def results(archive):
    """A comparison with curves and spectra."""
    return archive.comparisons[SHEAR]


def first_run(results):
    return results.models[0].runs[0]


def with_run(results, **changes):
    """The results of one model and one rollout, with other numbers in it."""
    run = first_run(results).model_copy(update=changes)
    model = results.models[0].model_copy(update={"runs": (run,)})
    return results.model_copy(update={"models": (model,)})


def test_reading_and_writing_changes_nothing(archive, tmp_path):
    archive.save(tmp_path / "again.json")
    again = Archive.load(tmp_path / "again.json")
    assert again.forms == archive.forms
    for name, results in archive.comparisons.items():
        assert again.comparisons[name].model_dump_json() == results.model_dump_json()
    again.save(tmp_path / "once-more.json")
    assert (tmp_path / "once-more.json").read_bytes() == (tmp_path / "again.json").read_bytes()


def test_numbers_have_five_digits_and_counts_all(results, tmp_path):
    curve = (Estimate(value=1.23456789, low=-math.inf, high=math.nan),)
    shown = with_run(results, vrmse=curve, seconds=0.000123456789, flops=123456789)
    plans = {"a": {"schedule": "4-8", "options": [{"value": 1.0, "low": 0.5, "high": 2.0}]}}
    Archive({"a": shown}, {"scores": [2 / 3, math.inf]}, plans).save(tmp_path / "study.json")
    assert Archive.load(tmp_path / "study.json").plans == plans
    text = (tmp_path / "study.json").read_text()
    assert json.loads(text, parse_constant=lambda _: 1 / 0)  # strict JSON
    read = Archive.load(tmp_path / "study.json")
    run = first_run(read.comparisons["a"])
    (only,) = run.vrmse
    assert (only.value, only.low, math.isnan(only.high)) == (1.2346, -math.inf, True)
    assert (run.seconds, run.flops) == (0.00012346, 123456789)
    assert read.forms == {"scores": [0.66667, "Infinity"]}


@pytest.mark.parametrize("length", [0, 1, 3])
def test_curves_of_any_length_come_back(results, tmp_path, length):
    curve = tuple(Estimate(value=i, low=i - 1, high=i + 1) for i in range(length))
    shown = with_run(results, vrmse=curve, physics={"mass": curve})
    Archive({"a": shown}).save(tmp_path / "study.json")
    run = first_run(Archive.load(tmp_path / "study.json").comparisons["a"])
    assert (run.vrmse, run.physics) == (curve, {"mass": curve})


def test_only_what_is_asked_for_is_kept_of_a_rollout(results):
    whole, kept = first_run(results), first_run(thinned(results, ("vrmse", "worst_seams")))
    assert kept.vrmse == whole.vrmse
    assert not kept.spectra
    assert [h.worst_seams for h in kept.harmonics] == [h.worst_seams for h in whole.harmonics]
    assert not any(h.excess or h.cell for h in kept.harmonics)
    assert [(h.patch, h.overall) for h in kept.harmonics] == [
        (h.patch, h.overall) for h in whole.harmonics
    ]
    assert (kept.vrmse_all, kept.fields, kept.bsnmse) == (
        whole.vrmse_all, whole.fields, whole.bsnmse,
    )  # fmt: skip
    assert kept.physics == dict.fromkeys(whole.physics, ())


def test_what_was_kept_is_not_thinned_further(results):
    assert thinned(results, DRAWN).model_dump_json() == results.model_dump_json()
    bare = thinned(results, ())
    assert len(bare.model_dump_json()) < len(results.model_dump_json()) / 4
    assert [model.next_step for model in bare.models] == [m.next_step for m in results.models]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "overtone-results-1"}'])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(DataError, match="can't be read as the numbers of a study"):
        Archive.load(tmp_path / "study.json")


RUN = [study for study in STUDIES.values() if (RESULTS / f"{study.name}.json").exists()]


@pytest.mark.parametrize("study", RUN, ids=lambda s: s.name)
def test_the_repository_has_each_study_that_was_run_in_one_file(study):
    kept = Archive.load(RESULTS / f"{study.name}.json")
    assert list(kept.comparisons) == [c.name for c in study.comparisons]
    tuned = {t.name for t in study.trainings if t.form_of == t.name}
    assert set(kept.forms.get("models", {})) >= tuned
    for comparison in study.comparisons:
        own = kept.comparisons[comparison.name]
        assert thinned(own, comparison.curves).model_dump_json() == own.model_dump_json()


def test_results_are_small_and_all_of_use():
    """A file is a study's, a command's or a benchmark's, or named by a page."""
    files = sorted(RESULTS.iterdir())
    assert sum(path.stat().st_size for path in files) <= MAX_BYTES
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    code = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "studies").glob("*.py")]
    said = "".join(path.read_text() for path in [*pages, *code])
    for path in files:
        assert path.stem in STUDIES or f"results/{path.name}" in said, path.name
        assert json.loads(path.read_text(), parse_constant=lambda _: 1 / 0)  # strict JSON
