"""Every recipe is valid, and says what the paper says."""

import pytest

from overtone.domain import Domain
from overtone.errors import ConfigError
from overtone.solvers.datasets import build_system
from overtone.train.config import change
from overtone.train.recipes import DATASETS, MINIATURES, RECIPES, SIZES, recipe
from overtone.train.run import make_model


def test_there_are_six_datasets_in_three_sizes_and_their_miniatures():
    assert len(DATASETS) * len(SIZES) + len(MINIATURES) == len(RECIPES)
    assert set(DATASETS) <= set(MINIATURES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_named_after_itself(name):
    assert recipe(name).recipe == name


@pytest.mark.parametrize("name", [f"{d}-{s}" for d in DATASETS for s in SIZES])
def test_the_papers_setting(name):
    config = recipe(name)
    assert (config.train.batch, config.model.context, config.model.drop_path) == (16, 6, 0.1)
    assert (config.optimizer.kind, config.optimizer.lr) == ("adam", 1e-4)
    assert config.optimizer.weight_decay == 1e-4
    assert config.num_updates == 60_000
    fixed = change(config, {"model.tokenizer": "fixed", "model.patches": [16]})
    assert fixed.num_updates == 20_000


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
