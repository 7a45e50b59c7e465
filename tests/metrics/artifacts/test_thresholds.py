"""The measured worth of the thresholds: what the tutorial says of it, and what is promised."""

import json
import math
from pathlib import Path

import pytest

from overtone.metrics.artifacts import thresholds

ROOT = Path(__file__).parents[3]
MEASURED = json.loads((ROOT / "results" / "thresholds.json").read_text())
TUTORIAL = (ROOT / "docs" / "tutorials" / "diagnose.md").read_text()
SEARCHES = ("period", "seams")


def table(name):
    """The cells of a table of the tutorial, row by row, without its head."""
    text = TUTORIAL.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.strip().splitlines()]
    return rows[2:]


def at_least(count, num, rate):
    """Chance of so many alarms or more in so many searches with a rate."""
    fewer = (math.comb(num, k) * rate**k * (1 - rate) ** (num - k) for k in range(count))
    return 1 - sum(fewer)


def test_the_numbers_are_of_the_present_thresholds():
    present = {name: value for name, value in vars(thresholds).items() if name.isupper()}
    assert MEASURED["thresholds"] == json.loads(json.dumps(present))


@pytest.mark.parametrize("search", SEARCHES)
def test_false_alarms_are_as_rare_as_promised(search):
    num = sum(row["searched"] for row in MEASURED["false_alarms"])
    alarms = sum(row[search] for row in MEASURED["false_alarms"])
    assert num >= 300
    assert at_least(alarms, num, thresholds.ALPHA) > 0.01


def test_the_allowance_is_binomial():
    assert at_least(0, 480, 1e-3) == 1
    assert at_least(1, 480, 1e-3) == pytest.approx(1 - 0.999**480)
    assert at_least(5, 480, 1e-3) < 0.01


def test_no_kind_of_strong_artifact_is_missed():
    for row in MEASURED["detections"]:
        assert row["found"][-1] >= 0.8, row


def test_the_tutorial_has_the_false_alarms_of_the_record():
    expected = [
        [row["residual"], str(row["searched"]), *(str(row[search]) for search in SEARCHES)]
        for row in MEASURED["false_alarms"]
    ]
    assert table("alarms") == expected


def test_the_tutorial_has_the_detections_of_the_record():
    expected = []
    for row in MEASURED["detections"]:
        rates = zip(row["found"], row["part"], row["wrong"], strict=True)
        cells = [f"{found:.0%} ({part:.0%}, {wrong:.0%})" for found, part, wrong in rates]
        expected.append([row["artifact"], str(row["patch"]), *cells])
    assert table("detections") == expected
