"""Controllers, plans and what was tried beside others of as many tokens."""

import math

import pytest

from studies import assess
from studies.page import assess_tables, assess_values
from studies.page.assess_equal import equal
from studies.page.assess_rows import change, changes, mean
from studies.page.blocks import PageError

CYCLE = "4-8-16+shift"


def row(rule, tokens, error, **more):
    """Errors over few steps are half of those over all, and the worst are twice as large."""
    return {"rule": rule, "tokens": tokens, "early": error / 2, "error": error,
            "worst": 2 * error, **more}  # fmt: skip


def rules(cycle=0.2, plan=0.19):
    """A comparison: constants on a line in the logarithm of tokens, and others around it."""
    found = [
        row("4+shift", 1000, 0.1),
        row("16+shift", 10, 0.3),
        row(CYCLE, 100, cycle),
        row("random:4-8-16:0+shift", 90, 0.2),
        row("random:4-8-16:1+shift", 110, 0.24),
    ]
    made = {own["rule"]: own for own in found} | {
        "plan": row("warmup:4:16+shift", 50, plan),
        "adaptive 1": row("adaptive:1+shift", 1000, 0.1),
        "adaptive 2": row("adaptive:2+shift", 10, 0.26),
        "sparing 1": row("sparing:1+shift", 60, 0.21),
    }
    return made


def of_seeds(*comparisons):
    return {"flow-mini": [{"control": {"test": own}, "example": {}} for own in comparisons]}


@pytest.fixture
def cells():
    return lambda text: [[cell.strip() for cell in line.split("|")[1:-1]]
                         for line in text.splitlines()[2:]]  # fmt: skip


def test_what_each_kind_reaches_with_the_cycle_s_tokens(cells):
    found = {own[2].partition(" ")[0]: own for own in cells(equal(of_seeds(rules())))}
    assert found["constants"][3:] == ["0.100", "0.200", "0.400"]  # half way in the logarithm
    assert found["cycle"][2:] == ["cycle", "0.100", "0.200", "0.400"]
    assert found["plan"][2:] == ["plan (50 %)", "0.095", "0.190", "0.380"]
    assert found["random"][2:] == ["random", "0.110", "0.220", "0.440"]
    assert found["adaptive"][2:] == ["adaptive", "0.090", "0.180", "0.360"]
    assert found["sparing"][2:] == ["sparing (60 %)", "0.105", "0.210", "0.420"]


def test_seeds_are_averaged_and_what_is_lost_or_absent_is_said(cells):
    lost = rules(cycle=0.3) | {"plan": row("x", 100, math.inf)}
    dear = {**lost, "adaptive 2": row("adaptive:2+shift", 1000, 0.1)}
    found = {own[2].partition(" ")[0]: own for own in cells(equal(of_seeds(rules(), dear)))}
    assert found["cycle"][4] == "0.250"
    assert found["plan"][4] == "∞"
    none = {own[2].partition(" ")[0]: own for own in cells(equal(of_seeds(dear)))}
    assert none["adaptive"][3:] == ["–"] * 3  # it costs more at any tolerance


def test_a_lost_rollout_counts_and_where_no_schedule_is_as_cheap_there_is_no_change():
    rows = [{"own": math.inf, "other": 1.0}, {"own": 1.0, "other": math.inf}, {"own": 1.1,
            "other": 1.0}]  # fmt: skip
    found = changes(rows, "own", "other")
    assert found[0] == math.inf
    assert math.isnan(found[1])
    assert change(found) == "∞"
    assert change(found[1:]) == "+10 %"
    assert change([math.nan]) == "–"
    assert mean([1.0, math.nan, 3.0], lambda v: v) == "2.00 (1.00 to 3.00)"
    assert mean([1.0, math.inf], lambda v: v) == "∞"


def test_the_planner_s_rule_is_counted(tmp_path):
    """It should be level with the cycle, and never more than 3 % worse."""
    own = [rules(cycle=0.2, plan=plan) for plan in (0.19, 0.205, 0.22)]
    assess._save(tmp_path / "assess.json", "systems", "flow-mini", of_seeds(*own)["flow-mini"])
    for limit, said in (("0", "1 of 3"), ("3", "2 of 3"), ("20", "3 of 3")):
        assert assess_values.render("assess-plans", (limit,), tmp_path) == said


def test_a_controller_that_lost_a_rollout_has_not_won(tmp_path):
    lost = row("sparing:1+shift", 60, math.inf, open_loop=0.2)
    systems = of_seeds(*(rules() | {"sparing 1": own} for own in (lost, {**lost, "error": 0.1})))
    assess._save(tmp_path / "assess.json", "systems", "flow-mini", systems["flow-mini"])
    assert assess_values.render("assess-wins", ("sparing", "error"), tmp_path) == "1 of 2"


def test_how_many_drawn_rollouts_stay_in_their_band(tmp_path):
    systems = of_seeds(rules(), rules())["flow-mini"]
    for model, held in zip(systems, (3, 5), strict=True):
        model["example"] = {"test": {"held": held, "rollouts": 8}}
    assess._save(tmp_path / "assess.json", "systems", "flow-mini", systems)
    assert assess_values.render("assess-held", ("test",), tmp_path) == "8 of 16"


def test_what_was_tried_is_set_against_sparing_at_its_own_tokens(tmp_path, cells):
    own = rules() | {"sparing 2": row("sparing:2+shift", 20, 0.25),
                     "accumulated": row("accumulated:0.3+shift", 60, 0.231),
                     "sparing every 5": row("sparing:every=5+shift", 70, 0.2)}  # fmt: skip
    assert assess_values.render("assess-tried", ("accumulated",), tmp_path) == "not run yet"
    for name in ("flow-mini", "layer-mini"):
        assess._save(tmp_path / "assess.json", "tried", name, own)
    found = cells(assess_tables.render("assess-candidates", (), tmp_path))
    assert found == [["`accumulated`", "+10 %", "+10 %"], ["`sparing every 5`", "−4.8 %", "−4.8 %"]]
    assert assess_values.render("assess-tried", ("accumulated",), tmp_path) == "+10 %"
    with pytest.raises(PageError, match="'other' was not tried"):
        assess_values.render("assess-tried", ("other",), tmp_path)
