"""Seconds of a step: the eager model, compiled, and exported in every format, in one run.

A packaged model, one sample, each of its patches. Every way is timed on one core in turns, so that
what else the machine is doing falls on all of them alike, and in CPU seconds of this process; the
numbers are medians over the rounds. ONNX Runtime has one thread, too. What it takes to make a way,
to trace, translate and compile, is given beside, with the time of the compilers that it starts.

    python benchmarks/export.py [--model NAME] [--rounds 15] [--out results/export.json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

import overtone as ot
from overtone.errors import ExportError
from overtone.export.formats import FORMATS, Format, quiet, require_format
from overtone.export.program import moved_axes, trace, waves
from overtone.files import replacing
from overtone.models.base import Model
from overtone.schedules import Patch
from overtone.version import machine, package_version

Step = Callable[[], object]


def steps(model: Model, patch: Patch, folder: Path) -> tuple[dict[str, Step], dict[str, float]]:
    """Ways of one step, and what it took to make each, in CPU seconds of all processes."""
    window = waves(model.domain, model.context, samples=1)
    shift = torch.zeros(model.domain.ndim, dtype=torch.int64)
    given = shift if any(moved_axes(model, model.domain)) else None
    compiled = torch.compile(model)
    ways: dict[str, Step] = {"eager": lambda: model(window, patch)}
    made = {"eager": 0.0, "compiled": _cost(lambda: compiled(window, patch))}
    ways["compiled"] = lambda: compiled(window, patch)
    with quiet():
        for kind, how in FORMATS.items():
            try:
                require_format(kind)
            except ExportError as error:
                print(error)
                continue
            path = folder / f"{kind}-{patch}{how.suffix}"
            made[kind] = _cost(lambda how=how, path=path: write(model, patch, how, path))
            call = how.load(path)
            ways[kind] = lambda call=call: call(window.fields, given)
    return ways, made


def write(model: Model, patch: Patch, how: Format, path: Path) -> None:
    """A program as `overtone export` writes it: with the complex numbers that a format knows."""
    how.write(trace(model, model.domain, patch, exact=how.exact), path)


def _clock() -> float:
    """CPU seconds of this process and of those that it started, such as compilers."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _cost(work: Step) -> float:
    began = _clock()
    work()
    return _clock() - began


def measure(model: Model, patch: Patch, rounds: int) -> list[dict[str, object]]:
    with TemporaryDirectory() as folder, torch.no_grad():
        ways, made = steps(model, patch, Path(folder))
        found: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 2):
            for name, step in ways.items():
                began = time.process_time()
                step()
                if turn >= 2:  # the first ones warm up
                    found[name].append(time.process_time() - began)
    return [
        {"patch": patch, "way": name, "cpu_seconds": round(statistics.median(values), 5),
         "making": round(made[name], 1)}
        for name, values in found.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="shear-flow-mini-csm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--patches", type=int, nargs="*")
    parser.add_argument("--out", type=Path, default=Path("results/export.json"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = ot.load(given.model)
    runs = []
    for patch in given.patches or model.patches:
        runs += measure(model, patch, given.rounds)
        print(*runs[-5:], sep="\n", flush=True)
    versions = {name: package_version(name) for name in ("onnx", "onnxruntime")}
    content = {
        "model": given.model,
        "shape": list(model.domain.shape),
        "context": model.context,
        "rounds": given.rounds,
        "runs": runs,
        "machine": machine() | versions,
    }
    with replacing(given.out) as scratch:
        scratch.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
