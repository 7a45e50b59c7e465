"""Tables and numbers as Markdown, rollouts as rows."""

import math

import pytest

from overtone.evaluate.results import Estimate
from studies.page.markdown import (
    Column,
    all_steps,
    blow_up_columns,
    bold,
    change,
    change_column,
    code,
    estimates,
    literal,
    lowest,
    name_columns,
    over_10,
    over_all,
    percent,
    probability,
    rollout_rows,
    table,
    ten_steps,
)

COLUMNS = [
    Column[tuple[str, float]]("name", lambda row: row[0], left=True),
    Column[tuple[str, float]]("error", lambda row: f"{row[1]} [0, 9]", lambda row: row[1]),
]


def test_a_table_with_its_best_in_bold():
    assert table([("a|b", 2.0), ("c", 1.0), ("d", math.nan)], COLUMNS).splitlines() == [
        "| name | error |",
        "| --- | ---: |",
        r"| a\|b | 2.0 [0, 9] |",
        "| c | **1.0** [0, 9] |",
        "| d | nan [0, 9] |",
    ]


def test_each_group_has_its_best():
    rows = [("a", 2.0), ("a", 1.0), ("b", 5.0), ("b", 4.0)]
    lines = table(rows, COLUMNS, group=lambda row: row[0]).splitlines()
    assert ["**" in line for line in lines] == [False, False, False, True, False, True]


def test_one_number_is_not_the_best_of_anything():
    assert lowest([1.0, math.inf, math.nan], [0, 0, 0]) == set()
    assert lowest([3.0, 1.0, 2.0], [0, 0, 0]) == {1}
    assert lowest([1.0, 3.0, 1.0], [0, 0, 0]) == {0, 2}
    assert bold("1.00") == "**1.00**"


def test_one_seed_has_an_interval_and_several_a_range():
    one = Estimate(value=1, low=0.5, high=2)
    assert estimates([one]) == "1.00 [0.500, 2.00]"
    two = [Estimate(value=v, low=0, high=9) for v in (1.0, 3.0)]
    assert estimates(two) == "2.00 (1.00 to 3.00)"
    assert estimates([]) == estimates([one, Estimate(value=math.inf, low=0, high=0)]) == "–"


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (66.0, 100.0, "−34 %"),
        (1.034, 1.0, "+3.4 %"),
        (1.0995, 1.0, "+9.9 %"),
        (1.0996, 1.0, "+10 %"),
        (1.0, 1.0, "0.0 %"),
        (0.99999, 1.0, "0.0 %"),
        (30.0, 1.0, "+2,900 %"),
        (1.0, 0.0, "–"),
        (math.nan, 1.0, "–"),
    ],
)
def test_changes_have_sign_and_unit(new, old, said):
    assert change(new, old) == said


def test_shares_and_probabilities():
    assert percent(43.75) == "44 %"
    assert probability(1e-6) == "p < 0.0001"
    assert probability(0.0321) == "p = 0.0321"
    assert probability(math.nan) == "p –"


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


def test_names_are_text_and_no_markup(make_source, make_trained):
    """Tags, links, bars, backticks and characters that can't be seen."""
    hostile = "<script>a|b[x](y)\x1b[2J`"
    source = make_source([make_trained(hostile)])
    text = table(rollout_rows([source], {}), name_columns(rollout_rows([source], {})))
    assert r"| &lt;script>a\|b[x]\(y)\x1b[2J` |" in text
    assert code("a`b\x1b") == r"`` a`b\x1b ``"
    assert code("4-8-16") == "`4-8-16`"
    assert literal("p < 0.01 and [0.1, 0.2] (x)") == "p < 0.01 and [0.1, 0.2] (x)"
