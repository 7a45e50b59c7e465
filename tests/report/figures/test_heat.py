"""Grid artifacts at a glance."""

import pytest

from overtone.report.figures.heat import artifact_map
from overtone.report.style import NothingToDraw


def cells(axes):
    return [text.get_text() for text in axes.texts]


def test_a_row_for_each_rollout_and_a_column_for_each_period(make_model, make_results):
    results = make_results([make_model(), make_model("other", schedules=["16"])])
    left, right, *bars = artifact_map(results).axes
    assert len(bars) == 2
    assert left.images[0].get_array().shape == (5, 3)
    assert right.images[0].get_array().shape == (5, 4)
    names = [label.get_text().split() for label in left.get_yticklabels()]
    assert names == [["csm", "16"], ["csm", "16+shift"], ["csm", "4-8-16"], ["csm", "4"],
                     ["other", "16"]]  # fmt: skip
    assert [label.get_text() for label in left.get_xticklabels()] == [
        "period 4", "period 8", "period 16"
    ]  # fmt: skip
    runs = [run for model in results.models for run in model.runs]
    for i, run in enumerate(runs):
        for j, found in enumerate(run.harmonics):
            star = "*" if found.p_value < 0.01 else ""
            assert cells(left)[3 * i + j] == f"{found.overall:.1f}{star}"
            assert cells(right)[4 * i + j + 1] == f"{found.worst_seams[-1].value:.1f}"
        assert cells(right)[4 * i] == f"{run.seams[-1].value:.1f}"
    assert {"*" in cell for cell in cells(left)} == {True, False}
    assert all("(dB)" in bar.get_xlabel() for bar in bars)


def test_what_was_not_measured_is_a_dash(make_model, make_results, alter_run):
    other = make_model("other", schedules=["16"])
    other = alter_run(other, harmonics=other.runs[0].harmonics[:1], seams=())
    left, right, *_ = artifact_map(make_results([make_model(), other])).axes
    assert cells(left)[-2:] == ["–", "–"]
    assert cells(right)[-4] == "–"


def test_small_differences_are_not_bright(make_results):
    left, *_ = artifact_map(make_results(factor=1e-3)).axes
    assert left.images[0].norm.vmax == 3.0


def test_what_ran_off_does_not_stretch_the_scale(make_model, make_results):
    blown = make_model("blown", schedules=["16"], factor=50.0)
    before, *_ = artifact_map(make_results()).axes
    after, *_ = artifact_map(make_results([make_model(), blown])).axes
    assert after.images[0].norm.vmax == before.images[0].norm.vmax == 18.0
    alone, *_ = artifact_map(make_results([blown])).axes
    assert alone.images[0].norm.vmax == 900.0


def test_nothing_was_searched(make_model, make_results, alter_run):
    with pytest.raises(NothingToDraw):
        artifact_map(make_results([alter_run(make_model(), harmonics=(), seams=())]))
