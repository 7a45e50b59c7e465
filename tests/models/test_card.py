"""Cards say what a model is, and nothing that a name or a file would like them to say."""

import pytest
import yaml

import overtone as ot
from overtone.errors import CheckpointError
from overtone.models.card import compose, describe, makeup, model_card, readdressed, table, text


def head(card):
    """What is between the first two lines of dashes."""
    return yaml.safe_load(card.split("---\n")[1])


def loaded_by(card):
    """The names that the card's Python loads."""
    code = card.split("```python\n")[1].split("```")[0]
    compile(code, "card", "exec")
    return [line.split('"')[1] for line in code.splitlines() if "load(" in line]


def test_a_card_says_what_a_model_tells(make_model):
    model = make_model()
    card = model_card(model, "acme/waves")
    assert head(card) == {
        "license": "unknown",
        "library_name": "overtone",
        "tags": ["pde", "surrogate", "emulator", "physics"],
        "metrics": ["vrmse"],
    }
    assert "\n# acme/waves\n" in card
    assert loaded_by(card) == ["acme/waves"]
    assert f"{model.num_parameters:,} parameters" in card
    for row in (
        "| fields | a, b |",
        "| grid, extent | 32x48, 2 x 3 |",
        "| time between frames | 0.1 |",
    ):
        assert row in card
    assert "no errors were measured" in card
    assert "## Limits" in card


def test_models_of_every_kind_have_one(make_model, make_domain):
    unet = ot.baseline("unet", domain=make_domain(), context=2)
    assert "the baseline `unet`" in makeup(unet)
    assert 'schedule="1"' in model_card(unet, "x")
    assert "tokenizer `ckm` (one kernel, resized)" in makeup(make_model(tokenizer="ckm"))


def test_names_are_text_in_a_card(make_model, make_domain):
    hostile = "a|b`\n# c <script> [x](y)"
    model = make_model(make_domain(fields=(hostile, "b")))
    card = model_card(model, 'x"); import os; ("')
    assert "<script>" not in card
    assert card.count("\n# ") == 1
    assert "a_b_\\x0a# c _script_ _x_(y), b |" in card
    assert loaded_by(card) == ["x_); import os; (_"]


def test_a_licence_is_an_identifier():
    assert head(compose("x", "y", (), license="cc-by-4.0"))["license"] == "cc-by-4.0"
    for wrong in ("mit\ntags: [x]", "", "MIT License", "a" * 80):
        with pytest.raises(CheckpointError, match="expected an identifier such as mit"):
            compose("x", "y", (), license=wrong)


def test_a_card_under_another_name(make_model):
    card = model_card(make_model(), "run")
    again = readdressed(card, "acme/waves", "mit")
    assert loaded_by(again) == ["acme/waves"]
    assert "\n# acme/waves\n" in again
    assert head(again) == head(card) | {"license": "mit"}
    assert readdressed(again, "run", "unknown") == card
    assert readdressed(card, "acme/waves").replace("acme/waves", "run") == card


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ("# mine\n", {"license": "mit", "library_name": "overtone"}),
        ("---\ntags: [x]\n---\n# mine\n", {"license": "mit", "tags": ["x"]}),
        ("---\nlicense: gpl\n---\n# mine\nlicense: gpl\n", {"license": "mit"}),
    ],
)
def test_the_licence_of_a_card_that_somebody_wrote(card, expected):
    again = readdressed(card, "acme/waves", "mit")
    assert head(again) == expected
    assert again.split("---\n", 2)[2] == card.split("---\n")[-1].replace("# mine", "# acme/waves")


def test_a_table():
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert text("a|b\x1b") == "a_b\\x1b"


def test_what_info_says_of_a_model(make_model, tmp_path):
    make_model().save(tmp_path / "it", training={"recipe": "mine", "updates": 7}, card="# it\n")
    rows = describe(str(tmp_path / "it"))
    assert rows["model"] == f"{tmp_path / 'it'} is a folder"
    assert (rows["training: recipe"], rows["training: updates"]) == ("mine", "7")
    assert rows["card"] == str(tmp_path / "it" / "README.md")
    assert describe("shear-flow-mini-csm")["model"].endswith("is a packaged model")
