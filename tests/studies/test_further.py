"""Further rollouts train nothing that others don't."""

from overtone.models.storage import pretrained_names
from studies.catalogue import STUDIES
from studies.further import BLASTS, DRAWN_FAMILIES, families, hundred, over_fifty
from studies.schedules import SCHEDULES


def test_a_hundred_steps_are_of_packaged_models_on_three_systems():
    study = hundred()
    assert {t.name for t in study.trainings} <= set(pretrained_names())
    assert all(t.packaged for t in study.trainings)
    assert len(study.comparisons) == 3
    assert {c.steps for c in study.comparisons} == {100}
    assert all({"16", "4-8-16"} <= set(c.schedules) for c in study.comparisons)


def test_families_take_their_models_from_the_main_studies():
    study = families()
    for training in study.trainings:
        shared = [t for t in STUDIES[training.recipe].trainings if t.name == training.name]
        assert [t.config() for t in shared] == [training.config()]
    *whole, drawn = study.comparisons
    assert [c.schedules for c in whole] == [SCHEDULES] * len(BLASTS)
    assert set(drawn.schedules) == set(DRAWN_FAMILIES)
    assert "axis_spectra" in drawn.curves


def test_laws_are_followed_over_fifty_steps_by_both_flexible_models():
    study = over_fifty()
    (comparison,) = study.comparisons
    assert comparison.steps == 50
    assert {t.label for t in study.trainings} == {"csm", "ckm", "fixed16"}
    assert comparison.curves == ("physics",)
