import pytest

from overtone.errors import ConfigError
from overtone.evaluate.candidates import used_patches
from overtone.models.storage import pretrained_names
from overtone.schedules import parse_schedule
from overtone.train.settings import change
from studies.catalogue import FIXED, STUDIES, find_study

ALL = [training for study in STUDIES.values() for training in study.trainings]


def test_one_name_is_one_configuration_in_all_studies():
    configs, forms = {}, {}
    for training in ALL:
        made = training.config()
        assert configs.setdefault(training.name, made) == made
        if not training.packaged:
            assert forms.setdefault(training.name, training.form_of) == training.form_of


def test_packaged_models_are_in_the_package_and_trained_by_a_study():
    packaged = {training.name for training in ALL if training.packaged}
    assert packaged <= set(pretrained_names())
    assert packaged <= {training.name for training in ALL if not training.packaged}


def test_two_names_are_two_configurations():
    """But for those whose form is still to be chosen."""
    configs = {training.name: training.config() for training in ALL if training.form_of is None}
    assert len(set(map(str, configs.values()))) == len(configs)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_comparisons_use_what_is_trained_and_what_can_be_parsed(study):
    trained = {training.name for training in study.trainings}
    for comparison in study.comparisons:
        assert trained >= set(comparison.models)
        for text in comparison.schedules:
            assert str(parse_schedule(text)) == text
        used = [t for t in study.trainings if t.name in comparison.models]
        labels = [(t.label, t.config().train.seed) for t in used]
        assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_every_model_can_follow_a_schedule(study):
    for comparison in study.comparisons:
        wanted = [set(used_patches(parse_schedule(s), 40)) for s in comparison.schedules]
        for training in study.trainings:
            model = training.config().model
            if training.name in comparison.models and not model.is_baseline:
                assert any(set(model.patches) >= patches for patches in wanted), training.name


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_rollouts_fit_into_the_data(study):
    trainings = {training.name: training for training in study.trainings}
    for comparison in study.comparisons:
        for name in comparison.models:
            config = change(trainings[name].config(), comparison.data)
            needed = comparison.start + config.model.context + comparison.steps
            assert needed <= config.data.generate.steps


@pytest.mark.parametrize("name", ["shear-flow-mini", "rayleigh-benard-mini"])
def test_the_flexible_model_gets_the_sum_of_the_fixed_ones_updates(name):
    updates = {t.label: t.config().num_updates for t in STUDIES[name].trainings}
    assert updates["csm"] == sum(updates[kind] for kind in FIXED)
    assert len({updates[kind] for kind in FIXED}) == 1


def test_the_omitted_patch_is_asked_of_models_that_never_saw_it():
    study = STUDIES["omitted-patch"]
    (comparison,) = study.comparisons
    assert comparison.allow_untrained
    assert {"4", "8", "16"} <= set(comparison.schedules)
    patches = {t.label: t.config().model.patches for t in study.trainings}
    assert patches == {
        "csm": (4, 8, 16), "ckm": (4, 8, 16),
        "csm (without 8)": (4, 16), "ckm (without 8)": (4, 16),
    }  # fmt: skip


def test_forms_are_chosen_by_trainings_of_the_same_study():
    for study in STUDIES.values():
        chosen_by = {training.form_of for training in study.trainings} - {None}
        assert chosen_by <= {training.name for training in study.trainings}


def test_an_unknown_study_is_named():
    with pytest.raises(ConfigError, match="did you mean 'shear-flow-mini-axial'"):
        find_study("shear-flow-mini-axail")
