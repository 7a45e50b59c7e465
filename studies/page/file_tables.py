"""Tables of files that are no study's archive: residuals by reading, what a step costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from overtone.errors import DataError
from overtone.report.summary import number
from studies import cost, residuals
from studies.page.blocks import PageError
from studies.page.markdown import Column, code, percent, table

PAPER = {
    ("mass", "csm:4-8-16"): 7.6,
    ("mass", "ckm:4-8-16"): 6.7,
    ("momentum", "csm:4-8-16"): 0.5,
    ("momentum", "ckm:4-8-16"): 0.75,
}
"""Law and rollout -> deviation in per cent that the paper states in its appendix H."""

STEP_MODES = {"forward": "forward", "train": "training step"}


def residual_table(content: Mapping[str, Any]) -> str:
    """Each law and rollout: the paper's number, ours by every reading, and the balance."""
    names = list(content["truth"])
    rows = [(law, name) for law in residuals.LAWS for name in content["models"]]

    def share(row: tuple[str, str], reading: str, quantity: str) -> str:
        return percent(100 * content["models"][row[1]][reading][row[0]][quantity])

    def divergent(row: tuple[str, str]) -> str:
        """A matter of mass alone."""
        return percent(100 * content["models"][row[1]]["divergent"]) if row[0] == "mass" else "–"

    columns = [
        Column[tuple[str, str]]("law", lambda row: row[0], left=True),
        Column[tuple[str, str]]("model", lambda row: row[1].partition(":")[0], left=True),
        Column[tuple[str, str]]("schedule", lambda row: code(row[1].partition(":")[2]), left=True),
        Column[tuple[str, str]](
            "the paper", lambda row: f"{PAPER[row]:g} %" if row in PAPER else "–"
        ),
        *(
            Column[tuple[str, str]](name, lambda row, name=name: share(row, name, "deviation"))
            for name in names
        ),
        Column[tuple[str, str]]("balance", lambda row: share(row, names[0], "balance")),
        Column[tuple[str, str]]("divergent part of the error", divergent),
    ]
    return table(rows, columns)


def truth_table(content: Mapping[str, Any]) -> str:
    """How much of the terms the truth itself leaves over, by every reading."""
    columns = [
        Column[str]("law", lambda law: law, left=True),
        *(
            Column[str](name, lambda law, name=name: percent(100 * content["truth"][name][law]))
            for name in content["truth"]
        ),
    ]
    return table(list(residuals.LAWS), columns)


def cost_table(content: Mapping[str, Any]) -> str:
    """Tokens and GFLOP of a call at each patch, and PFLOP of the whole training."""
    rows = content["rows"]
    patches = list(dict.fromkeys(patch for row in rows for patch in row["tokens"]))

    def call(row: Mapping[str, Any], patch: str) -> str:
        return f"{row['tokens'][patch]:,}; {number(row['flops'][patch] / 1e9)}"

    columns = [
        Column[Any]("grid of", lambda row: row["dataset"], left=True),
        Column[Any]("size", lambda row: code(row["size"]), left=True),
        Column[Any]("frames", lambda row: f"{row['frames']}, {row['time']}", left=True),
        *(
            Column[Any](f"patch {patch}", lambda row, patch=patch: call(row, patch))
            for patch in patches
        ),
        Column[Any]("training, PFLOP", lambda row: number(row["training_flops"] / 1e15)),
    ]
    return table(rows, columns)


def step_table(content: Mapping[str, Any]) -> str:
    """GFLOP, CPU seconds and peak memory of one call on one core, by patch."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for run in content["runs"]:
        if run["mode"] in STEP_MODES and run["malloc"] == "default":
            sizes = (run["flops"], run["cpu_seconds"], run["peak_memory_bytes"])
            gflop, seconds, gigabytes = sizes[0] / 1e9, sizes[1], sizes[2] / 1e9
            own = found.setdefault((run["mode"], run["time"]), {})
            own[run["schedule"]] = f"{number(gflop)}; {seconds:.2f} s; {gigabytes:.2f} GB"
    patches = list(dict.fromkeys(patch for own in found.values() for patch in own))
    columns = [
        Column[tuple[str, str]]("call", lambda row: STEP_MODES[row[0]], left=True),
        Column[tuple[str, str]]("frames", lambda row: row[1], left=True),
        *(
            Column[tuple[str, str]](
                f"patch {patch}", lambda row, patch=patch: found[row].get(patch, "–")
            )
            for patch in patches
        ),
    ]
    return table(list(found), columns)


Make = Callable[[Mapping[str, Any]], str]
KINDS: dict[str, tuple[str, str, Make]] = {
    "residuals": (residuals.FILE, residuals.COMMAND, residual_table),
    "truth-residuals": (residuals.FILE, residuals.COMMAND, truth_table),
    "cost": (cost.FILE, cost.COMMAND, cost_table),
    "step-cost": ("step.json", "python benchmarks/step.py", step_table),
}
"""Kind -> its file, the command that writes it, and the table."""


def render(kind: str, names: Sequence[str], folder: Path) -> str:
    """A table of a file.

    Args:
        kind: one of `KINDS`.
        names: none.
        folder: of results.
    """
    file, command, make = KINDS[kind]
    if names:
        raise PageError(f"table '{kind}' takes no names; given: {', '.join(names)}")
    path = folder / file
    if not path.exists():
        return f"not run yet: `{command}`"
    try:
        return make(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"'{path}' can't be read as what `{command}` writes: {error}") from error
