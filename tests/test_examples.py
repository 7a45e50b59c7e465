"""The examples run as they stand: as scripts, and those that are notebooks cell by cell.

Notebooks are kept as percent scripts (`# %%`), which jupytext and many editors open as they are;
`docs/builder/notebooks.py` runs them and makes pages of them.
"""

import re
import runpy
from pathlib import Path

import pytest

from docs.builder.notebooks import notebooks, run

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = notebooks()


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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_cell_by_cell(path):
    assert len(NOTEBOOKS) == 3
    outputs = [output for _, output in run(path)]
    pictures = [picture for output in outputs for picture in output.pictures]
    assert len(pictures) >= 2
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert any(output.text for output in outputs)


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
