"""Memory of an evaluation: does it grow with the length of the rollouts?

Evaluations of 50 and of 500 steps, each in a fresh process, of an untrained model on random walks
of 32x32 cells. The data of both are the same file, so that only the number of steps differs. Peak
memory includes Python and torch. Most of what grows is HDF5's cache, which keeps up to 8 MiB of
each field of an open file and then no more. Run it with

    python benchmarks/evaluation.py [--out results/evaluation.json]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from outcome import save
from rich.console import Console

import overtone as ot
from overtone.data import FieldSpec, Header, WellWriter
from overtone.evaluate import evaluate
from overtone.version import machine

SHAPE = (32, 32)
FIELDS = (FieldSpec("pressure"), FieldSpec("velocity", 1))
TRAJECTORIES = 4
CONTEXT = 4
SCHEDULES = ("4-8",)
STEPS = (50, 500)
SEED = 0


def write_data(folder: Path, frames: int) -> None:
    """Fields that walk at random and are pulled back to zero."""
    random = np.random.default_rng(SEED)
    header = Header("benchmark", SHAPE, (1.0, 1.0), "periodic", dt=0.1)
    frame = random.standard_normal((TRAJECTORIES, 3, *SHAPE), np.float32)
    path = folder / "data" / "test" / "walk.hdf5"
    with WellWriter(path, header, FIELDS, TRAJECTORIES) as writer:
        for _ in range(frames):
            writer.append(frame)
            fresh = random.standard_normal(frame.shape, np.float32)
            frame = 0.99 * frame + 0.1 * fresh


def measure(folder: Path, steps: int) -> dict[str, Any]:
    """Run in a fresh process."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    fields = ("pressure", "velocity_x", "velocity_y")
    domain = ot.Domain(SHAPE, (1.0, 1.0), "periodic", fields, 0.1)
    model = ot.build(
        "vit", domain=domain, patches=(4, 8), context=CONTEXT, width=32, heads=2, blocks=2
    )
    began = time.perf_counter()
    results, _ = evaluate({"model": model}, folder, schedules=SCHEDULES, steps=steps, seed=SEED)
    seconds = time.perf_counter() - began
    assert len(results.models[0].runs[0].vrmse) == steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"steps": steps, "peak_memory_bytes": peak, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/evaluation.json"))
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), max(STEPS) + CONTEXT)
        for steps in STEPS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(measure, (Path(folder), steps)))
            row = rows[-1]
            Console().print(
                f"{steps} steps: {row['peak_memory_bytes'] / 1e6:.0f} MB, {row['seconds']:.0f} s"
            )
    growth = rows[-1]["peak_memory_bytes"] / rows[0]["peak_memory_bytes"]
    Console().print(f"memory of {STEPS[-1]} over that of {STEPS[0]} steps: {growth:.3f}")
    content = {
        "command": "python benchmarks/evaluation.py",
        "seed": SEED,
        "config": {
            "shape": SHAPE,
            "trajectories": TRAJECTORIES,
            "context": CONTEXT,
            "schedules": SCHEDULES,
            "threads": 1,
        },
        "machine": machine(),
        "runs": rows,
        "memory_growth": growth,
    }
    save(options.out, content)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
