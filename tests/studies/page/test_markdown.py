"""Tables and numbers as Markdown."""

import math

import pytest

from overtone.evaluate.results import Estimate
from studies.page.markdown import (
    Column,
    bold,
    change,
    estimates,
    lowest,
    percent,
    probability,
    table,
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
