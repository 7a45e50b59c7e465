"""Forward and training step of one model call: CPU seconds, memory, FLOPs, share of matmul peak.

The setting of the paper's shear flow at its smallest size: `7m`, 128x256 cells, six frames, batch
one, patches 4, 8 and 16. Every case runs in a process of its own, so that its peak memory is its
own; it includes Python and torch. FLOPs are those of matrix products, convolutions and attention,
counted by torch on the meta device. The machine's peak is that of a 2048² float32 product,
measured in the same process before and after.

    python benchmarks/step.py [--quick] [--out results/step.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

import overtone as ot
from overtone.info import gather

DOMAIN = ot.Domain(
    (128, 256), (1.0, 2.0), "periodic", ("tracer", "pressure", "velocity_x", "velocity_z"), 0.1
)
FRAMES = 6
SEED = 0


@dataclass(frozen=True)
class Case:
    """What is measured."""

    processor: str
    tokenizer: str
    patch: int
    mode: str  # "forward", "train" or "train, checkpointed"


def build(case: Case) -> ot.Emulator:
    patches = (case.patch,) if case.tokenizer == "fixed" else (4, 8, 16)
    model = ot.build(
        case.processor,
        tokenizer=case.tokenizer,
        patches=patches,
        size="7m",
        domain=DOMAIN,
        context=FRAMES,
    )
    model.checkpoint_activations("checkpointed" in case.mode)
    return model.train("train" in case.mode)


def work(case: Case, model: ot.Emulator, window: ot.Window) -> Callable[[], None]:
    """The step to measure."""

    def forward() -> None:
        with torch.no_grad():
            model(window, patch=case.patch)

    def train() -> None:
        optimizer.zero_grad()
        change, _ = model.predict_change(window, case.patch)
        change.square().mean().backward()
        optimizer.step()

    if case.mode == "forward":
        return forward
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return train


def count_flops(case: Case) -> int:
    with torch.device("meta"):
        model = build(case).train()
        window = ot.Window(torch.empty(1, FRAMES, len(DOMAIN.fields), *DOMAIN.shape), DOMAIN)
        counter = FlopCounterMode(display=False)
        with counter:
            if case.mode == "forward":
                model.predict_change(window, case.patch, last_only=True)
            else:
                model.predict_change(window, case.patch)[0].square().mean().backward()
    return counter.get_total_flops()


def matmul_peak(repeats: int = 5) -> float:
    """FLOP/s of a 2048² product on one core."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        torch.mm(a, b)
        seconds.append(time.process_time() - began)
    return 2 * 2048**3 / min(seconds)


def measure(case: Case, repeats: int) -> dict[str, object]:
    """Run in a fresh process."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    fields = torch.randn(1, FRAMES, len(DOMAIN.fields), *DOMAIN.shape).cumsum(dim=1)
    step = work(case, build(case), ot.Window(fields, DOMAIN))
    peaks, seconds = [matmul_peak()], []
    step()
    for _ in range(repeats):
        began = time.process_time()
        step()
        seconds.append(time.process_time() - began)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peaks.append(matmul_peak())
    flops = count_flops(case)
    return {
        **asdict(case),
        "cpu_seconds": min(seconds),
        "cpu_seconds_median": statistics.median(seconds),
        "peak_memory_bytes": memory,
        "flops": flops,
        "matmul_peak_flops": max(peaks),
        "share_of_peak": flops / min(seconds) / max(peaks),
    }


def run_apart(case: Case, repeats: int) -> dict[str, object]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (case, repeats))


def show(rows: list[dict[str, object]]) -> None:
    table = Table(title="7m, 128x256, six frames, batch 1, one core")
    columns = ("processor", "tokenizer", "patch", "mode", "CPU s", "GB", "GFLOP", "% of peak")
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:4] else "right")
    for row in rows:
        seconds, memory = float(str(row["cpu_seconds"])), int(str(row["peak_memory_bytes"]))
        flops, share = int(str(row["flops"])), float(str(row["share_of_peak"]))
        numbers = (
            f"{seconds:.2f}",
            f"{memory / 1e9:.2f}",
            f"{flops / 1e9:.0f}",
            f"{100 * share:.0f}",
        )
        table.add_row(*(str(row[c]) for c in columns[:4]), *numbers)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/step.json"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="vit and csm only, one repeat")
    options = parser.parse_args()
    processors = ("vit",) if options.quick else ("vit", "axial")
    tokenizers = ("csm",) if options.quick else ("csm", "ckm", "fixed")
    repeats = 1 if options.quick else options.repeats
    modes = ("forward", "train", "train, checkpointed")
    cases = [Case(*c) for c in product(processors, tokenizers, (4, 8, 16), modes)]
    rows = [run_apart(case, repeats) for case in track(cases, description="measuring")]
    show(rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "command": "python benchmarks/step.py",
        "seed": SEED,
        "config": {"size": "7m", "shape": DOMAIN.shape, "frames": FRAMES, "batch": 1, "threads": 1},
        "machine": gather(),
        "runs": rows,
    }
    options.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
