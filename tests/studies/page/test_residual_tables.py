"""Tables of artifacts, bands and physics."""

import pytest

from overtone.report.summary import interval, number
from studies.page.blocks import PageError
from studies.page.residual_tables import steps_of

NAME = "shear-flow-mini"


def test_artifacts_are_those_of_the_file(render, cells, make_comparison):
    shown = make_comparison()
    said = f"artifacts {NAME} models=fixed16 schedules=16"
    header, *rows = cells(render(said, shear_flow_mini=shown))
    assert header[2:5] == ["seams at step 1", "seams at step 10", "seams at step 12"]
    run = shown.models[3].runs[0]
    for row, harmonics in zip(rows, reversed(run.harmonics), strict=True):
        assert row[:2] == ["fixed16, `16`", str(harmonics.patch)]
        assert row[2:5] == [interval(harmonics.seams[step - 1]) for step in (1, 10, 12)]
        assert row[5:] == [f"{number(harmonics.overall)} (p < 0.0001)"]


def test_chosen_steps_and_periods(render, cells, make_comparison):
    said = f"artifacts {NAME} models=csm schedules=4 steps=2,last periods=8"
    header, *rows = cells(render(said, shear_flow_mini=make_comparison()))
    assert header[2:4] == ["seams at step 2", "seams at step 12"]
    assert [row[1] for row in rows] == ["8"]
    with pytest.raises(PageError, match="no harmonics of periods 5"):
        render(f"artifacts {NAME} periods=5")


def test_excess_by_step_instead_of_seams(render, cells, make_comparison):
    shown = make_comparison()
    said = f"artifacts {NAME} models=fixed16 schedules=16 quantity=excess steps=1,last"
    header, *rows = cells(render(said, shear_flow_mini=shown))
    assert header[2:4] == ["excess at step 1", "excess at step 12"]
    for row, harmonics in zip(rows, reversed(shown.models[3].runs[0].harmonics), strict=True):
        assert row[2:4] == [interval(harmonics.excess[step - 1]) for step in (1, 12)]
    with pytest.raises(PageError, match="quantity is 'lines'; expected one of seams, excess"):
        render(f"artifacts {NAME} quantity=lines")


def test_a_step_after_the_blow_up_is_a_dash(render, cells, make_comparison, make_trained):
    shown = make_comparison([make_trained("csm", 0, ["16"], blow_up=5)])
    rows = cells(render(f"artifacts {NAME}", shear_flow_mini=shown))[1:]
    assert [row[4] for row in rows] == ["–"] * 3
    (row,) = cells(render(f"physics {NAME}"))[1:]
    assert row[-1] == "–"


def test_steps():
    usual = ("1", "10", "25", "last")
    assert steps_of({}, usual, 50) == [1, 10, 25, 50]
    assert steps_of({}, usual, 12) == [1, 10, 12]
    assert steps_of({"steps": ("last", "3")}, usual, 12) == [3, 12]
    with pytest.raises(PageError, match="steps is 1,end"):
        steps_of({"steps": ("1", "end")}, usual, 12)


def test_bands(render, cells, make_comparison):
    shown = make_comparison()
    header, *rows = cells(render(f"bands {NAME} models=csm", shear_flow_mini=shown), bold=True)
    assert header[2:] == ["BSNMSE, low", "BSNMSE, mid", "BSNMSE, high"]
    for row, run in zip(rows, shown.models[0].runs, strict=True):
        shown_cells = [cell.replace("**", "") for cell in row[2:]]
        assert shown_cells == [interval(run.bsnmse[band]) for band in ("low", "mid", "high")]
    assert [i for i, row in enumerate(rows) if "**" in row[2]] == [4]


def test_physics(render, cells, make_comparison):
    shown = make_comparison(steps=50)
    said = f"physics {NAME} models=csm schedules=16,4"
    header, *rows = cells(render(said, shear_flow_mini=shown), bold=True)
    assert header == ["law", "model", "schedule", "step 1", "step 10", "step 25", "step 50"]
    runs = shown.models[0].runs
    for row, run in zip(rows, (runs[0], runs[4]), strict=True):
        curve = run.physics["divergence"]
        shown_cells = [cell.replace("**", "") for cell in row[3:]]
        assert shown_cells == [interval(curve[step - 1]) for step in (1, 10, 25, 50)]
    assert ["**" in row[3] for row in rows] == [False, True]
    with pytest.raises(PageError, match="no law 'mass'; there are divergence"):
        render(f"physics {NAME} laws=mass")


def test_each_law_has_its_best(render, cells, make_comparison, make_trained):
    model = make_trained("csm", 0, ["16", "4"])
    first, second = (run.physics["divergence"] for run in model.runs)
    runs = (
        model.runs[0].model_copy(update={"physics": {"a": first, "b": second}}),
        model.runs[1].model_copy(update={"physics": {"a": second, "b": first}}),
    )
    shown = make_comparison([model.model_copy(update={"runs": runs})])
    _, *rows = cells(render(f"physics {NAME}", shear_flow_mini=shown), bold=True)
    assert [(row[0], row[2]) for row in rows if "**" in row[3]] == [("a", "`4`"), ("b", "`16`")]
