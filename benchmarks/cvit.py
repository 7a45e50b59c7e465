"""A call of CViT-S at the paper's grid: CPU seconds and peak memory, each in a fresh process.

128x256 cells, four fields, six frames, batch one. Peak memory includes Python and torch.

    python benchmarks/cvit.py [--quick] [--out results/cvit.json]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from outcome import save
from rich.console import Console
from rich.progress import track
from rich.table import Table

import overtone as ot
from overtone.models.cvit import build_cvit
from overtone.models.flops import call_flops
from overtone.version import machine

DOMAIN = ot.Domain(
    (128, 256), (1.0, 2.0), "periodic", ("tracer", "pressure", "velocity_x", "velocity_z"), 0.1
)
FRAMES = 6
SEED = 0


@dataclass(frozen=True)
class Case:
    """What is measured."""

    patch: int
    mode: str  # "forward", or "recompute", which is training with recomputed activations


def measure(case: Case) -> dict[str, Any]:
    """Run in a fresh process."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    training = case.mode == "recompute"
    model = build_cvit(domain=DOMAIN, size="s", context=FRAMES).train(training)
    model.checkpoint_activations(training)
    fields = torch.randn(1, FRAMES, len(DOMAIN.fields), *DOMAIN.shape).cumsum(dim=1)
    window = ot.Window(fields, DOMAIN)
    began = time.process_time()
    with torch.set_grad_enabled(training):
        change, _ = model.predict_change(window, case.patch, last_only=True)
        if training:
            change.square().mean().backward()
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    flops = call_flops(model, DOMAIN, case.patch, frames=FRAMES, training=training)
    return {
        **asdict(case),
        "cpu_seconds": seconds,
        "peak_memory_bytes": memory,
        "flops": flops,
        "num_parameters": model.num_parameters,
        "num_latents": model.decoder.latents.numel(),
    }


def run_apart(case: Case) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (case,))


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="CViT-S, 128x256, six frames, batch 1, one core")
    for column in ("patch", "mode", "CPU s", "GB", "GFLOP"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            str(row["patch"]),
            row["mode"],
            f"{row['cpu_seconds']:.2f}",
            f"{row['peak_memory_bytes'] / 1e9:.2f}",
            f"{row['flops'] / 1e9:.0f}",
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/cvit.json"))
    parser.add_argument("--quick", action="store_true", help="forward passes only")
    options = parser.parse_args()
    modes = ("forward",) if options.quick else ("forward", "recompute")
    cases = [Case(*case) for case in product((4, 8, 16), modes)]
    rows = [run_apart(case) for case in track(cases, description="measuring")]
    show(rows)
    content = {
        "command": "python benchmarks/cvit.py",
        "seed": SEED,
        "config": {"size": "s", "shape": DOMAIN.shape, "frames": FRAMES, "batch": 1, "threads": 1},
        "machine": machine(),
        "runs": rows,
    }
    save(options.out, content)


if __name__ == "__main__":
    main()
