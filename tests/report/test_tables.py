"""The report's tables."""

from overtone.report.tables import artifact_table, field_table, rollout_table, tables


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
