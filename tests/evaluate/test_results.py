"""The schema of results.json."""

import json
import math
from pathlib import Path

import pytest

from overtone.errors import DataError
from overtone.evaluate.results import FORMAT, Data, Estimate, ModelResult, NextStep, Record, Results


def example():
    estimate = Estimate(value=0.5, low=0.4, high=0.6)
    step = NextStep(patch=4, vrmse=estimate, fields={"u": estimate}, tokens=16, flops=9, seconds=1)
    model = ModelResult(
        name="m", seed=None, num_parameters=3, config={}, training={}, next_step=(step,), runs=()
    )
    data = Data(name="d", split="test", fingerprint="0", trajectories=2, start=0, domain={})
    return Results(command="c", seed=0, machine={}, data=data, steps=4, models=(model,))


def older_run(schedule):
    """A rollout of two steps as the first version wrote it."""
    one, nothing = {"value": 0.5, "low": 0.4, "high": 0.6}, {"low": 0.0, "high": 9.0}
    harmonics = {"excess": [one, one], "exponent": 1.0, "overall": 2.0, "p_value": 0.5,
                 "share": 0.1, "cell": []}  # fmt: skip
    seams = {4: (1.0, 2.0), 16: (7.0, 8.0)}
    parts = [{**harmonics, "patch": patch, "seams": [{"value": v, **nothing} for v in values]}
             for patch, values in seams.items()]  # fmt: skip
    return {"schedule": schedule, "vrmse": [one, one], "vrmse_10": one, "vrmse_all": one,
            "fields": {}, "bsnmse": {}, "harmonics": parts, "spectra": [], "physics": {},
            "tokens": 1, "flops": 1, "seconds": 1.0}  # fmt: skip


def old_json(schedules):
    """Results of the first version, as text."""
    content = json.loads(example().to_json())
    content["models"][0]["runs"] = [older_run(schedule) for schedule in schedules]
    return json.dumps(content)


def test_what_is_saved_is_what_is_read(tmp_path):
    example().save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == example()


def test_a_compact_file_has_five_digits(tmp_path):
    estimate = Estimate(value=0.123456789, low=0.1, high=math.inf)
    results = example()
    model = results.models[0].model_copy(
        update={"training": {"error": estimate.value, "n": 1234567}}
    )
    results = results.model_copy(update={"models": (model,)})
    results.save(tmp_path / "results.json", compact=True)
    found = Results.load(tmp_path / "results.json")
    assert found.models[0].training == {"error": 0.12346, "n": 1234567}
    assert found.data == results.data
    assert len((tmp_path / "results.json").read_text().splitlines()) == 1


def strict(text):
    """The content of JSON, as readers take it that know no NaN."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def blown_up():
    """Results with all numbers that are not finite, and a cell that has some."""
    bad = Estimate(value=math.nan, low=-math.inf, high=math.inf)
    results = example()
    run = Results.model_validate_json(old_json(["16"])).models[0].runs[0]
    harmonics = run.harmonics[0].model_copy(update={"cell": [[math.nan, 1.0], [math.inf, 2.0]]})
    run = run.model_copy(update={"vrmse_all": bad, "harmonics": (harmonics,)})
    training = {"best": math.nan, "losses": [math.inf]}
    model = results.models[0].model_copy(update={"runs": (run,), "training": training})
    return results.model_copy(update={"models": (model,)})


@pytest.mark.parametrize("compact", [False, True])
def test_numbers_that_are_not_finite_are_strict_json_and_survive(tmp_path, compact):
    path = tmp_path / "results.json"
    blown_up().save(path, compact=compact)
    written = strict(path.read_text())["models"][0]["runs"][0]
    assert written["vrmse_all"] == {"value": "NaN", "low": "-Infinity", "high": "Infinity"}
    run = Results.load(path).models[0].runs[0]
    assert math.isnan(run.vrmse_all.value)
    assert (run.vrmse_all.low, run.vrmse_all.high) == (-math.inf, math.inf)
    (first, one), (infinite, two) = run.harmonics[0].cell
    assert math.isnan(first)
    assert (one, infinite, two) == (1.0, math.inf, 2.0)
    strict(run.model_dump_json())


def test_files_of_older_versions_with_bare_words_are_read(tmp_path):
    blown_up().save(tmp_path / "new.json")
    text = (tmp_path / "new.json").read_text()
    for word in ("NaN", "-Infinity", "Infinity"):
        text = text.replace(f'"{word}"', word)
    assert 'high": Infinity' in text
    (tmp_path / "old.json").write_text(text)
    Results.load(tmp_path / "old.json").save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "new.json").read_bytes()


def test_the_schema_knows_numbers_that_are_not_finite():
    number = Results.model_json_schema()["$defs"]["Estimate"]["properties"]["high"]
    assert number["anyOf"] == [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]


def test_results_of_the_repository_are_strict_json():
    paths = sorted((Path(__file__).parents[2] / "results").glob("*.json"))
    assert len(paths) > 15
    for path in paths:
        strict(path.read_text())


def test_names_that_are_no_unicode_are_saved_escaped(tmp_path):
    """A folder's name may be any bytes."""
    results = example()
    data = results.data.model_copy(update={"name": "d\udcff", "domain": {"fields": ["u\udcfe"]}})
    model = results.models[0].model_copy(update={"name": "m\udcff", "training": {"\udcff": 1}})
    results = results.model_copy(update={"data": data, "models": (model,)})
    results.save(tmp_path / "results.json")
    found = Results.load(tmp_path / "results.json")
    assert (found.data.name, found.models[0].name) == (r"d\xff", r"m\xff")
    assert found.data.domain == {"fields": [r"u\xfe"]}


def test_a_full_disk_keeps_the_old_file_and_names_it(tmp_path, full_disk):
    path, results = tmp_path / "kept", example()
    results.save(path)
    before = path.read_bytes()
    with full_disk(100), pytest.raises((OSError, DataError), match="kept") as caught:
        results.save(path)
    assert "tmp" not in str(caught.value).rpartition("/")[2]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["{}", "not json", '{"format": "other"}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match="overtone evaluate"):
        Results.load(tmp_path / "x.json")


def test_the_docs_name_every_field():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "results.md").read_text()
    records = [r for r in Record.__subclasses__() if r.__module__ == Record.__module__]
    assert len(records) > 7
    for record in records:
        for name in record.model_fields:
            assert f"`{name}`" in page, f"{record.__name__}.{name}"
    assert f"`{FORMAT}`" in page


def test_seams_of_a_grid_at_rest_are_kept_where_the_grid_was_at_rest(tmp_path):
    """The first version measured every schedule at a grid that never moves."""
    path = tmp_path / "old.json"
    path.write_text(old_json(["16", "16+shift", "4-8-16"]))
    still, shifted, cycle = Results.load(path).models[0].runs
    assert [e.value for e in still.seams] == [7.0, 8.0]
    assert shifted.seams == cycle.seams == ()
    assert all(h.worst_seams == () for run in (still, shifted, cycle) for h in run.harmonics)
    Results.load(path).save(tmp_path / "again.json")
    assert Results.load(tmp_path / "again.json") == Results.load(path)
