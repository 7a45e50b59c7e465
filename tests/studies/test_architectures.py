"""Every architecture on every system, at equal budgets, sharing what main studies train."""

import pytest

from studies.architectures import (
    COARSE,
    CVIT_SYSTEMS,
    RATES,
    architectures,
    artifacts,
    cvit,
    with_axial,
    with_ckm,
)
from studies.catalogue import STUDIES
from studies.kinds import BEGINS, KINDS, LAYER, SHEAR, names
from tests.studies.stepping import laid, stepped

ON_ALL = pytest.mark.parametrize("recipe", BEGINS)


@ON_ALL
def test_ckm_stands_beside_what_the_main_study_trained(recipe):
    main = {t.name: t.config() for t in STUDIES[recipe].trainings}
    found = {t.name: t.config() for t in with_ckm(recipe).trainings}
    assert main.items() <= found.items()
    assert set(found) == {f"{recipe}-{kind}" for kind in KINDS}
    ckm, csm = found[f"{recipe}-ckm"], found[f"{recipe}-csm"]
    assert ckm.num_updates == csm.num_updates


@ON_ALL
def test_axial_models_fold_time_and_have_equal_budgets(recipe):
    configs = {t.label: t.config() for t in with_axial(recipe).trainings}
    assert set(configs) == set(KINDS)
    assert {(c.model.name, c.model.time) for c in configs.values()} == {("axial", "fold")}
    fixed = sum(configs[kind].num_updates for kind in ("fixed4", "fixed8", "fixed16"))
    assert configs["csm"].num_updates == configs["ckm"].num_updates == fixed


@pytest.mark.parametrize("recipe", [LAYER, SHEAR])
def test_artifacts_are_of_patch_16_in_every_architecture_and_at_every_rate(recipe):
    study = artifacts(recipe)
    configs = [t.config() for t in study.trainings]
    coarse = [c for c in configs if c.model.patches == (16,)]
    usual = {c.model.name for c in coarse if c.optimizer.lr == 8e-3}
    assert usual == set(COARSE)
    assert {c.optimizer.lr for c in coarse} == {8e-3, *RATES}
    assert len({c.num_updates for c in coarse}) == 1
    flexible = {c.model.name for c in configs if len(c.model.patches) > 1}
    assert flexible == {"swin", "afno"}
    (comparison,) = study.comparisons
    assert set(comparison.models) == set(names(study.trainings))
    assert {"seams", "worst_seams", "axis_spectra"} <= set(comparison.curves)


def test_swin_has_more_than_one_window_at_every_patch():
    """Else it would be plain attention: 32 cells are two patches of 16."""
    for training in artifacts(SHEAR).trainings:
        model = training.config().model
        if model.name == "swin":
            assert 64 // max(model.patches) > model.window


@pytest.mark.parametrize("recipe", CVIT_SYSTEMS)
def test_cvit_has_persistence_beside_it(recipe):
    study = cvit(recipe)
    (comparison,) = study.comparisons
    assert [extra.baseline for extra in comparison.untrained] == ["persistence"]
    assert {t.config().model.name for t in study.trainings} == {"cvit"}
    # Its four frames end where the eight of the other studies do.
    assert comparison.start + 4 == BEGINS[recipe] + 8


@pytest.mark.parametrize("check", [laid, pytest.param(stepped, marks=pytest.mark.slow)])
@pytest.mark.parametrize("study", architectures(), ids=lambda study: study.name)
def test_every_model_fits_its_grid(study, check):
    configs = [training.config() for training in study.trainings]
    for config in {str(config.model): config for config in configs}.values():
        assert check(config) == config.model.patches
