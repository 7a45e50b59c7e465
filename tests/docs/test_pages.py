"""Pages as Sphinx reads them: comments go, links are turned, code stays."""

from pathlib import Path

import pytest

pytest.importorskip("sphinx")

from docs.builder.pages import DOCS, ROOT, homes, included, relink, without_comments


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("with <!-- value: share a b -->45 %<!-- end --> of it", "with 45 % of it"),
        ("<!-- value: x -->−4 %<!-- end -->, **better**", "−4 %, **better**"),
        ("a\n\n<!-- table: t -->\n\n| x |\n\n<!-- end -->\n\nb", "a\n\n\n\n| x |\n\n\n\nb"),
        ("two\n<!-- lines\nof comment -->\nleft", "two\n\nleft"),
        ("`<!-- value: in code -->` stays", "`<!-- value: in code -->` stays"),
        ("```html\n<!-- shown -->\n```\n<!-- gone -->", "```html\n<!-- shown -->\n```\n"),
    ],
)  # fmt: skip
def test_comments_are_left_out(text, left):
    assert without_comments(text) == left


def turned(text, origin="docs/tutorials/train.md", page=None):
    return relink(text, origin=ROOT / origin, page=ROOT / (page or origin), moved=homes())


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("[a](flexify.md#two-lines)", "[a](flexify.md#two-lines)"),
        ("[a](../../SECURITY.md)", "[a](../project/security.md)"),
        ("[a](../../README.md)", "[a](../index.md)"),
        ("[`a.py`](../../examples/the_dial.py)", "[`a.py`](../notebooks/the_dial.md)"),
        ("[a](../../examples/slurm_train.sh)", "[a](../../examples/slurm_train.sh)"),
        ("the [files](../../results) of it", "the files of it"),
        ("[a](#here), [b](https://example.org/x.md)", "[a](#here), [b](https://example.org/x.md)"),
        ("`[a](../../SECURITY.md)`", "`[a](../../SECURITY.md)`"),
    ],
)
def test_links_hold_on_the_site(link, there):
    assert turned(link) == there


def test_links_of_a_page_that_is_shown_elsewhere_are_its_own():
    text = "[walk](docs/walk.md) and [security](SECURITY.md), ![picture](docs/images/demo.png)"
    there = turned(text, "CONTRIBUTING.md", "docs/project/contributing.md")
    assert there == "[walk](../walk.md) and [security](security.md), ![picture](../images/demo.png)"


def test_a_notebooks_own_script_stays_a_file():
    page = "docs/notebooks/the_dial.md"
    link = "[it](../../examples/the_dial.py)"
    assert turned(link, page) == link


def test_a_page_that_is_another():
    page = DOCS / "project" / "x.md"
    assert included("```{include} ../../CHANGELOG.md\n```\n", page) == ROOT / "CHANGELOG.md"
    assert included("Not only:\n\n```{include} ../../CHANGELOG.md\n```\n", page) is None
    assert included((DOCS / "index.md").read_text(), Path()) is None
