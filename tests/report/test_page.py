"""Any page: its contents, what is folded, what is left out."""

import pytest

from overtone.report.page import Picture, Section, facts, figures, folded, render, table
from overtone.report.tables import Table


@pytest.fixture
def picture(tmp_path):
    (tmp_path / "a curve.png").write_bytes(b"picture")
    return Picture((tmp_path / "a curve.png",), "A <b>", "Words.", "alt", (40, 30), "one")


def test_contents_lead_to_sections_and_figures(picture):
    sections = [Section("top", "", "<p>first</p>"), Section("one", "One", "x", "short"),
                Section("none", "None", " ")]  # fmt: skip
    text = render("Title", sections, [picture])
    nav = text.partition("<nav")[2].partition("</nav>")[0]
    assert '<a href="#one">short</a>' in nav
    assert '<a href="#figure-a-curve" title="A &lt;b&gt;">1</a>' in nav
    assert "top" not in nav
    assert 'id="none"' not in text
    assert "refresh" not in text
    assert 'http-equiv="refresh" content="30"' in render("Title", sections, [], refresh=30)


def test_files_are_named_where_they_lie_beside_the_page(picture):
    assert "a curve.png" in figures([picture])["one"]
    assert "a curve.png" not in figures([picture], files=False)["one"]


def test_a_table_is_folded_with_its_marks():
    text = table(
        Table("T", ("a", "b", "c"), (("x", "y", "1"), ("x", "z", "2")), frozenset({(0, 2)}))
    )
    assert text.startswith("<details>")
    assert text.count('class="lowest"') == 1
    assert '<td class="lowest"><strong>1</strong></td>' in text
    assert "2 rows" in text


def test_what_is_folded_and_said_is_escaped():
    assert folded("s", "c") == "<details>\n<summary>s</summary>\nc\n</details>\n"
    assert "&lt;i&gt;" in facts([("<i>", "v")], command="a <b>")
