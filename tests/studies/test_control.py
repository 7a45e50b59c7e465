"""Which rules are compared, and on what; test_assess.py runs all of it."""

from types import SimpleNamespace

import pytest
import torch

import overtone as ot
from studies.control import KINDS, RANDOM, SHARES, Control, Set, _example, usual_rules


def test_tolerances_lie_between_what_all_patches_miss_and_what_none_does():
    errors = {"4": 0.01, "8": 0.02, "16": 0.05}
    model = SimpleNamespace(patches=(4, 8, 16), calibration=SimpleNamespace(errors=errors))
    rules = usual_rules(model)
    for kind in KINDS:
        own = [ot.parse_rule(rules[f"{kind} {place}"]) for place in range(1, len(SHARES) + 1)]
        found = [rule.tolerance for rule in own]
        assert rules["sparing auto"] == "sparing+shift"
        expected = [0.007 * (0.08 / 0.007) ** share for share in SHARES]
        assert found == pytest.approx(expected, rel=0.01)
        assert all(rule.shift is True for rule in own)
    assert {"4+shift", "8+shift", "16+shift", "4-8-16+shift"} <= rules.keys()
    assert sum(name.startswith("random:") for name in rules) == RANDOM


def test_some_of_a_set():
    domain = ot.Domain(4, 1.0, "periodic", ("u",))
    fields, truth = torch.rand(5, 2, 1, 4), torch.rand(5, 3, 1, 4)
    part = Set(ot.Window(fields, domain), truth).only([4, 1])
    assert torch.equal(part.window.fields, fields[[4, 1]])
    assert torch.equal(part.truth, truth[[4, 1]])
    assert [len(truth) for _, truth in part.batches(1)] == [1, 1]
    assert part.until(2).truth.shape == (2, 2, 1, 4)


def test_the_example_is_one_whose_band_holds_and_then_one_of_many_changes():
    errors = torch.tensor([[1.0, 1.0, 9.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    low, high = torch.full((3,), 0.5), torch.full((3,), 2.0)
    told = [SimpleNamespace(bounds={0.9: (low, high)}, value=low) for _ in range(3)]
    drawn = _example("r", errors, told, [[4, 8, 4], [4, 8, 8], [4, 4, 4]])
    assert drawn["patches"] == [4, 8, 8]
    assert drawn["inside"]
    assert (drawn["held"], drawn["rollouts"]) == (2, 3)


def test_what_is_shown_is_the_best_of_all_batches_and_counts_those_of_its_rule():
    comparison = Control(SimpleNamespace(), SimpleNamespace(), lambda _: None)
    comparison._show([made(True, 1, "a", held=2), made(False, 9, "a", held=0)])
    assert (comparison.example["rule"], comparison.example["changes"]) == ("a", 1)
    assert (comparison.example["held"], comparison.example["rollouts"]) == (2, 6)
    comparison._show([made(False, 7, "b", held=0)])  # tells less
    assert comparison.example["rule"] == "a"
    comparison._show([made(True, 2, "c", held=1)])
    assert (comparison.example["rule"], comparison.example["held"]) == ("c", 1)


def made(inside, changes, rule, held):
    return {"inside": inside, "changes": changes, "rule": rule, "held": held, "rollouts": 3}
