"""Tables of `results/assess.json`: estimates as instruments, and controllers.

Numbers of several models, one of each seed, are means, with the lowest and the highest in brackets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.page.assess_equal import aim, candidates, equal, verdict
from studies.page.assess_rows import (
    COMMAND,
    FILE,
    PLAN,
    kind_of,
    mean,
    mean_of,
    number,
    read,
    rule_name,
    sets,
    table,
)
from studies.page.blocks import PageError


def instrument(systems: dict[str, Any]) -> str:
    """Every set of every system: how well estimates follow the truth."""
    rows = []
    for name, models in systems.items():
        for what, kinds in models[0]["instrument"].items():
            for kind in kinds:
                if kind.endswith("beyond") and what != "test":
                    continue
                own = [model["instrument"][what][kind] for model in models]
                rows.append([
                    name.removesuffix("-mini"), what, kind,
                    mean(own, lambda q: q["correlation"]), mean(own, lambda q: q["by_step"]),
                    mean(own, lambda q: q["ratio"]),
                    mean(own, lambda q: 100 * float(q["coverage"].get("0.5", "nan")), 0),
                    mean(own, lambda q: 100 * float(q["coverage"].get("0.9", "nan")), 0),
                    mean(own, lambda q: q["sharpness"].get("0.9", "nan"), 1),
                    mean(own, lambda q: q.get("maps", "nan")),
                ])  # fmt: skip
    return table(
        ("system", "input", "compared with, steps", "correlation", "at one step",
         "estimate / error", "in 50 %, %", "in 90 %, %", "width of 90 %, ×", "maps"),
        rows, 3,
    )  # fmt: skip


def detection(systems: dict[str, Any]) -> str:
    """How surely a first step tells a strange input."""
    rows = [
        [name.removesuffix("-mini"), what,
         mean(models, lambda m, what=what: m["detection"][what]["area"]),
         mean(models, lambda m, what=what: 100 * m["detection"][what]["found"][2], 0)]
        for name, models in systems.items() for what in models[0]["detection"]
    ]  # fmt: skip
    header = ("system", "input", "area below the curve", "found at 10 % false alarms, %")
    return table(header, rows, 2)


def _compared(system: str, what: str, models: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The rows of one set.

    Args:
        system, what: its name, and the set's.
        models: rows by name, for each model.
    """
    rows = []
    for name in models[0]:
        own = [rules[name] for rules in models if name in rules]
        rows.append([
            system.removesuffix("-mini"), what, rule_name(name, own),
            mean(own, lambda r: r["tokens"], 0), mean(own, lambda r: r["early"], 3),
            mean(own, lambda r: r["error"], 3), mean(own, lambda r: r["worst"], 3),
            mean(own, lambda r: _if_any(r, "open_loop"), 3),
            mean(own, lambda r: _if_any(r, "open_loop_worst"), 3),
        ])  # fmt: skip
    return rows


def _if_any(row: dict[str, Any], what: str) -> float:
    """What open loops reach; NaN where none costs so little."""
    value = float(row.get(what, "nan"))
    return value if math.isfinite(value) else math.nan


COMPARED = ("system", "set", "rule", "tokens", "VRMSE, 10 steps", "all steps", "worst trajectory",
            "best open loop at these tokens", "its worst")  # fmt: skip


def control(systems: dict[str, Any]) -> str:
    """Every rule on every set: errors, tokens, and what open-loop schedules reach with as many."""
    rows = [row for name, what, models in sets(systems) for row in _compared(name, what, models)]
    return table(COMPARED, rows, 3)


def tried(systems: dict[str, Any]) -> str:
    """The same on a set for trying things out."""
    rows = [row for name, rules in systems.items() for row in _compared(name, "tried", [rules])]
    return table(COMPARED, rows, 3)


BLOCKS = ((0, 1), (1, 10), (10, 20), (20, 30), (30, 40))
"""Steps whose tokens are averaged."""


def tokens(systems: dict[str, Any]) -> str:
    """Tokens of a step, by when it comes, of the plan and of controllers."""
    rows = []
    for name, what, models in sets(systems):
        for rule, first in models[0].items():
            if kind_of(rule, first) in (PLAN, "adaptive", "sparing"):
                own = [model[rule] for model in models]
                parts = [mean(own, lambda r, a=a, b=b: mean_of(
                            [float(v) for v in r["tokens_by_step"][a:b]]), 0)
                         for a, b in BLOCKS]  # fmt: skip
                rows.append([name.removesuffix("-mini"), what, rule_name(rule, own), *parts])
    header = [f"step {a + 1}" if b == a + 1 else f"{a + 1} to {b}" for a, b in BLOCKS]
    return table(("system", "set", "rule", *header), rows, 3)


def signals(systems: dict[str, Any]) -> str:
    """Which cheap number of a first step tells what fine patches gain over the whole rollout."""
    names = [*next(iter(systems.values()))]
    rows = [[name.removesuffix("-mini"), *(number(own[key], 2) for key in names)]
            for name, own in systems.items()]  # fmt: skip
    return table(("system", *names), rows, 1)


KINDS = {"assess-instrument": instrument, "assess-detection": detection,
         "assess-control": control, "assess-verdict": verdict, "assess-equal": equal,
         "assess-aim": aim, "assess-tokens": tokens, "assess-tried": tried,
         "assess-candidates": candidates, "assess-signals": signals}  # fmt: skip
PARTS = {"assess-tried": "tried", "assess-candidates": "tried", "assess-signals": "signals"}
"""Tables -> part of the file, if not `systems`."""


def render(kind: str, names: Sequence[str], folder: Path) -> str:
    """A table of the study, for some systems or all.

    Args:
        kind: one of `KINDS`.
        names: of systems; all if empty.
        folder: of results.
    """
    content = read(folder)
    part = PARTS.get(kind, "systems")
    known = {} if content is None else content.get(part, {})
    if content is not None and (strange := [name for name in names if name not in known]):
        raise PageError(f"{FILE} has no system '{strange[0]}'; there are {', '.join(known)}")
    chosen = {name: known[name] for name in names or known if name in known}
    if not chosen:
        option = "--tried " * (part != "systems")
        return f"not run yet: `{COMMAND} {option}{names[0] if names else 'SYSTEM'}`"
    made = KINDS[kind](chosen)
    seeds = max(len(own) for own in chosen.values()) if part == "systems" else 1
    return made + f"\n\nMeans of {seeds} seeds." * (seeds > 1)
