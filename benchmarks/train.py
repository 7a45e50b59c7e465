"""Updates per second of a `mini` recipe, and how long it waits for data.

The shear-flow miniature, as `overtone train` runs it, with one and two threads, with and without
`torch.compile`, and with data read in the training process or in a worker. Every case runs in a
process of its own; the first updates, in which graphs are compiled, are not counted.

    python benchmarks/train.py [--updates 40] [--out results/train.json]
"""

from __future__ import annotations

import argparse
import io
import itertools
import multiprocessing
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outcome import save
from rich.console import Console
from rich.progress import track
from rich.table import Table

from overtone.train.journal import read_journal
from overtone.train.recipes import recipe
from overtone.train.run import train
from overtone.train.settings import change
from overtone.version import machine

RECIPE = "shear-flow-mini"
WARM_UP = 12


@dataclass(frozen=True)
class Case:
    """What is measured."""

    threads: int
    compile: bool
    workers: int


CASES = [
    Case(threads, compiled, workers)
    for threads in (1, 2)
    for compiled in (False, True)
    for workers in (0, 1)
    if not (compiled and workers)
]


def measure(case: Case, updates: int) -> dict[str, Any]:
    """Run in a fresh process."""
    config = change(
        recipe(RECIPE),
        {
            "train.threads": case.threads,
            "train.compile": case.compile,
            "train.updates": updates + WARM_UP,
            "data.workers": case.workers,
            "valid.every": 10 * updates + WARM_UP,
            "valid.windows": 1,
            "valid.rollout_steps": 0,
            "save.every": 10 * updates,
            "log.every": 1,
            "log.tensorboard": False,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        train(config, Path(folder) / "run", console=Console(file=io.StringIO()))
        seconds = time.perf_counter() - began
        lines = read_journal(Path(folder) / "run" / "metrics.jsonl")
    lines = [line for line in lines if line["kind"] == "train"]
    spent = [b["seconds"] - a["seconds"] for a, b in itertools.pairwise(lines)]
    waiting = [line["waiting_for_data"] / line["updates_per_second"] for line in lines]
    patches = [line["patch"] for line in lines]
    later = range(WARM_UP, len(lines) - 1)
    return {
        **asdict(case),
        "updates_per_second": len(later) / sum(spent[i] for i in later),
        "seconds_by_patch": {
            patch: statistics.median(spent[i] for i in later if patches[i + 1] == patch)
            for patch in sorted({patches[i + 1] for i in later}, key=int)
        },
        "waiting_for_data": sum(waiting[i + 1] for i in later) / sum(spent[i] for i in later),
        "seconds_in_all": seconds,
    }


def run_apart(case: Case, updates: int) -> dict[str, Any]:
    # Not a pool of multiprocessing's own: its processes may not have workers.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, case, updates).result()


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title=f"{RECIPE}: updates of 8 windows on 64x64 cells")
    for column in ("threads", "compile", "workers", "updates/s", "by patch, s", "waiting, %"):
        table.add_column(column, justify="right")
    for row in rows:
        patches = "  ".join(f"{p}: {s:.2f}" for p, s in row["seconds_by_patch"].items())
        table.add_row(
            str(row["threads"]),
            "yes" if row["compile"] else "no",
            str(row["workers"]),
            f"{row['updates_per_second']:.2f}",
            patches,
            f"{100 * row['waiting_for_data']:.1f}",
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/train.json"))
    parser.add_argument("--updates", type=int, default=40)
    options = parser.parse_args()
    rows = [run_apart(case, options.updates) for case in track(CASES, description="measuring")]
    show(rows)
    content = {
        "command": f"python benchmarks/train.py --updates {options.updates}",
        "seed": recipe(RECIPE).train.seed,
        "config": recipe(RECIPE).model_dump(mode="json"),
        "machine": machine(),
        "runs": rows,
    }
    save(options.out, content)


if __name__ == "__main__":
    main()
