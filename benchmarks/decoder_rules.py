"""Which decoder rule is better on validation data: the paper's, or the amplitude-keeping one?

Trains a tiny model with each tokenizer and each rule, on the same flows in the same order, and
compares on flows that were not trained on (nor are they the demo's test flows).

    python benchmarks/decoder_rules.py [--updates 600] [--out results/decoder_rules.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

import overtone as ot
from overtone import demo
from overtone.info import machine
from overtone.metrics import vrmse
from overtone.tokenizers.convolution import DECODER_RULES, DecoderRule

TRAIN_SEED, VALID_SEED = 1, 1001


def next_step_error(model: ot.Emulator, flows: Tensor, patch: int) -> float:
    """VRMSE of the next frame, averaged over flows, fields and starting times."""
    errors = []
    for start in range(0, flows.shape[1] - demo.CONTEXT, 8):
        stop = start + demo.CONTEXT
        with torch.no_grad():
            frame = model(ot.Window(flows[:, start:stop], model.domain), patch)
        errors.append(vrmse(frame, flows[:, stop], ndim=2).mean().item())
    return sum(errors) / len(errors)


def compare(
    tokenizer: str, rule: DecoderRule, flows: tuple[Tensor, Tensor], updates: int, bars: Progress
) -> dict[str, object]:
    torch.manual_seed(0)
    model = ot.build(
        tokenizer=tokenizer,
        patches=demo.PATCHES,
        domain=demo.domain(),
        context=demo.CONTEXT,
        decoder=rule,
    )
    demo.train(model, flows[0], updates, 0, bars)
    outcome = demo.evaluate(model, flows[1], "4-8-16", bars)
    return {
        "tokenizer": tokenizer,
        "rule": rule,
        "next_step": {p: next_step_error(model, flows[1], p) for p in demo.PATCHES},
        "cycle_10": outcome.mean_error(10),
        "cycle_40": outcome.mean_error(demo.STEPS),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("results/decoder_rules.json"))
    options = parser.parse_args()
    console = Console()
    with demo.bars(console) as bars:
        flows = (
            demo.simulate(bars, "simulating training flows", num=16, seed=TRAIN_SEED),
            demo.simulate(bars, "simulating validation flows", num=4, seed=VALID_SEED),
        )
        rows = [
            compare(tokenizer, rule, flows, options.updates, bars)
            for tokenizer in ("csm", "ckm")
            for rule in DECODER_RULES
        ]
    table = Table("tokenizer", "rule", "patch 4", "patch 8", "patch 16", "cycle, 10", "cycle, 40")
    for row in rows:
        errors = [*dict(row["next_step"]).values(), row["cycle_10"], row["cycle_40"]]  # type: ignore
        table.add_row(str(row["tokenizer"]), str(row["rule"]), *(f"{e:.4f}" for e in errors))
    console.print(table)
    content = {
        "command": f"python benchmarks/decoder_rules.py --updates {options.updates}",
        "seeds": {"train": TRAIN_SEED, "valid": VALID_SEED, "weights": 0},
        "metric": "VRMSE on validation flows",
        "machine": machine(),
        "runs": rows,
    }
    options.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
