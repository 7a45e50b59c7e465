"""Rollouts as rows."""

import math

from studies.page.rows import (
    all_steps,
    blow_up_columns,
    change_column,
    name_columns,
    over_10,
    over_all,
    rollout_rows,
    ten_steps,
)


def test_a_blow_up_is_never_the_best_and_gets_a_column(make_source, make_trained):
    source = make_source([make_trained("csm"), make_trained("bad", schedules=["4"], blow_up=5)])
    rows = rollout_rows([source], {})
    assert rows[-1].error(over_all) == math.inf
    assert math.isfinite(rows[0].error(over_all))
    (column,) = blow_up_columns(rows)
    assert [column.show(row) for row in (rows[0], rows[-1])] == ["no", "step 5"]
    assert blow_up_columns(rows[:-1]) == []


def test_changes_are_against_the_same_comparison(make_source, make_trained):
    half = make_source([make_trained("csm", factor=0.5), make_trained("ckm")])
    other = make_source([make_trained("csm", factor=0.8), make_trained("ckm")], name="other")
    rows = rollout_rows([half, other], {"schedules": ("16",)})
    column = change_column("x", over_10, "ckm:16")
    assert [column.show(row) for row in rows] == ["−50 %", "0 %", "−20 %", "0 %"]
    assert [c.header for c in name_columns(rows)] == ["comparison", "model", "schedule"]
    assert [c.header for c in name_columns(rows[:2])] == ["model", "schedule"]


def test_models_without_patches_have_no_schedule(make_source, make_unpatched):
    (row,) = rollout_rows([make_source([make_unpatched()])], {})
    assert (row.schedule, row.unpatched) == ("–", True)


def test_lengths_are_named(make_source):
    short, long = make_source(steps=6), make_source(steps=40)
    assert (all_steps([short]), ten_steps([short])) == ("all 6 steps", "6 steps")
    assert (all_steps([short, long]), ten_steps([long])) == ("all steps", "10 steps")
