"""What a trajectory costs: CPU seconds of every built-in system at its default grid.

Each system runs in a process of its own, on one thread, with several trajectories in a batch and
as many frames as The Well's dataset of that name has (200 where there is none).

    python benchmarks/solvers.py [--only shear_flow ...] [--out results/solvers.json]
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path
from typing import Any

import torch
from outcome import save
from pictures import FRAMES
from rich.console import Console
from rich.progress import track
from rich.table import Table

from overtone.solvers import SYSTEMS
from overtone.version import machine

SEED = 0
BATCH = {"supernova_explosion": 4, "turbulence_gravity_cooling": 4, "active_matter": 4}


def measure(name: str) -> dict[str, Any]:
    """Run one system in a fresh process."""
    torch.set_num_threads(1)
    system = SYSTEMS[name]()  # every setting of a built-in system has a default
    num, frames = BATCH.get(name, 8), FRAMES.get(name, 200)
    began = time.process_time()
    for _ in system.trajectory(num, frames, seed=SEED):
        pass
    return {
        "system": name,
        "shape": system.shape,
        "frames": frames,
        "batch": num,
        "cpu_seconds_per_trajectory": (time.process_time() - began) / num,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--out", type=Path, default=Path("results/solvers.json"))
    options = parser.parse_args()
    rows = []
    for name in track(options.only, description="simulating"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, (name,)))
    table = Table("system", "grid", "frames", "batch", "CPU s per trajectory")
    for row in rows:
        grid = "x".join(map(str, row["shape"]))
        seconds = f"{row['cpu_seconds_per_trajectory']:.2f}"
        table.add_row(row["system"], grid, str(row["frames"]), str(row["batch"]), seconds)
    Console().print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "command": "python benchmarks/solvers.py",
        "seed": SEED,
        "machine": machine(),
        "runs": rows,
    }
    save(options.out, content)


if __name__ == "__main__":
    main()
