"""Which figures a report has."""

import re
from itertools import islice

import pytest

from overtone.evaluate.results import Told
from overtone.report.gallery import FIELDS, PICTURES, SECTIONS, drawings, slug, telling_keys

OVERVIEW = ["rollout_errors", "rollout_dial", "next_step_dial"]
DIAGNOSIS = [
    "artifact_map",
    "seam_growth",
    "harmonic_growth",
    "residual_spectra",
    "axis_spectra",
    "folded_maps",
    "next_step_bands",
    "band_errors",
    "physics",
]


@pytest.fixture
def names():
    return lambda *given: [drawing.name for drawing in drawings(*given)]


def test_all_figures_in_order_and_with_words(make_results, make_samples):
    panels = ["panels_0_tracer", "panels_1_pressure"]
    made = list(drawings(make_results(), make_samples(), {}))
    assert [drawing.name for drawing in made] == panels + OVERVIEW + DIAGNOSIS
    order = [PICTURES, FIELDS, *list(SECTIONS)[1:]]
    assert [order.index(d.section) for d in made] == sorted(order.index(d.section) for d in made)
    for drawing in made:
        assert drawing.title
        assert drawing.caption.endswith(".")
        assert drawing.alt.endswith(".")
        assert re.fullmatch(r"[a-z0-9_-]+", drawing.name)


@pytest.mark.slow
def test_three_axes_have_slices_and_projections(names, make_results, make_samples):
    found = names(make_results(ndim=3), make_samples(ndim=3), {})
    assert [name for name in found if "tracer" in name] == [
        "panels_0_tracer_slice",
        "panels_0_tracer_projection",
    ]


def test_without_samples_and_runs(names, make_model, make_results, make_samples):
    assert names(make_results(), make_samples(keys=[]), {}) == OVERVIEW + DIAGNOSIS
    assert names(make_results([make_model(schedules=())]), None, {}) == [
        "next_step_dial",
        "next_step_bands",
    ]


def test_several_models_are_compared_first_and_what_ran_off_is_named(make_model, make_results):
    models = [make_model(schedules=["16"]), make_model("other", schedules=["16"], factor=20.0)]
    made = {d.name: d for d in islice(drawings(make_results(models), None, {}), 4)}
    assert next(iter(made)) == "best_errors"
    assert "at a triangle: other with schedule 16." in made["rollout_errors"].caption
    assert "triangle" not in made["next_step_dial"].caption


def test_what_is_left_out_is_said(make_model, make_results, make_samples):
    schedules = [f"warmup:4:{n}" for n in range(5, 14)]
    samples = make_samples(
        keys=[("csm", s) for s in schedules], fields=tuple("abcde"), steps=(1, 2, 3, 4, 5)
    )
    results = make_results([make_model(schedules=schedules)])
    captions = {drawing.name: drawing.caption for drawing in drawings(results, samples, {})}
    said = captions["panels_0_a"]
    for words in ("4 of 9 predictions", "3 of 5 steps", "3 of 5 fields"):
        assert words in said
    assert "panels_3_d" not in captions
    assert "6 of 9 schedules" in captions["folded_maps"]


def test_predictions_are_spread_from_the_best_to_the_worst(make_model, make_results, make_samples):
    schedules = [f"warmup:4:{n}" for n in range(5, 14)]
    keys = [("csm", s) for s in schedules]
    results = make_results([make_model(schedules=schedules)])
    chosen = telling_keys(results, make_samples(keys=keys), 3)
    assert chosen == [keys[0], keys[4], keys[8]]


def test_what_models_tell_of_their_own_errors_is_drawn(make_model, make_results):
    """From the best to the worst; a rollout that tells nothing is left out."""
    told = Told(against="patch", error=(0.1, 0.2), value=(0.2, 0.2), low=(0.05, 0.1),
                high=(0.3, 0.4), horizon=1, patches=(4, (8, 4)))  # fmt: skip
    model = make_model(schedules=("16", "8", "4", "4-8", "4-8-16"))
    runs = [run.model_copy(update={"told": told}) for run in model.runs[:4]]
    results = make_results([model.model_copy(update={"runs": (*runs, model.runs[4])})])
    drawn = next(d for d in drawings(results, None, {}) if d.name == "error_bands")
    assert drawn.section == "errors"
    assert drawn.caption.endswith("Shown: 3 of 4 rollouts.")
    titles = [axes.get_title() for axes in drawn.figure.axes]
    assert [title for title in titles if title] == ["csm, 4-8", "csm, 8", "csm, 16"]
    assert [tick.get_text() for tick in drawn.figure.axes[-1].get_yticklabels()] == ["4", "8x4"]


def test_blocks_and_the_cycle_without_them_are_always_shown(make_model, make_results, make_samples):
    """The one is neither the best nor the worst of all, and an even choice would leave it out."""
    schedules = ["warmup:4:5", "8", "16", "warmup:4:6", "warmup:4:7", "4-8-16", "warmup:4:8"]
    keys = [("csm", s) for s in schedules]
    results = make_results([make_model(schedules=schedules)])
    chosen = telling_keys(results, make_samples(keys=keys), 4)
    assert chosen == [keys[n] for n in (0, 2, 5, 6)]


def test_names_make_safe_file_names():
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("模型") == "unnamed"
