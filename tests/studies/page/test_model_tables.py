"""Next-step errors by patch, and how the numbers came about."""

import numpy as np
import pytest

from studies.page.blocks import PageError
from studies.page.model_tables import column_name, forms
from studies.page.sources import Source

NAME = "shear-flow-mini"


def test_fixed_models_share_a_column(render, cells, make_comparison):
    shown = make_comparison()
    header, *rows = cells(render(f"next-step {NAME}", shear_flow_mini=shown))
    assert header == ["patch (tokens)", "csm", "fixed", "csm against fixed"]
    assert [row[0] for row in rows] == ["4 (256)", "8 (64)", "16 (16)"]
    for row, ours, theirs in zip(rows, shown.models[0].next_step, shown.models[1:], strict=True):
        (fixed,) = theirs.next_step
        assert float(row[1].split()[0]) == pytest.approx(ours.vrmse.value, rel=5e-3)
        assert float(row[2].split()[0]) == pytest.approx(fixed.vrmse.value, rel=5e-3)
        assert row[3] == "−50 %"


def test_the_best_of_each_patch_is_bold(render, cells, make_comparison, make_trained):
    models = [
        make_trained("csm", factor=1.5),
        make_trained("fixed4", schedules=["4"], patches=(4,)),
        make_trained("fixed16", schedules=["16"], patches=(16,), factor=3.0),
    ]
    text = render(f"next-step {NAME}", shear_flow_mini=make_comparison(models))
    _, *rows = cells(text, bold=True)
    assert [["**" in cell for cell in row[1:3]] for row in rows] == [
        [False, True],
        [False, False],  # nobody to compare with
        [True, False],
    ]
    assert rows[1][2:] == ["–", "–"]


def test_seeds_are_pooled(render, cells, make_comparison, make_trained):
    models = [make_trained("csm", seed, factor=f) for seed, f in enumerate((1.0, 2.0, 6.0))]
    text = render(f"next-step {NAME}", shear_flow_mini=make_comparison(models))
    assert cells(text)[1][1] == "0.120 (0.0400 to 0.240)"
    assert "Means of 3 seeds" in text


def test_another_rival_and_several_comparisons(render, cells, make_comparison, make_trained):
    one = make_comparison([make_trained("a"), make_trained("b", factor=0.5)])
    said = f"next-step {NAME} shear-flow-mini-axial models=b,a against=a"
    header, *rows = cells(render(said, shear_flow_mini=one, shear_flow_mini_axial=one))
    assert header == ["comparison", "patch (tokens)", "b", "a", "b against a"]
    assert [row[0] for row in rows] == [NAME] * 3 + ["shear-flow-mini-axial"] * 3
    assert {row[-1] for row in rows} == {"−50 %"}
    with pytest.raises(PageError, match="against is 'c'; expected one of b; a"):
        render(f"next-step {NAME} models=b,a against=c")


def test_what_was_tried_is_a_row_each_and_averaged(render, cells, make_comparison, make_trained):
    """Over schedules, patches and comparisons; the lowest of a column is bold."""
    one = make_comparison([make_trained("as it was"), make_trained("width: 96", factor=0.5)])
    two = make_comparison(
        [make_trained("as it was", factor=3), make_trained("width: 96", factor=0.5)]
    )
    shown = {"shear_flow_mini": one, "shear_flow_mini_axial": two}
    text = render(f"tried {NAME} shear-flow-mini-axial", **shown)
    header, first, second = cells(text)
    assert header[0] == "what is changed"
    assert [first[i] for i in (4, 6, 8)] == ["0.0 %"] * 3
    assert [second[i] for i in (4, 6, 8)] == ["−75 %"] * 3
    models = [m for results in (one, two) for m in results.models if m.name == "as it was"]
    expected = np.mean([run.vrmse_10.value for model in models for run in model.runs])
    assert float(first[5]) == pytest.approx(expected, rel=5e-3)
    assert cells(text, bold=True)[2][3].startswith("**")
    with pytest.raises(PageError, match="against is 'c'; expected one of as it was; width: 96"):
        render(f"tried {NAME} against=c", shear_flow_mini=one)


@pytest.mark.parametrize(
    ("model", "patch", "name"),
    [
        ("fixed16", "16", "fixed"),
        ("fixed16 (paper)", "16", "fixed (paper)"),
        ("cvit fixed4", "4", "cvit fixed"),
        ("fixed16", "1", "fixed16"),
        ("16", "16", "16"),
    ],
)
def test_columns_of_fixed_models(model, patch, name):
    assert column_name(model, patch) == name


def test_trainings(render, cells, make_comparison, make_trained):
    shown = make_comparison([make_trained("csm", 0), make_trained("csm", 3)])
    header, *rows = cells(render(f"training {NAME}", shear_flow_mini=shown))
    assert header == ["model", "seed", "parameters", "updates", "minutes", "PFLOP",
                      "validation VRMSE"]  # fmt: skip
    assert rows == [
        ["csm", seed, "1,234", "300", "1.66", "0.00307", "0.155"] for seed in ("0", "3")
    ]


def test_what_is_unknown_is_a_dash(render, cells, make_comparison, make_trained):
    blank = make_trained("persistence").model_copy(update={"training": {}, "seed": None})
    shown = make_comparison([blank])
    (row,) = cells(render(f"training {NAME}", shear_flow_mini=shown))[1:]
    assert row == ["persistence", "–", "1,234", "–", "–", "–", "–"]


def test_learning_rates_and_errors_without_rollouts(render, cells, make_comparison, make_trained):
    made = make_trained("csm")
    training = {**made.training, "lr": 2e-3, "validation": {"vrmse": {"4": 0.1, "8": 0.3},
                                                            "rollout": None}}  # fmt: skip
    models = [made.model_copy(update={"training": training}), make_trained("other")]
    header, *rows = cells(render(f"training {NAME}", shear_flow_mini=make_comparison(models)))
    assert header[6:] == ["learning rate", "validation VRMSE"]
    assert [row[6:] for row in rows] == [["0.002", "0.200"], ["–", "0.155"]]


def test_the_setting_is_a_paragraph(render, make_comparison):
    text = render(f"setting {NAME}", shear_flow_mini=make_comparison())
    for part in (
        "shear_flow, test split (fingerprint `01234567`), 12 trajectories on 64x96 cells",
        "fields tracer, pressure",
        "rollouts of 12 steps of dt = 0.1, with contexts from frame 16 on",
        "Machine: one core; threads 1; overtone 0.1.0, torch 2.13.0.",
        "Command: `make reproduce STUDY=shear-flow-mini`.",
    ):
        assert part in text
    assert "\n" not in text


def test_forms_have_the_scores_of_all_trials_and_what_was_chosen(cells, make_comparison):
    scores = {"adamw-0.004": 0.25, "muon-0.008": 0.125, "muon-0.008-unrolled": 0.5}
    blown = {"adamw-0.004": 0.75, "muon-0.008": "Infinity", "adamw-0.004-unrolled": 0.625}
    own = {
        "shear-flow-mini-csm-minutes-2": {"chosen": "muon-0.008", "scores": scores},
        "shear-flow-mini-fno-minutes-2": {"chosen": "adamw-0.004-unrolled", "scores": blown},
    }
    source = Source("shear-flow-mini-rivals-2", make_comparison([]), forms={"models": own})
    header, csm, fno = cells(forms([source], {}))
    assert header == ["model", "chosen", "adamw 0.004", "muon 0.008", "best unrolled"]
    assert csm == ["csm", "muon 0.008", "0.250", "0.125", "0.500"]
    assert fno == ["fno", "adamw 0.004 unrolled", "0.750", "–", "0.625"]
