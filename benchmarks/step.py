"""Forward, training step and rollout of a model: CPU seconds, memory, FLOPs, share of matmul peak.

The setting of the paper's shear flow at its smallest size: `7m`, 128x256 cells, six frames, batch
one, patches 4, 8 and 16; time folded, and attending as in the paper. A rollout is 40 steps of the
cycle 4-8-16. Every case runs in a process of its own, so that its peak memory is its
own; it includes Python and torch. FLOPs are those of matrix products, convolutions and attention,
counted by torch on the meta device. The machine's peak is that of a 2048² float32 product,
measured in the same process before and after.

glibc's malloc keeps freed blocks of up to 32 MB for itself and may not find them again, so training
steps are measured with it as it is, and with `MALLOC_MMAP_THRESHOLD_` set to 1 MiB, which returns
such blocks to the system at once, at the price of some page faults.

    python benchmarks/step.py [--quick] [--out results/step.json]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable
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
from overtone.models.architecture import Time
from overtone.models.flops import call_flops
from overtone.schedules import Patch, parse_schedule
from overtone.train.config import OptimizerConfig
from overtone.train.state import make_optimizer
from overtone.version import machine

DOMAIN = ot.Domain(
    (128, 256), (1.0, 2.0), "periodic", ("tracer", "pressure", "velocity_x", "velocity_z"), 0.1
)
FRAMES = 6
STEPS, CYCLE = 40, "4-8-16"
"""Length and schedule of a rollout."""
SEED = 0


@dataclass(frozen=True)
class Case:
    """What is measured."""

    time: Time
    processor: str
    tokenizer: str
    schedule: str  # one patch, or a cycle to roll out
    mode: str  # "forward", "train", "recompute" (training with recomputed activations), "rollout"
    malloc: str = "default"  # or "returning"

    @property
    def training(self) -> bool:
        """Whether the step has a gradient."""
        return self.mode in ("train", "recompute")

    @property
    def patches(self) -> list[Patch]:
        """Patch of each call of the model."""
        choose = parse_schedule(self.schedule)
        return [choose(step).patch for step in range(STEPS if self.mode == "rollout" else 1)]


def build(case: Case) -> ot.Emulator:
    patches = case.patches if case.tokenizer == "fixed" else (4, 8, 16)
    model = ot.build(
        case.processor,
        tokenizer=case.tokenizer,
        patches=patches,
        size="7m",
        domain=DOMAIN,
        context=FRAMES,
        time=case.time,
    )
    model.checkpoint_activations(case.mode == "recompute")
    return model.train(case.training)


def work(case: Case, model: ot.Emulator, window: ot.Window) -> Callable[[], None]:
    """The step to measure."""

    def forward() -> None:
        with torch.no_grad():
            model(window, case.patches[0])

    def roll_out() -> None:
        for _ in ot.rollout(model, window, steps=STEPS, schedule=case.schedule):
            pass

    def train() -> None:
        optimizer.zero_grad()
        change, _ = model.predict_change(window, case.patches[0])
        change.square().mean().backward()
        optimizer.step()

    if not case.training:
        return forward if case.mode == "forward" else roll_out
    optimizer = make_optimizer(model, OptimizerConfig())
    return train


def matmul_peak(repeats: int = 5) -> float:
    """FLOP/s of a 2048² product on one core."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        torch.mm(a, b)
        seconds.append(time.process_time() - began)
    return 2 * 2048**3 / min(seconds)


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """Run in a fresh process."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    fields = torch.randn(1, FRAMES, len(DOMAIN.fields), *DOMAIN.shape).cumsum(dim=1)
    model = build(case)
    step = work(case, model, ot.Window(fields, DOMAIN))
    peaks, seconds = [matmul_peak()], []
    step()
    for _ in range(repeats):
        began = time.process_time()
        step()
        seconds.append(time.process_time() - began)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peaks.append(matmul_peak())
    flops = sum(
        num * call_flops(model, DOMAIN, patch, frames=FRAMES, training=case.training)
        for patch, num in Counter(case.patches).items()
    )
    return {
        **asdict(case),
        "cpu_seconds": min(seconds),
        "cpu_seconds_median": statistics.median(seconds),
        "peak_memory_bytes": memory,
        "flops": flops,
        "matmul_peak_flops": max(peaks),
        "share_of_peak": flops / min(seconds) / max(peaks),
    }


def run_apart(case: Case, repeats: int) -> dict[str, Any]:
    os.environ.pop("MALLOC_MMAP_THRESHOLD_", None)
    if case.malloc == "returning":
        os.environ["MALLOC_MMAP_THRESHOLD_"] = str(2**20)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (case, repeats))


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="7m, 128x256, six frames, batch 1, one core")
    labels = ("time", "processor", "tokenizer", "schedule", "mode", "malloc")
    for column in (*labels, "CPU s", "GB", "GFLOP", "% of peak"):
        table.add_column(column, justify="left" if column in labels else "right")
    for row in rows:
        table.add_row(
            *(str(row[label]) for label in labels),
            f"{row['cpu_seconds']:.2f}",
            f"{row['peak_memory_bytes'] / 1e9:.2f}",
            f"{row['flops'] / 1e9:.0f}",
            f"{100 * row['share_of_peak']:.0f}",
        )
    Console().print(table)


def cases(quick: bool) -> list[Case]:
    """Folded and attending side by side for `vit` with CSM, folded alone for the others."""
    times: tuple[Time, ...] = ("fold", "attend")
    modes, patches = ("forward", "train", "recompute"), ("4", "8", "16")
    found = [Case(*c) for c in product(times, ("vit",), ("csm",), patches, modes)]
    found += [Case(time, "vit", "csm", CYCLE, "rollout") for time in times]
    found += [
        Case(time, "vit", "csm", "4", mode, "returning")
        for time, mode in product(times, ("train", "recompute"))
    ]
    others = [*product(("vit", "axial"), ("csm", "ckm", "fixed"))][1:]
    if not quick:
        found += [Case("fold", *o, p, m) for o, p, m in product(others, patches, modes)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/step.json"))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="vit and csm only, one repeat")
    options = parser.parse_args()
    repeats = 1 if options.quick else options.repeats
    rows = [run_apart(c, repeats) for c in track(cases(options.quick), description="measuring")]
    show(rows)
    content = {
        "command": "python benchmarks/step.py" + (" --quick" if options.quick else ""),
        "seed": SEED,
        "config": {"size": "7m", "shape": DOMAIN.shape, "frames": FRAMES, "batch": 1, "threads": 1},
        "machine": machine(),
        "runs": rows,
    }
    save(options.out, content)


if __name__ == "__main__":
    main()
