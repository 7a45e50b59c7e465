"""Notebooks as pages: the examples that are percent scripts (`# %%`), run and written down.

    python -m docs.builder.notebooks [NAME ...]     # make notebooks

runs `examples/NAME.py` cell by cell, as a notebook would, and writes `docs/notebooks/NAME.md` with
what each cell printed and drew. The pages are kept, so that the site builds in a minute; a test
compares their code with the scripts, and the packaged models that they were run with with those
that are here. To run a cell needs no more than Python.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "docs" / "notebooks"
WEIGHTS = ROOT / "src" / "overtone" / "weights"
_MODEL = re.compile(r"^<!-- run with (\S+), sha256 (\w+) -->$", re.M)
_FENCE = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


@dataclass(frozen=True)
class Cell:
    """A part of a percent script.

    Attributes:
        kind: `"markdown"` or `"code"`.
        text: Markdown without its comment signs, or Python.
    """

    kind: str
    text: str


@dataclass
class Output:
    """What a cell said, and the pictures that it ended with, as PNG."""

    text: str = ""
    pictures: list[bytes] = field(default_factory=list)


def notebooks() -> list[Path]:
    """The examples that are notebooks."""
    return [path for path in sorted(EXAMPLES.glob("*.py")) if path.read_text().startswith("# %%")]


def cells(path: Path) -> list[Cell]:
    """All cells of a script, in order."""
    found = []
    for part in re.split(r"^# %%", path.read_text(), flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        if head.strip() not in ("", "[markdown]"):
            raise ValueError(f"{path.name}: a cell '# %%{head}'; expected nothing or ' [markdown]'")
        body = body.strip("\n")
        if head.strip():
            lines = body.splitlines()
            if wrong := [line for line in lines if line and not line.startswith("#")]:
                raise ValueError(
                    f"{path.name}: '{wrong[0]}' in a Markdown cell; expected a comment"
                )
            body = "\n".join(re.sub(r"^# ?", "", line) for line in lines)
        found.append(Cell("markdown" if head.strip() else "code", body))
    return found


def run_cell(code: str, names: dict[str, Any]) -> Output:
    """Run a cell, and show what its last line is, if that is an expression.

    Args:
        code: Python.
        names: the notebook's variables, which the cell may change.
    """
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    last = last if isinstance(last, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    said, output = io.StringIO(), Output()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - our own examples
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
            drawing = getattr(shown, "_repr_png_", None)
            if drawing is not None:
                output.pictures.append(drawing())
            elif shown is not None:
                print(repr(shown))
    output.text = said.getvalue()
    return output


def run(path: Path) -> Iterator[tuple[Cell, Output]]:
    """The cells of a notebook with what each said and drew."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(path):
        yield cell, run_cell(cell.text, names) if cell.kind == "code" else Output()


def render(name: str, ran: Iterator[tuple[Cell, Output]]) -> tuple[str, dict[str, bytes]]:
    """The page, and its pictures by file name."""
    parts, pictures = [], {}
    for cell, output in ran:
        code = cell.kind == "code"
        parts.append(f"```python\n{cell.text}\n```" if code else cell.text)
        if output.text.strip():
            parts.append(f"```text\n{_plain(output.text)}\n```")
        for png in output.pictures:
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = png
            parts.append(f"![What the cell above draws]({file})")
    parts.append(
        f"*Run by `make notebooks`; the script is [`examples/{name}.py`](../../examples/{name}.py),"
        " which editors and JupyterLab (with jupytext) open as a notebook.*"
    )
    return "\n\n".join(parts) + "\n", pictures


def models(path: Path) -> dict[str, str]:
    """The packaged models that a script names, and the digests of their weights."""
    text = path.read_text()
    named = [folder for folder in sorted(WEIGHTS.iterdir()) if f'"{folder.name}"' in text]
    return {f.name: json.loads((f / "config.json").read_text())["sha256"] for f in named}


def models_of(page: Path) -> dict[str, str]:
    """Those that a page was run with."""
    return dict(_MODEL.findall(page.read_text()))


def code_of(page: Path) -> list[str]:
    """The code cells of a page."""
    return [block.strip("\n") for block in _FENCE.findall(page.read_text())]


def _plain(text: str) -> str:
    """Without colours, and of lines that were written over only the last."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = [line.rpartition("\r")[2].rstrip() for line in text.rstrip("\n").split("\n")]
    return "\n".join(lines)


def write(path: Path, out: Path = PAGES) -> Path:
    """Run a notebook in a folder of its own and write its page."""
    marks = [f"<!-- run with {name}, sha256 {digest} -->" for name, digest in models(path).items()]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text, pictures = render(path.stem, run(path))
    text += "".join(f"\n{mark}\n" for mark in marks)
    out.mkdir(exist_ok=True)
    for old in out.glob(f"{path.stem}-*.png"):
        old.unlink()
    for file, png in pictures.items():
        (out / file).write_bytes(png)
    page = out / f"{path.stem}.md"
    page.write_text(text)
    return page


def main() -> None:
    """Write the pages of some notebooks, or of all."""
    known = {path.stem: path for path in notebooks()}
    parser = argparse.ArgumentParser(description="examples, run and written down as pages")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all by default")
    names = parser.parse_args().names or list(known)
    if unknown := set(names) - known.keys():
        parser.error(f"no notebook '{min(unknown)}'; there are {', '.join(known)}")
    os.environ.setdefault("COLUMNS", "100")
    for name in names:
        print(write(known[name]).relative_to(ROOT), flush=True)


if __name__ == "__main__":
    main()
