"""The report's tables, and the one in the terminal."""

import math

import pytest
from rich.console import Console

from overtone.report.tables import (
    _seconds,
    artifact_table,
    band_table,
    field_table,
    lowest,
    next_step_table,
    results_table,
    rollout_table,
    tables,
)


def test_every_row_has_every_column(make_model, make_results):
    made = tables(make_results([make_model(), make_model("other", blow_up=4)]))
    assert len(made) == 5
    for table in made:
        assert all(len(row) == len(table.header) for row in table.rows)
    assert [len(table.rows) for table in made] == [6, 8, 8, 8, 24]


def test_rollouts_with_intervals_and_the_best_in_bold(make_results):
    table = rollout_table(make_results())
    assert table.rows[0][:4] == ("csm", "16", "0.300 [0.270, 0.330]", "0.450 [0.405, 0.495]")
    assert table.best == {(3, 2), (3, 3)}
    assert table.rows[0][-1] == "no"
    assert rollout_table(make_results(blow_up=4)).rows[0][-1] == "step 4"
    assert not rollout_table(make_results(schedules=["16"])).best


def test_fields_are_columns(make_results):
    assert field_table(make_results()).header == ("model", "schedule", "tracer", "pressure")


def test_small_probabilities(make_results):
    assert artifact_table(make_results()).rows[0][4] == "< 0.0001"


def test_tables_without_rows_are_left_out(make_model, make_results):
    assert [table.title for table in tables(make_results([make_model(schedules=())]))] == [
        "Next step from true frames"
    ]


def shown(results, width=80):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(results_table(results))
    return capture.get()


@pytest.mark.parametrize(
    ("value", "said"),
    [(4e-4, "4e-04"), (0.01, "0.01"), (0.081, "0.08"), (9.996, "10.0"), (99.96, "100"),
     (12345.0, "12345")],
)  # fmt: skip
def test_seconds_are_short(value, said):
    assert _seconds(value) == said


def test_a_row_for_each_schedule_of_each_model(make_model, make_results):
    models = [make_model("fixed16", schedules=("16",)), make_model("csm")]
    results = make_results(models)
    text = shown(results)
    for model in models:
        for run in model.runs:
            (line,) = [s for s in text.splitlines() if s.split()[:2] == [model.name, run.schedule]]
            cells = line.split()
            # The error of one step is that of a constant patch.
            assert len(cells) == (10 if run.schedule.isdigit() else 9)
            errors = [f"{e.value:.4f}" for e in (run.vrmse_10, run.vrmse_all)]
            coarsest = run.harmonics[-1]
            jumps = [run.seams[-1], coarsest.worst_seams[-1]]
            artifact = [f"{coarsest.overall:.1f}", *(f"{jump.value:.1f}" for jump in jumps)]
            assert cells[-7:-1] == [*errors, *artifact, str(run.tokens)]
    assert "0.27–0.33" in text  # of the first run, over ten steps
    assert "excess at harmonics of 16 cells" in text
    assert "blow-up" not in text


def test_eighty_columns_are_enough(make_model, make_results, with_yardsticks):
    schedules = ("16", "4-8-16+shift")
    results = make_results([make_model("fixed16"), make_model("csm", schedules=schedules)])
    for found in (results, with_yardsticks(results, (0.2, 50.0))):
        narrow, wide = (shown(found, width).replace("─", "").split() for width in (80, 200))
        assert narrow == wide
        assert "schedule:" not in shown(found)  # no list


def test_forty_columns_are_enough_for_a_list(make_results):
    lines = [line.rstrip() for line in shown(make_results(), width=40).splitlines()]
    assert "schedule: 16+shift" in lines
    assert "VRMSE 10: 0.3000 0.27–0.33" in lines
    assert max(map(len, lines)) <= 40


def test_seeds_and_blow_ups(make_model, make_results):
    text = shown(make_results([make_model(seed=1), make_model(seed=2, blow_up=4)]), width=200)
    assert "csm (seed 1)" in text
    assert "csm (seed 2)" in text
    assert text.count("step 4") == len(make_model().runs)


def test_without_harmonics_there_is_no_excess(make_model, make_results, alter_run):
    text = shown(make_results([alter_run(make_model(), harmonics=())]))
    assert "period" not in text


def test_yardsticks_stand_below_the_models(make_model, make_results, with_yardsticks):
    results = with_yardsticks(make_results(), sizes=(0.5, 0.6))
    for table in tables(results)[:4]:
        assert [row[0] for row in table.rows[-2:]] == ["persistence", "extrapolation"]
        assert all(len(row) == len(table.header) for row in table.rows)
    assert not any(i >= 4 for i, _ in rollout_table(results).best)
    assert rollout_table(results).rows[-2][4:] == ("–",) * 4
    assert "persistence" not in {row[0] for row in artifact_table(results).rows}
    lines = shown(results).splitlines()
    (line,) = [line for line in lines if line.startswith("to beat persistence")]
    assert line.split() == ["to", "beat", "persistence", "0.0400", "0.1667", "0.2500"]


def test_models_without_patches_have_no_tokens(make_bare, make_model, make_results):
    results = make_results([make_model(), make_bare()])
    tokens = str(results.models[1].runs[0].tokens)
    for table in tables(results)[:2]:
        place = table.header.index("tokens")
        assert next(row[place] for row in table.rows if row[0] == "unet") == "–"
        assert table.rows[-1][1] == "no patches"
    assert tokens not in shown(results, width=200)
    assert tokens not in str(tables(results))


def test_a_yardstick_that_was_asked_for_is_not_shown_twice(
    make_bare, make_model, make_results, with_yardsticks
):
    results = with_yardsticks(make_results([make_model(), make_bare("persistence")]))
    names = [row[0] for row in rollout_table(results).rows]
    assert names == ["csm"] * 4 + ["persistence", "extrapolation"]


def number_in(cell):
    """The value that a cell shows; infinite if it shows none."""
    return math.inf if cell == "–" else float(cell.split()[0].replace(",", ""))


@pytest.mark.parametrize("make", [next_step_table, rollout_table, field_table, band_table])
def test_marks_are_at_the_lowest_numbers_that_are_shown(
    make, make_model, make_results, with_yardsticks
):
    models = [make_model(), make_model("other", factor=0.37), make_model("third", factor=0.9)]
    table = make(with_yardsticks(make_results(models)))
    errors = [
        j for j, name in enumerate(table.header)
        if j >= 2 and name not in ("tokens", "FLOPs", "seconds", "blow-up")
    ]  # fmt: skip
    marked = {(i, j) for i, j in table.best}
    assert {j for _, j in marked} == {*errors}
    for j in errors:
        shown = [number_in(row[j]) for row in table.rows]
        assert {i for i, column in marked if column == j} == {
            i for i, value in enumerate(shown) if value == min(shown)
        }


def test_a_rollout_that_blew_up_is_never_marked(make_model, make_results):
    results = make_results([make_model(), make_model("best", factor=0.1, blow_up=4)])
    for table in (rollout_table(results), field_table(results), band_table(results)):
        assert table.best
        assert all(table.rows[i][0] == "csm" for i, _ in table.best)


def test_a_yardstick_may_be_the_lowest(make_results, with_yardsticks):
    table = rollout_table(with_yardsticks(make_results(), sizes=(0.01, 0.6)))
    assert {table.rows[i][0] for i, _ in table.best} == {"persistence"}


def test_equal_values_are_all_marked_and_one_alone_is_not():
    assert lowest({2: [1.0, 0.5, 0.5], 3: [math.nan, math.inf, 2.0]}) == {(1, 2), (2, 2)}
    assert lowest({0: [math.nan, 3.0, 2.0]}) == {(2, 0)}
