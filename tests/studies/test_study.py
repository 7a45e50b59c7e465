import pytest

from studies.catalogue import STUDIES
from studies.study import Training


def test_a_training_is_its_recipe_with_changes():
    training = Training("a", "shear-flow-mini", {"train.seed": 3, "model.patches": [16]})
    config = training.config()
    assert (config.train.seed, config.model.patches, config.recipe) == (3, (16,), "shear-flow-mini")
    other = training.renamed("b", {"train.seed": 4})
    assert (other.name, other.config().train.seed, other.config().model.patches) == ("b", 4, (16,))


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_a_quick_study_is_the_same_in_small(study):
    quick = study.quick()
    assert [t.name for t in quick.trainings] == [t.name for t in study.trainings]
    assert all(t.config().num_updates <= 8 * len(t.config().model.patches) for t in quick.trainings)
    assert max(c.steps for c in quick.comparisons) <= 12
