"""Configurations that contradict themselves."""

import pytest

from overtone.errors import ConfigError
from overtone.train.recipes import recipe
from overtone.train.settings import change, parse_pairs


def test_numbers_of_an_emulator_are_not_those_of_a_baseline():
    with pytest.raises(ConfigError, match="model.width is 32.*'unet' has its own.*model.other"):
        change(recipe("shear-flow-mini"), parse_pairs(["model.name=unet", "model.width=32"]))
    assert change(
        recipe("shear-flow-mini"), parse_pairs(["model.name=unet", "model.size=mini"])
    ).model.is_baseline


def test_a_run_without_data():
    with pytest.raises(ConfigError, match="data.path=FOLDER"):
        change(recipe("shear-flow-7m"), {"data.path": None})
