"""Every row is the first one with one thing changed."""

import pytest

from studies.tried import BASE, STARTS, TRIED, tried


@pytest.mark.parametrize("recipe", STARTS)
def test_rows_share_data_and_budget_and_are_judged_on_the_validation_split(recipe):
    study = tried(recipe)
    first, *others = (training.config() for training in study.trainings)
    assert len(others) >= 8
    for config in others:
        assert config.data == first.data
        assert config.valid == first.valid
        assert config.train.max_cpu_minutes == first.train.max_cpu_minutes
    assert {comparison.split for comparison in study.comparisons} == {"valid"}
    assert {comparison.models for comparison in study.comparisons} == {
        tuple(training.name for training in study.trainings)
    }


@pytest.mark.parametrize("recipe", STARTS)
def test_a_row_changes_what_it_says_and_nothing_else(recipe):
    first, *others = tried(recipe).trainings
    assert (first.label, TRIED[recipe][first.label]) == ("as it was", {})
    before = {k: v for k, v in BASE.items() if k in first.changes}
    assert first.changes == before
    for training in others:
        changed = {k: v for k, v in training.changes.items() if first.changes.get(k) != v}
        assert changed == TRIED[recipe][training.label]
