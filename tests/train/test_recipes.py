"""Every recipe is valid."""

import pytest

from overtone.domain import Domain
from overtone.errors import ConfigError
from overtone.solvers.datasets import build_system
from overtone.train import paper
from overtone.train.recipes import MINIATURES, RECIPES, recipe
from overtone.train.run import make_model

FOLDED = [f"{dataset}-{size}-fold" for dataset in paper.DATASETS for size in paper.SIZES]


def test_there_are_the_papers_ours_at_its_sizes_and_miniatures():
    assert RECIPES.keys() == {
        *paper.RECIPES, *FOLDED, *(f"{dataset}-mini" for dataset in MINIATURES)
    }  # fmt: skip
    assert set(paper.DATASETS) <= set(MINIATURES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_named_after_itself(name):
    assert recipe(name).recipe == name


@pytest.mark.parametrize("name", FOLDED)
def test_ours_at_the_papers_sizes_differ_in_form_alone(name):
    own, theirs = recipe(name), recipe(name.removesuffix("-fold"))
    assert own.data == theirs.data
    assert (own.num_updates, own.train.batch) == (theirs.num_updates, theirs.train.batch)
    assert (own.model.name, own.model.size) == (theirs.model.name, theirs.model.size)
    assert (own.model.time, own.model.decoder, own.model.unit) == ("fold", "keep", "pace")
    assert (own.optimizer.clip, own.parallel.strategy) == (1.0, "ddp")


@pytest.mark.parametrize("name", MINIATURES)
def test_a_miniature_has_a_system_and_a_model_for_it(name):
    config = recipe(f"{name}-mini")
    wanted = config.data.generate
    system = build_system(wanted.system, grid=wanted.grid, **wanted.settings)
    domain = system.domain
    shape = tuple(n // config.data.coarsen for n in domain.shape)
    smaller = Domain(shape, domain.extent, domain.boundaries, domain.fields, domain.dt)
    model = make_model(config.model, smaller)
    assert model.num_parameters < 2e6


def test_an_unknown_recipe():
    with pytest.raises(ConfigError, match="did you mean 'shear-flow-mini'"):
        recipe("shear-flow-mni")
