"""The schema of results.json, and the frames that are kept beside it."""

import json
import math
from pathlib import Path

import pytest
import torch

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.evaluate.results import (
    FORMAT,
    Data,
    Estimate,
    ModelResult,
    NextStep,
    Record,
    Results,
    Samples,
)


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


def test_numbers_that_are_not_finite_survive(tmp_path):
    bad = Estimate(value=math.nan, low=-math.inf, high=math.inf)
    again = Estimate.model_validate_json(bad.model_dump_json())
    assert math.isnan(again.value)
    assert again.high == math.inf


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


def test_samples_are_read_as_they_were_saved(tmp_path):
    domain = Domain((4, 6), (1.0, 2.0), "periodic", ("u", "v"), 0.1)
    truth, prediction = torch.randn(2, 3, 2, 4, 6)
    samples = Samples(domain, (1, 5, 9), truth, {("model", "4-8"): prediction})
    samples.save(tmp_path / "samples.safetensors")
    again = Samples.load(tmp_path / "samples.safetensors")
    assert (again.domain, again.steps) == (domain, (1, 5, 9))
    assert torch.equal(again.truth, truth)
    assert torch.equal(again.predictions["model", "4-8"], prediction)


def test_files_without_samples_are_refused(tmp_path):
    (tmp_path / "x").write_text("no tensors")
    with pytest.raises(DataError, match="samples"):
        Samples.load(tmp_path / "x")


def test_seams_of_a_grid_at_rest_are_kept_where_the_grid_was_at_rest(tmp_path):
    """The first version measured every schedule at a grid that never moves."""
    content, path = json.loads(example().model_dump_json()), tmp_path / "old.json"
    content["models"][0]["runs"] = [older_run(s) for s in ("16", "16+shift", "4-8-16")]
    path.write_text(json.dumps(content))
    still, shifted, cycle = Results.load(path).models[0].runs
    assert [e.value for e in still.seams] == [7.0, 8.0]
    assert shifted.seams == cycle.seams == ()
    assert all(h.worst_seams == () for run in (still, shifted, cycle) for h in run.harmonics)
    Results.load(path).save(tmp_path / "again.json")
    assert Results.load(tmp_path / "again.json") == Results.load(path)
