"""Trainings by kind."""

from overtone.train.recipes import recipe
from studies.kinds import BEGINS, FIXED, KINDS, SHEAR, as_packaged, labelled, models, names


def test_models_are_the_recipe_with_the_kind_and_the_changes():
    csm, fixed8 = models(SHEAR, ("csm", "fixed8"), suffix="-new", train__seed=7, model__blocks=2)
    assert names((csm, fixed8)) == ("shear-flow-mini-csm-new", "shear-flow-mini-fixed8-new")
    assert (csm.config().model.tokenizer, fixed8.config().model.patches) == ("csm", (8,))
    assert {t.config().train.seed for t in (csm, fixed8)} == {7}
    assert {t.config().model.blocks for t in (csm, fixed8)} == {2}


def test_labels_and_packages_change_nothing_else():
    own = models(SHEAR, KINDS)
    assert [t.label for t in labelled(own, "so")] == [f"{kind} (so)" for kind in KINDS]
    assert all(t.packaged for t in as_packaged(own))
    for changed in (labelled(own, "so"), as_packaged(own)):
        assert [t.config() for t in changed] == [t.config() for t in own]


def test_a_system_begins_early_enough_for_forty_steps():
    for name, start in BEGINS.items():
        config = recipe(name)
        assert start + config.model.context + 40 <= config.data.generate.steps
    assert set(FIXED) < set(KINDS)
