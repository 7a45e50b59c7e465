"""Tables of errors, artifacts, bands and physics."""

import pytest

from overtone.report.summary import interval, number
from studies.catalogue import SCHEDULES
from studies.page.blocks import PageError
from studies.page.rollout_tables import FAMILIES, family, steps_of

NAME = "shear-flow-mini"


def test_rollouts_are_those_of_the_file(render, cells, make_comparison):
    shown = make_comparison()
    header, *rows = cells(render(f"rollouts {NAME}", shear_flow_mini=shown))
    assert header == ["model", "schedule", "VRMSE, 10 steps", "VRMSE, all 12 steps", "tokens",
                      "s/step"]  # fmt: skip
    runs = [(model, run) for model in shown.models for run in model.runs]
    for row, (model, run) in zip(rows, runs, strict=True):
        assert row[:5] == [
            model.name, f"`{run.schedule}`", interval(run.vrmse_10), interval(run.vrmse_all),
            f"{run.tokens:,}",
        ]  # fmt: skip
        assert float(row[5]) == pytest.approx(run.seconds / 12, rel=5e-3)


def test_the_best_rollout_is_bold_and_no_blow_up(render, cells, make_comparison, make_trained):
    models = [make_trained("csm"), make_trained("bad", schedules=["4"], factor=0.01, blow_up=3)]
    text = render(f"rollouts {NAME}", shear_flow_mini=make_comparison(models))
    header, *rows = cells(text, bold=True)
    assert header[-1] == "blow-up"
    stressed = [row for row in rows if "**" in "".join(row)]
    assert [row[:2] for row in stressed] == [["csm", "`4`"]]
    assert stressed[0][2].startswith("**")
    assert stressed[0][3].startswith("**")
    assert rows[-1][-1] == "step 3"


def test_changes_against_a_rollout(render, cells, make_comparison):
    said = f"rollouts {NAME} models=csm,fixed16 schedules=16,4-8-16 relative=fixed16:16"
    header, *rows = cells(render(said, shear_flow_mini=make_comparison()))
    assert header.count("against fixed16 `16`") == 2
    assert len(header) == 8
    # csm has half the errors of fixed16, and its cycle a third of those.
    assert [(row[0], row[1], row[3], row[5]) for row in rows] == [
        ("csm", "`16`", "−50 %", "−50 %"),
        ("csm", "`4-8-16`", "−83 %", "−83 %"),
        ("fixed16", "`16`", "0 %", "0 %"),
    ]


def test_seeds_are_pooled_in_rollouts(render, cells, make_comparison, make_trained):
    models = [make_trained("csm", seed, ["16"], factor=f) for seed, f in enumerate((1.0, 2.0))]
    text = render(f"rollouts {NAME}", shear_flow_mini=make_comparison(models))
    assert cells(text)[1][2:4] == ["0.450 (0.300 to 0.600)", "0.675 (0.450 to 0.900)"]


def test_families_are_grouped_and_ranked(render, cells, make_comparison, make_trained):
    # Errors fall in the order of the schedules, so the last is the best.
    shown = make_comparison([make_trained("csm", 0, SCHEDULES)])
    text = render("schedules shear-flow-mini-schedules", shear_flow_mini_schedules=shown)
    header, *rows = cells(text, bold=True)
    assert header == ["family", "schedule", "rank", "VRMSE, all 12 steps", "VRMSE, 10 steps",
                      "tokens"]  # fmt: skip
    order = [name for name in FAMILIES.values() if name != "explicit"]
    assert list(dict.fromkeys(row[0] for row in rows)) == order
    ranks = {row[1].strip("`"): int(row[2]) for row in rows}
    assert ranks == {s: len(SCHEDULES) - i for i, s in enumerate(SCHEDULES)}
    for name in order:
        own = [int(row[2]) for row in rows if row[0] == name]
        assert own == sorted(own)
    assert [row[1] for row in rows if "**" in row[3]] == [f"`{SCHEDULES[-1]}`"]


@pytest.mark.parametrize(
    ("schedule", "name"),
    [("16", "constant"), ("16-4-8", "cycle"), ("4+shift:random:3", "shifted"),
     ("reverse:16:4-4:40", "reverse warm-up")],
)  # fmt: skip
def test_what_kind_a_schedule_is(schedule, name):
    assert family(schedule) == name


def test_models_are_compared_in_order(render, cells, make_comparison, make_trained, make_unpatched):
    models = [
        make_unpatched("unet", factor=0.4),
        make_trained("bad", 0, ["4"], factor=0.01, blow_up=3),
        make_trained("csm", 0, ["16", "4-8-16"]),
    ]
    name = "shear-flow-mini-rivals-2"
    header, *rows = cells(
        render(f"comparison {name}", shear_flow_mini_rivals_2=make_comparison(models))
    )
    assert header[:5] == ["model", "parameters", "updates", "CPU minutes", "next step"]
    assert [row[0] for row in rows] == ["unet", "csm, `4-8-16`", "csm, `16`", "bad, `4`"]
    assert [row[1:4] for row in rows] == [["1,234", "300", "1.50"]] * 4
    # One number for each patch that the schedule uses.
    assert [row[4] for row in rows] == ["0.0400", "0.0400 / 0.0800 / 0.160", "0.160", "0.000400"]
    assert rows[0][5] == interval(models[0].runs[0].vrmse_10)


def test_a_matrix_of_one_quantity(render, cells, make_comparison):
    shown = make_comparison()
    said = f"matrix {NAME} models=csm,fixed16 schedules=16,4-8-16"
    header, *rows = cells(render(said, shear_flow_mini=shown), bold=True)
    assert header == ["schedule", "tokens", "csm", "fixed16"]
    csm, fixed = shown.models[0].runs, shown.models[3].runs
    assert rows[0][2].replace("**", "") == interval(csm[0].vrmse_all)
    assert rows[0][3] == interval(fixed[0].vrmse_all)
    assert rows[0][2].startswith("**")
    assert rows[1][2:] == [interval(csm[2].vrmse_all), "–"]
    last = cells(render(f"{said} quantity=vrmse@12"))[1][2]
    assert last == interval(csm[0].vrmse[-1])
    with pytest.raises(PageError, match="no quantity 'x'"):
        render(f"{said} quantity=x")


def test_artifacts_are_those_of_the_file(render, cells, make_comparison):
    shown = make_comparison()
    said = f"artifacts {NAME} models=fixed16 schedules=16"
    header, *rows = cells(render(said, shear_flow_mini=shown))
    assert header[2:5] == ["excess at step 1", "excess at step 10", "excess at step 12"]
    run = shown.models[3].runs[0]
    for row, harmonics in zip(rows, reversed(run.harmonics), strict=True):
        assert row[:2] == ["fixed16, `16`", str(harmonics.patch)]
        assert row[2:5] == [interval(harmonics.excess[step - 1]) for step in (1, 10, 12)]
        assert row[5:] == [f"{number(harmonics.overall)} (p < 0.0001)"]


def test_chosen_steps_and_periods(render, cells, make_comparison):
    said = f"artifacts {NAME} models=csm schedules=4 steps=2,last periods=8"
    header, *rows = cells(render(said, shear_flow_mini=make_comparison()))
    assert header[2:4] == ["excess at step 2", "excess at step 12"]
    assert [row[1] for row in rows] == ["8"]
    with pytest.raises(PageError, match="no harmonics of periods 5"):
        render(f"artifacts {NAME} periods=5")


def test_worst_seams_by_step_instead_of_excess(render, cells, make_comparison):
    shown = make_comparison()
    said = f"artifacts {NAME} models=fixed16 schedules=16 quantity=worst_seams steps=1,last"
    header, *rows = cells(render(said, shear_flow_mini=shown))
    assert header[2:4] == ["worst seams at step 1", "worst seams at step 12"]
    for row, harmonics in zip(rows, reversed(shown.models[3].runs[0].harmonics), strict=True):
        assert row[2:4] == [interval(harmonics.worst_seams[step - 1]) for step in (1, 12)]
    with pytest.raises(PageError, match="quantity is 'lines'; expected one of excess, worst_seams"):
        render(f"artifacts {NAME} quantity=lines")


def test_seams_of_the_grid_in_use_and_of_the_worst(render, cells, make_comparison):
    shown = make_comparison()
    said = f"seams {NAME} models=fixed16 schedules=16 steps=1,last period=8"
    header, row = cells(render(said, shear_flow_mini=shown))
    assert header[1:] == ["seams at step 1", "seams at step 12",
                          "worst of 8, step 1", "worst of 8, step 12"]  # fmt: skip
    run = shown.models[3].runs[0]
    (eight,) = [h for h in run.harmonics if h.patch == 8]
    curves = (run.seams, eight.worst_seams)
    assert row[1:] == [interval(curve[step - 1]) for curve in curves for step in (1, 12)]


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


def test_models_are_in_order_of_their_first_ten_steps(render, cells, make_comparison, make_trained):
    """Over all steps the order is the other one."""
    models = []
    for name, ten, every in (("slow", 0.2, 0.4), ("fast", 0.1, 0.9)):
        model = make_trained(name, 0, ["16"])
        (run,) = model.runs
        errors = {"vrmse_10": run.vrmse_10.model_copy(update={"value": ten}),
                  "vrmse_all": run.vrmse_all.model_copy(update={"value": every})}  # fmt: skip
        models.append(model.model_copy(update={"runs": (run.model_copy(update=errors),)}))
    shown = make_comparison(models)
    rows = cells(render(f"comparison {NAME}", shear_flow_mini=shown))[1:]
    assert [row[0] for row in rows] == ["fast, `16`", "slow, `16`"]


def test_in_a_matrix_what_blew_up_is_never_the_best(render, cells, make_comparison, make_trained):
    """However small its error was up to there."""
    models = [
        make_trained("bad", 0, ["16"], factor=0.01, blow_up=4),
        make_trained("good", 0, ["16"]),
        make_trained("worse", 0, ["16"], factor=2.0),
    ]
    text = render(f"matrix {NAME}", shear_flow_mini=make_comparison(models))
    header, row = cells(text, bold=True)
    marked = [name for name, cell in zip(header, row, strict=True) if cell.startswith("**")]
    assert marked == ["good"]
