"""Every row is the first one with one thing changed."""

import pytest

from overtone.train import recipes
from studies.tried import BASE, OPTIMIZERS, STARTS, TRIED, optimizers, scales, tried


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


@pytest.mark.parametrize("recipe", STARTS)
def test_scales_differ_in_their_scale_alone_and_are_judged_on_validation_splits(recipe):
    study = scales(recipe)
    assert {comparison.split for comparison in study.comparisons} == {"valid"}
    configs = {t.name: t.config() for t in study.trainings}
    assert len({(c.model.scale, c.train.seed) for c in configs.values()}) == len(configs) == 6
    alike = {
        c.model_copy(
            update={
                "model": c.model.model_copy(update={"scale": "typical"}),
                "train": c.train.model_copy(update={"seed": 0}),
            }
        ).model_dump_json()
        for c in configs.values()
    }
    assert len(alike) == 1


@pytest.mark.parametrize("recipe", STARTS)
def test_optimizers_differ_in_nothing_else_and_one_of_them_is_the_recipes(recipe):
    study = optimizers(recipe)
    assert {comparison.split for comparison in study.comparisons} == {"valid"}
    configs = [t.config() for t in study.trainings]
    found = {(t.label, c.train.seed) for t, c in zip(study.trainings, configs, strict=True)}
    assert found == {(label, seed) for label in ("AdamW", *OPTIMIZERS) for seed in (0, 1, 2)}
    own = recipes.recipe(recipe).optimizer
    assert [c.train.seed for c in configs if c.optimizer == own] == [0, 1, 2]
    alike = {
        c.model_copy(
            update={"optimizer": own, "train": c.train.model_copy(update={"seed": 0})}
        ).model_dump_json()
        for c in configs
    }
    assert len(alike) == 1
