"""Fair by construction: what all rivals share."""

import pytest

from studies.rivals import BEST, BUDGETS, SYSTEMS, best_rivals, rivals
from studies.tune import PLAIN_FORMS, trials

CASES = pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.recipe)


def compared(study):
    (comparison,) = study.comparisons
    return [training for training in study.trainings if training.name in comparison.models]


@pytest.mark.parametrize("minutes", BUDGETS)
@CASES
def test_all_rivals_have_the_same_budget_data_and_validation(system, minutes):
    own = compared(rivals(system, minutes))
    configs = [training.config() for training in own]
    alike = {(c.num_updates, c.train.batch, str(c.data), str(c.valid)) for c in configs}
    assert len(own) > 10
    assert {c.train.max_cpu_minutes for c in configs} == {minutes}
    assert len(alike) == 1


@pytest.mark.parametrize("minutes", BUDGETS)
@CASES
def test_the_form_of_each_is_chosen_once_by_trials_of_its_own_kind(system, minutes):
    study = rivals(system, minutes)
    by_name = {training.name: training for training in study.trainings}
    for training in compared(study):
        chooser = by_name[training.form_of]
        assert chooser.label == training.label
        lengths = {t.config().train.max_cpu_minutes for t in trials(chooser).values()}
        assert lengths == {BUDGETS[0] / 4}
        assert len(trials(chooser)) == len(PLAIN_FORMS)


@CASES
def test_only_attending_models_have_another_context(system):
    for training in compared(rivals(system, 2)):
        attends = training.label.endswith("attending")
        assert training.config().model.context == (4 if attends else 8)
        assert (training.config().model.time == "attend") == attends


@CASES
def test_half_of_the_updates_are_shifted_and_coarse_patches_are_drawn_more_often(system):
    """As the module says; models that attend are left as they were."""
    for training in compared(rivals(system, 2)):
        config = training.config()
        assert config.train.shift == 0.5
        folded = config.model.time == "fold" and not config.model.is_baseline
        if folded and len(config.model.patches) > 1:
            weights = dict(zip(config.model.patches, config.train.patch_weights, strict=True))  # pyright: ignore[reportCallIssue]
            assert weights[max(weights)] > weights[min(weights)]
        else:
            assert config.train.patch_weights is None


def test_the_best_are_those_of_the_rivals_study_with_further_seeds():
    (system,) = (system for system in SYSTEMS if system.recipe in BEST)
    study, every = best_rivals(system), rivals(system, BUDGETS[0])
    assert compared(study) == list(study.trainings)
    configs = {t.name: t.config() for t in study.trainings}
    found = {(t.label, configs[t.name].train.seed) for t in study.trainings}
    assert found == {(label, seed) for label in ("csm", "fixed4", *BEST[system.recipe])
                     for seed in (0, 1, 2)}  # fmt: skip
    shared = {t.name: t for t in every.trainings}
    for training in study.trainings:
        first = shared[str(training.form_of)]
        assert first.label == training.label
        own = configs[training.name]
        again = own.model_copy(update={"train": own.train.model_copy(update={"seed": 0})})
        assert again == first.config()
        assert (training == first) == (own.train.seed == 0)
