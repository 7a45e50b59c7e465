"""`overtone page`, as a user types it."""

import subprocess
import sys

import pytest

MARK = "# Title\n\n<!-- table: setting shear-flow-mini -->\n<!-- end -->\n"


@pytest.fixture
def page(tmp_path):
    (tmp_path / "results").mkdir()
    path = tmp_path / "page.md"
    path.write_text(MARK)
    return path


def test_check_names_what_is_stale_and_writes_nothing(overtone, page):
    results = ("--results", page.parent / "results")
    code, text = overtone("page", page, *results, "--check")
    assert code == 1
    assert f"{page}:3: 'table: setting shear-flow-mini' is stale" in text
    assert page.read_text() == MARK
    code, text = overtone("page", page, *results)
    assert (code, "1 blocks, 1 changed, 1 not run yet" in text) == (0, True)
    assert "not run yet: `overtone reproduce shear-flow-mini" in page.read_text()
    code, text = overtone("page", page, *results, "--check")
    assert (code, "1 blocks, 0 stale" in text) == (0, True)


def test_figures_of_nothing_are_no_error(overtone, page):
    folder = page.parent
    code, text = overtone("page", page, "--results", folder / "results", "--figures", folder)
    assert (code, "wrote" in text) == (0, False)


@pytest.mark.parametrize(
    ("mark", "said"),
    [("<!-- table: x y --><!-- end -->", "no table 'x'"), ("<!-- end -->", "without a table")],
)
def test_mistakes_are_one_message(overtone, page, mark, said):
    page.write_text(mark)
    code, text = overtone("page", page, "--results", page.parent / "results")
    assert code == 2
    assert text.startswith("error: ")
    assert said in text


def test_a_missing_folder_of_results(overtone, page):
    code, text = overtone("page", page, "--results", page.parent / "none")
    assert (code, "no folder of results" in text) == (2, True)


def test_help_does_not_load_the_tables():
    code = "import sys, overtone.cli; print('overtone.reproduce' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
