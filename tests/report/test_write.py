"""The report's folder."""

import json
import math
import re

import pytest

from overtone.errors import OvertoneError
from overtone.report import write, write_report
from overtone.report.write import MAX_GIF
from overtone.results import Results


def check_folder(out, results):
    """One page under 10 MB with every figure, which is also there as PNG and SVG."""
    page = out / "report.html"
    assert page.stat().st_size < 10_000_000
    figures = {path.name for path in (out / "figures").iterdir()}
    stems = {name.rpartition(".")[0] for name in figures}
    assert figures == {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    text = page.read_text()
    assert text.count("<figure") == len(stems) + (out / "rollout.gif").exists()
    assert Results.load(out / "results.json") == results
    return text


def test_a_small_report(make_results, make_samples, tmp_path):
    results = make_results(schedules=["4-8-16"])
    samples = make_samples(keys=[("csm", "4-8-16")], fields=("tracer",), steps=(1, 12))
    assert write_report(results, samples, tmp_path) == tmp_path / "report.html"
    text = check_folder(tmp_path, results)
    assert "data:image/gif" in text
    assert (tmp_path / "rollout.gif").stat().st_size < MAX_GIF


@pytest.mark.slow
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_report_in_any_dimension(make_results, make_samples, tmp_path, ndim):
    results = make_results(ndim=ndim)
    write_report(results, make_samples(ndim), tmp_path)
    assert "data:image" in check_folder(tmp_path, results)


@pytest.mark.slow
def test_many_models_and_schedules_stay_small(make_model, make_results, make_samples, tmp_path):
    schedules = ["16", "16+shift", "4-8-16", *(f"warmup:4:{n}" for n in range(5, 10))]
    models = [make_model(name, seed, schedules) for name in "abc" for seed in (0, 1)]
    samples = make_samples(keys=[(name, s) for name in "abc" for s in schedules])
    results = make_results(models)
    write_report(results, samples, tmp_path, animation="none")
    check_folder(tmp_path, results)
    assert not (tmp_path / "rollout.gif").exists()


def test_a_report_of_what_went_wrong(make_model, make_results, alter_run, tmp_path):
    """A blow-up at the first step, NaN, one trajectory, one schedule, no samples."""
    model = make_model(schedules=["16"])
    nan = model.runs[0].vrmse_all.model_copy(update={"value": math.nan})
    model = alter_run(
        model, vrmse=(), vrmse_10=nan, vrmse_all=nan, bsnmse={}, blow_up=1, spectra=(),
        physics={"mass": ()}, harmonics=(),
    )  # fmt: skip
    text = write_report(make_results([model], trajectories=1), None, tmp_path).read_text()
    assert "(step 1)" in text
    assert "One trajectory only" in text
    assert "nan" not in re.sub(r'base64,[^"]+', "", text).lower()


def test_large_animations_are_written_but_not_shown(
    make_model, make_results, make_samples, tmp_path, monkeypatch
):
    monkeypatch.setattr(write, "MAX_GIF", 100)
    samples = make_samples(keys=[("csm", "16")], fields=("tracer",), steps=(1,))
    path = write_report(make_results([make_model(schedules=())]), samples, tmp_path)
    assert "data:image/gif" not in path.read_text()
    assert (tmp_path / "rollout.gif").exists()


def test_curves_are_part_of_it(make_model, make_results, tmp_path):
    record = {"kind": "train", "losses": {"8": 0.5}, "lr": 0.1}
    lines = [json.dumps(record | {"update": update}) for update in range(9)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    results = make_results([make_model(schedules=())])
    path = write_report(results, None, tmp_path, curves={"csm": tmp_path / "metrics.jsonl"})
    assert "Training of csm" in path.read_text()


def test_other_animations_are_refused(make_results, tmp_path):
    with pytest.raises(OvertoneError, match="gif"):
        write_report(make_results(), None, tmp_path, animation="avi")
