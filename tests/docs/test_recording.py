"""Recordings that the site embeds: which commands make one, and what their page has."""

import pytest

pytest.importorskip("sphinx", reason="needs overtone[docs]")

from sphinx.errors import ExtensionError

from docs.builder.pages import DOCS
from docs.builder.recording import FOLDER, embedded, parsed


def test_a_command_and_its_file():
    found = parsed("overtone view model --schedule '4-8+shift' --export view.html")
    assert found == (["view", "model", "--schedule", "4-8+shift"], "view.html")


@pytest.mark.parametrize(
    "command",
    [
        "overtone demo --export view.html",
        "overtone view model",
        "rm -r / --export view.html",
        "overtone view model --export ../view.html",
        "overtone view model --export view.txt",
    ],
)
def test_what_makes_no_recording_is_refused(command):
    with pytest.raises(ExtensionError):
        parsed(command)


def test_a_name_is_text():
    assert '"><b>' not in embedded('"><b>')


def test_the_tutorial_has_one_of_the_telling_pair():
    text = (DOCS / "tutorials/view.md").read_text()
    _, _, rest = text.partition("```{recording}\n")
    arguments, _ = parsed(rest.partition("\n```")[0])
    assert arguments[-4:] == ["--schedule", "16", "--schedule", "4-8-16+shift"]
    assert f'"docs.builder.{FOLDER.strip("_")[:-1]}"' in (DOCS / "conf.py").read_text()
