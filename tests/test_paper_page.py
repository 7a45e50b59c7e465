"""docs/paper.md names what exists, leaves nothing of the paper out, and counts as the models do."""

import importlib
import re

import pytest
import torch

import overtone as ot
from overtone.models.architecture import design
from overtone.train.paper import DATASETS, RIVALS, SIZES
from overtone.train.recipes import RECIPES, recipe
from overtone.train.run import make_model
from studies.catalogue import STUDIES
from tests.test_repository import ROOT, commands_in, mistakes

PAGE = (ROOT / "docs" / "paper.md").read_text()
MAP = PAGE[PAGE.index("## The map") :]
NUMBERED = {"Table": 15, "Figure": 24, "Equation": 21, "Algorithm": 2}
"""How many the paper has of each."""
FLAT = ot.Domain((128, 256), (1.0, 1.0), "periodic", [f"u{i}" for i in range(4)])
DEEP = ot.Domain((64, 64, 64), (1.0, 1.0, 1.0), "open", [f"u{i}" for i in range(6)])


def rows_of(text):
    """Cells of all rows of tables, without their headers."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if set(row[0]) != {"-"}]


def resolve(name):
    """A module, or what is in one, by its dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


def test_every_module_of_the_map_exists():
    named = re.findall(r"`(overtone(?:\.\w+)+)`", PAGE)
    assert len(named) > 60
    for name in named:
        assert resolve(name) is not None, name
    with pytest.raises((ModuleNotFoundError, AttributeError)):
        resolve("overtone.ops.resize.pi_rezise")


def test_every_command_recipe_and_study_of_the_map_exists():
    commands = list(commands_in(PAGE))
    assert not [mistake for command in commands for mistake in mistakes(command)]
    trained = [words[2] for words in commands if words[:2] == ["overtone", "train"]]
    assert len(trained) > 4
    assert not set(trained) - RECIPES.keys()
    studies = re.findall(r"STUDY=([\w-]+)", PAGE)
    assert len(studies) > 15
    assert not set(studies) - STUDIES.keys()
    for study, comparison in re.findall(r"STUDY=([\w-]+)` \(`([\w-]+)`\)", PAGE):
        assert comparison in {own.name for own in STUDIES[study].comparisons}


def test_settings_of_the_page_are_those_of_the_recipe():
    config = recipe("shear-flow-7m")
    settings = PAGE[PAGE.index("## Settings") : PAGE.index("## Sizes")]
    table = " ".join(row[-1] for row in rows_of(settings))
    named = re.findall(r"`(\w+)\.(\w+)=([^`]+)`", table)
    assert len(named) > 12
    for section, key, value in named:
        given = getattr(getattr(config, section), key)
        expected = None if value == "null" else type(given)(value)
        assert given == expected, f"{section}.{key}"


@pytest.mark.parametrize("kind", NUMBERED)
def test_nothing_that_the_paper_numbers_is_left_out(kind):
    found = []
    for first, *_ in rows_of(MAP):
        if heading := re.match(rf"{kind}s? (\d[\d, and to]*)", first):
            text = heading[1]
            numbers = [int(n) for n in re.findall(r"\d+", text)]
            found += range(numbers[0], numbers[1] + 1) if " to " in text else numbers
    assert sorted(found) == list(range(1, NUMBERED[kind] + 1))


def test_sections_and_appendices_are_there():
    firsts = [row[0] for row in rows_of(MAP)]
    for section in ("Abstract", "1.1", "2 CSM", "2 CKM", "3.1", "3.2", "3.3", "3.4", "3.5", "4",
                    *(f"{letter} " for letter in "ABDEFGHJK"), "C.1", "C.2", "C.3", "C.4",
                    *(f"I.{n}" for n in range(1, 6))):  # fmt: skip
        assert any(first.startswith(section) for first in firsts), section


def test_every_piece_has_an_answer_and_a_reason_if_it_is_not_the_same():
    for row in rows_of(MAP):
        if row[0] == "paper" or row[1] == "appendix I below":
            continue
        assert len(row) == 3, row
        answer = row[2]
        assert re.match(r"same|different: \w|not done: \w|nothing to do", answer), row


PAPER = {"tokenizer": "csm", "patches": (4, 8, 16), "context": 6}


def millions(name, domain):
    with torch.device("meta"):
        return f"{make_model(recipe(name).model, domain).num_parameters / 1e6:.1f}"


def test_parameters_in_the_page_are_those_of_the_models():
    sizes = PAGE[PAGE.index("## Sizes") : PAGE.index("## Other models")]
    rows = {re.match(r"`(\w+)`", row[0])[1]: row for row in rows_of(sizes) if "`" in row[0]}
    assert rows.keys() == SIZES.keys()
    for size, row in rows.items():
        names = [f"shear-flow-{size}", f"shear-flow-{size}-fold"]
        counts = [millions(name, domain) for name in names for domain in (FLAT, DEEP)]
        assert row[3:] == counts
        architecture = design("vit", size=size, domain=FLAT, **PAPER)
        width, mlp_dim = architecture.width, 2 * architecture.mlp_dim
        weights = 12 * (8 * width**2 + 1.5 * width * mlp_dim) + 8 * width * (4 + width)
        assert row[2] == f"{weights / 1e6:.1f}"


def test_parameters_of_baselines_in_the_page_are_those_of_the_models():
    others = PAGE[PAGE.index("## Other models") : PAGE.index("## Data that varies")]
    rows = {row[0].strip("`"): row for row in rows_of(others)[1:]}
    assert rows.keys() == RIVALS.keys()
    for name, row in rows.items():
        assert float(re.match(r"[\de-]+", row[4])[0]) == RIVALS[name].lr
        if name not in ("fno", "tfno"):  # which need neuraloperator
            assert row[3] == millions(f"shear-flow-{name}", FLAT)
    for dataset, updates in (("shear-flow", "325,920"), ("active-matter", "33,750"),
                             ("turbulent-radiative-layer-2d", "68,400")):  # fmt: skip
        assert f"{recipe(f'{dataset}-cvit').train.updates_per_patch:,}" == updates
        assert updates in others
    assert len(DATASETS) == 6
