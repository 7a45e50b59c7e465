"""The examples run as they stand: as scripts, and those that are notebooks cell by cell.

Notebooks are kept as percent scripts (`# %%`), which jupytext and many editors open as they are. To
run one needs no more than Python: a cell is compiled and executed like a script's part, and what
its last line says is shown, as a notebook would.
"""

import ast
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = [path for path in EXAMPLES if path.read_text().startswith("# %%")]


@pytest.fixture(autouse=True)
def _cheap(monkeypatch, tmp_path):
    """Budgets of a test instead of those of a reader."""
    monkeypatch.setenv("OVERTONE_EXAMPLE_MINUTES", "0.004")
    monkeypatch.setenv("OVERTONE_EXAMPLE_FLOWS", "1x2")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path not in NOTEBOOKS], ids=lambda path: path.stem
)
def test_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def cells(path):
    """Kind and content of each cell: `"markdown"` without its comment signs, or `"code"`."""
    found = []
    for part in re.split(r"^# %%", path.read_text(), flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        kind = "markdown" if head.strip() == "[markdown]" else "code"
        assert head.strip() in ("", "[markdown]"), f"{path.name}: a cell '# %%{head}'"
        found.append((kind, body))
    return found


def execute(code, names):
    """Run a cell; what its last line says, if it is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return (
        None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_cell_by_cell(path, capsys):
    assert len(NOTEBOOKS) == 3
    names, pictures = {"__name__": "__main__"}, 0
    for kind, body in cells(path):
        if kind == "markdown":
            lines = body.strip("\n").splitlines()
            assert all(line.startswith("#") or not line for line in lines), body
            continue
        shown = execute(body, names)
        if hasattr(shown, "_repr_png_"):
            pictures += shown._repr_png_().startswith(b"\x89PNG")
    assert pictures >= 2
    assert capsys.readouterr().out


def code_lines(path):
    """Lines that are neither empty nor a comment."""
    lines = path.read_text().splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def test_your_own_arrays_take_40_lines():
    assert len(code_lines(FOLDER / "your_own_arrays.py")) <= 40


@pytest.mark.slow
def test_a_minute_on_your_own_arrays_beats_doing_nothing(monkeypatch, capsys):
    """The walk's promise: better than persistence and extrapolation over ten steps."""
    monkeypatch.setenv("OVERTONE_EXAMPLE_MINUTES", "1")
    runpy.run_path(str(FOLDER / "your_own_arrays.py"), run_name="__main__")
    said = re.findall(r"^(\w+) +VRMSE over 10 steps: ([\d.]+)", capsys.readouterr().out, flags=re.M)
    errors = {name: float(value) for name, value in said}
    assert errors["trained"] < min(errors["persistence"], errors["extrapolation"])
