"""Percent scripts: their cells, what running them shows, and the pages made of it."""

import pytest

from docs.builder.notebooks import cells, code_of, models, models_of, render, run, write

SCRIPT = """# %% [markdown]
# # Title
#
# Words, `code`.

# %%
x = 2
print("said")
x + 1


# %%
class Drawing:
    def _repr_png_(self):
        return b"\\x89PNG of " + str(x).encode()


Drawing()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(SCRIPT)
    return path


def test_cells(script):
    kinds = [cell.kind for cell in cells(script)]
    assert kinds == ["markdown", "code", "code"]
    assert cells(script)[0].text == "# Title\n\nWords, `code`."
    assert cells(script)[1].text == 'x = 2\nprint("said")\nx + 1'


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [("# %%\nx", "# %% [raw]\nx", r"\[raw\]"), ("# Words", "Words", "expected a comment")],
)
def test_what_is_no_cell(script, old, new, error):
    script.write_text(SCRIPT.replace(old, new))
    with pytest.raises(ValueError, match=error):
        cells(script)


def test_running_shows_what_is_printed_last_and_drawn(script):
    _, said, drawn = (output for _, output in run(script))
    assert said.text == "said\n3\n"
    assert drawn.pictures == [b"\x89PNG of 2"]
    assert drawn.text == ""


def test_the_page(script, tmp_path):
    out = tmp_path / "pages"
    out.mkdir()
    (out / "a-7.png").write_bytes(b"of an earlier run")
    page = write(script, out)
    assert code_of(page) == [cell.text for cell in cells(script) if cell.kind == "code"]
    assert "```text\nsaid\n3\n```" in page.read_text()
    assert "](a-1.png)" in page.read_text()
    assert {path.name for path in out.iterdir()} == {"a.md", "a-1.png"}
    assert (out / "a-1.png").read_bytes() == b"\x89PNG of 2"


def test_a_page_says_which_packaged_models_it_was_run_with(script, tmp_path, monkeypatch):
    folder = tmp_path / "weights" / "small"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"sha256": "ab12"}')
    (tmp_path / "weights" / "other").mkdir()
    monkeypatch.setattr("docs.builder.notebooks.WEIGHTS", folder.parent)
    assert models_of(write(script, tmp_path)) == models(script) == {}
    script.write_text(SCRIPT + '\nprint("small")\n')
    assert models_of(write(script, tmp_path)) == models(script) == {"small": "ab12"}
    (folder / "config.json").write_text('{"sha256": "cd34"}')
    assert models_of(tmp_path / "a.md") != models(script)


def test_colours_and_lines_that_were_written_over_are_left_out(script):
    script.write_text('# %%\nprint("\\x1b[1mbold\\x1b[0m\\n 10 %\\r 90 %")\n')
    text, _ = render("a", run(script))
    assert "```text\nbold\n 90 %\n```" in text
