"""Which planted bugs the tests notice.

Each mutation of the list `mutations.toml` changes one line of the project, in a scratch copy of it,
into a bug that somebody might write. The tests that should notice run there, until one of them
fails; if none does, a bug of this kind could live in the project. Before that the tests must pass
without any bug. Run it with

    python benchmarks/mutations.py [NAME ...] [--list] [--out results/mutations.json]

Names, or beginnings of names such as `train`, choose some; those are not written unless `--out` is
given.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from overtone.version import machine

ROOT = Path(__file__).parents[1]
COPIED = ("src", "studies", "tests", "docs", "examples")
"""What a scratch copy has of its own; all else is a link."""
LIMIT = 600
"""Seconds that the tests of one mutation may take: a bug that makes them hang is noticed."""


@dataclass(frozen=True)
class Mutation:
    """One line, and what is wrong with it.

    Attributes:
        name: room and bug.
        file: which is changed.
        old: a text that the file has exactly once.
        new: what stands there instead.
        tests: files below `tests`, or single tests of slow ones, that should notice.
    """

    name: str
    file: Path
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation.

    Attributes:
        noticed: whether a test failed.
        by: the first that did, or what else happened.
        seconds: that it took.
    """

    noticed: bool
    by: str
    seconds: float


def listed(path: Path = ROOT / "benchmarks" / "mutations.toml") -> tuple[Mutation, ...]:
    """The mutations of a list."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
    return tuple(
        Mutation(**row | {"file": Path(row["file"]), "tests": tuple(row["tests"])}) for row in rows
    )


MUTATIONS = listed()


def plant(text: str, mutation: Mutation) -> str:
    """The text of a file with the bug in it."""
    found = text.count(mutation.old)
    if found != 1:
        raise ValueError(
            f"mutation '{mutation.name}': {mutation.file} has its old text {found} times, expected "
            "once; the code has changed, so change the mutation, too"
        )
    return text.replace(mutation.old, mutation.new)


@contextmanager
def scratch_copy() -> Iterator[Path]:
    """A copy of the project whose sources can be changed."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name)
        for entry in ROOT.iterdir():
            if entry.name in COPIED:
                ignored = shutil.ignore_patterns("__pycache__", "_build")
                shutil.copytree(entry, folder / entry.name, ignore=ignored)
            elif entry.suffix == ".md":  # what the site links to is found by its resolved path
                shutil.copy(entry, folder)
            elif not entry.name.startswith(".") or entry.name == ".ci":
                (folder / entry.name).symlink_to(entry)
        yield folder


def run_tests(
    folder: Path, tests: Sequence[str], limit: float | None = LIMIT
) -> tuple[int | None, str]:
    """Exit code of pytest, None if it took too long, and what it printed."""
    # No bytecode: it is told apart by seconds and sizes, which a bug may share with what was right.
    environment = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    options = "-x", "-q", "-n0", "-p", "no:cacheprovider", "--tb=no"
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, env=os.environ | environment, timeout=limit, text=True,
            capture_output=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    if done.returncode not in (0, 1, 2):  # wrong arguments, or no tests
        raise RuntimeError(f"pytest {' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return done.returncode, done.stdout


def judge(folder: Path, mutation: Mutation) -> Verdict:
    """Plant a mutation in a scratch copy, see who notices, and take it back."""
    path, began = folder / mutation.file, time.monotonic()
    right = path.read_text()
    path.write_text(plant(right, mutation))
    try:
        code, output = run_tests(folder, mutation.tests)
    finally:
        path.write_text(right)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.M)
    by = "no end within the limit" if code is None else found[1] if found else ""
    return Verdict(code != 0, by, time.monotonic() - began)


def chosen(names: Sequence[str]) -> list[Mutation]:
    """Mutations whose names begin with one of these; all if there are none."""
    found = [m for m in MUTATIONS if m.name.startswith(tuple(names) or "")]
    if not found:
        raise SystemExit(f"no mutation is called {', '.join(names)}; --list shows all")
    return found


def require_healthy(folder: Path, mutations: Sequence[Mutation]) -> None:
    """Stop if the tests fail without any bug: what fails anyway notices nothing."""
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    code, output = run_tests(folder, tests, limit=None)
    if code != 0:
        raise SystemExit(f"the tests fail without any bug:\n{output}")


def show(verdicts: dict[Mutation, Verdict]) -> None:
    table = Table("bug", "noticed", "by")
    for mutation, verdict in verdicts.items():
        table.add_row(mutation.name, "yes" if verdict.noticed else "NO", verdict.by)
    console = Console()
    console.print(table)
    noticed = sum(verdict.noticed for verdict in verdicts.values())
    share = 100 * noticed / len(verdicts)
    console.print(f"{noticed} of {len(verdicts)} noticed, {share:.0f} %")


def planted(mutation: Mutation) -> dict[str, Any]:
    """A mutation as results name it."""
    return {
        "name": mutation.name,
        "file": mutation.file.as_posix(),
        "old": mutation.old,
        "new": mutation.new,
    }


def content(verdicts: dict[Mutation, Verdict], before: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is kept: verdicts of this run, and of an earlier one on what was not run now.

    Args:
        verdicts: of this run.
        before: rows of the earlier one. They hold as long as the same bug is planted.
    """
    found = {
        m: {**planted(m), "noticed": v.noticed, "by": v.by, "seconds": round(v.seconds, 1)}
        for m, v in verdicts.items()
    }
    known = {row["name"]: row for row in before}
    kept = {m: known[m.name] for m in MUTATIONS if m.name in known and m not in found}
    kept = {m: row for m, row in kept.items() if planted(m).items() <= row.items()}
    rows = [row for m in MUTATIONS if (row := found.get(m) or kept.get(m)) is not None]
    return {
        "command": "python benchmarks/mutations.py",
        "machine": machine(),
        "planted": len(rows),
        "noticed": sum(row["noticed"] for row in rows),
        "mutations": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="which; all if none is given")
    parser.add_argument("--list", action="store_true", help="show the names and end")
    parser.add_argument("--out", type=Path, default=Path("results/mutations.json"))
    options = parser.parse_args()
    mutations = chosen(options.names)
    if options.list:
        print(*(mutation.name for mutation in mutations), sep="\n")
        return
    out: Path = options.out
    before = json.loads(out.read_text())["mutations"] if options.names and out.exists() else []
    verdicts: dict[Mutation, Verdict] = {}
    with scratch_copy() as folder:
        require_healthy(folder, mutations)
        for number, mutation in enumerate(mutations, start=1):
            verdict = verdicts[mutation] = judge(folder, mutation)
            said = verdict.by if verdict.noticed else "NOT NOTICED"
            print(f"{number}/{len(mutations)} {mutation.name}: {said}", flush=True)
    show(verdicts)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content(verdicts, before), indent=1, allow_nan=False) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
