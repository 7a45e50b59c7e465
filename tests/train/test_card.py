"""Every model that a run leaves behind says what it is, and names no folder of this machine."""

import json
import re

import pytest
import torch
import yaml
from rich.console import Console

import overtone as ot
from overtone.metrics.confidence import with_interval
from overtone.models.storage import load_folder
from overtone.train.run import train


def rows(card):
    """Cells of all tables: first -> second."""
    cells = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("| ")]
    return {row[0]: row[1] for row in cells if len(row) > 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory, waves):
    """A finished run, its configuration, and the cards of its best and last model."""
    from overtone.train.recipes import recipe
    from overtone.train.settings import change
    from tests.train.conftest import SMALL

    folder = tmp_path_factory.mktemp("card") / "my run"
    settings = SMALL | {"data.path": str(waves), "train.updates": 4, "valid.every": 2}
    config = change(recipe("kuramoto-sivashinsky-mini"), settings)
    train(config, folder, console=Console(quiet=True))
    return folder, config, *((folder / n / "README.md").read_text() for n in ("best", "last"))


def test_a_card_tells_data_recipe_budget_and_errors(run, waves):
    _, _, best, last = run
    found = rows(last)
    assert yaml.safe_load(last.split("---\n")[1])["library_name"] == "overtone"
    assert "\n# my run\n" in last
    assert 'ot.load("my run")' in last
    assert found["dataset"] == "kuramoto_sivashinsky"
    assert found["trained on"].startswith("3 trajectories, fingerprint ")
    assert found["recipe"].startswith("`kuramoto-sivashinsky-mini`, seed 0")
    assert found["budget"] == "4 updates"
    assert found["updates"].startswith("4 of 4 windows (patch 4: ")
    assert found["time"].endswith("on 1 x cpu")
    assert "Intervals of so few are a rough guess" in last
    assert rows(best)["updates"].split()[0] in ("2", "4")
    assert str(waves) not in best + last
    assert not re.search(r"/(tmp|home|root|work)/", best + last)


def test_its_errors_are_those_of_the_validation_with_intervals(run):
    folder, _, _, card = run
    stored = load_folder(folder / "last")[1]["training"]["validation"]
    found = rows(card)
    for patch in ("4", "8"):
        value, low, high, trajectories = stored["intervals"][patch]
        assert found[patch] == with_interval(value, low, high)
        assert low <= value <= high
        assert f"On {trajectories} trajectories of the validation split" in card
    value, low, high, _ = stored["intervals"]["rollout"]
    assert found["4-8"] == with_interval(value, low, high)
    line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert line["yardsticks"]["persistence"]["vrmse"] > 0
    assert {"persistence", "extrapolation"} <= found.keys()


def test_arrays_in_memory_and_models_without_patches(make_domain, tmp_path):
    domain = make_domain(shape=(16, 16), fields=("a",))
    arrays = torch.randn(4, 8, 1, 16, 16).cumsum(1)
    model = ot.baseline("unet", domain=domain, context=2, size="mini")
    settings = {"valid.rollout_steps": 0, "train.batch": 2}
    fitted = ot.fit(
        model, arrays, updates=2, settings=settings, out=tmp_path / "run", quiet=True
    ).model
    card = (tmp_path / "run" / "best" / "README.md").read_text()
    assert rows(card)["data"].startswith("from a program's memory (arrays: ")
    assert "the baseline `unet`" in card
    assert "Rollouts of" not in card
    assert fitted.source == tmp_path / "run" / "best"
