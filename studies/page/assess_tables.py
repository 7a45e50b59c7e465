"""Tables of `results/assess.json`: estimates as instruments, and controllers.

Numbers of several models, one of each seed, are means, with the lowest and the highest in brackets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from overtone.errors import DataError
from studies.page.blocks import PageError
from studies.page.markdown import percent

FILE = "assess.json"
COMMAND = "python -m studies assess"
PLAN = "plan"
"""Name of the rule that a plan is."""


def read(folder: Path) -> dict[str, Any] | None:
    """What was measured; None if nothing was."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise DataError(f"'{path}' can't be read: {error}") from error


def _number(value: Any, digits: int = 3) -> str:
    value = float(value)
    return f"{value:.{digits}g}" if math.isfinite(value) else "–"


def _mean(rows: Sequence[Any], pick: Callable[[Any], Any], digits: int = 2) -> str:
    """Mean over models, with the lowest and the highest of several."""
    values = [float(pick(row)) for row in rows]
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return "–"
    mean = f"{sum(values) / len(values):.{digits}f}"
    ends = f" ({min(values):.{digits}f} to {max(values):.{digits}f})"
    return mean + (ends if len(values) > 1 else "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    rule = ["---" if i < texts else "---:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


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
                    _mean(own, lambda q: q["correlation"]), _mean(own, lambda q: q["by_step"]),
                    _mean(own, lambda q: q["ratio"]),
                    _mean(own, lambda q: 100 * float(q["coverage"].get("0.5", "nan")), 0),
                    _mean(own, lambda q: 100 * float(q["coverage"].get("0.9", "nan")), 0),
                    _mean(own, lambda q: q["sharpness"].get("0.9", "nan"), 1),
                    _mean(own, lambda q: q.get("maps", "nan")),
                ])  # fmt: skip
    return _table(
        ("system", "input", "compared with, steps", "correlation", "at one step",
         "estimate / error", "in 50 %, %", "in 90 %, %", "width of 90 %, ×", "maps"),
        rows, 3,
    )  # fmt: skip


def detection(systems: dict[str, Any]) -> str:
    """How surely a first step tells a strange input."""
    rows = [
        [name.removesuffix("-mini"), what,
         _mean(models, lambda m, what=what: m["detection"][what]["area"]),
         _mean(models, lambda m, what=what: 100 * m["detection"][what]["found"][2], 0)]
        for name, models in systems.items() for what in models[0]["detection"]
    ]  # fmt: skip
    header = ("system", "input", "area below the curve", "found at 10 % false alarms, %")
    return _table(header, rows, 2)


LONGEST = 40
"""Characters of a schedule that a table shows; the file has all of it."""


def _rule(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """A rule's string form; its name where it differs from seed to seed."""
    forms = {row.get("rule", name) for row in rows}
    if len(forms) > 1:
        return f"{name} (each seed's own)"
    form = forms.pop()
    shown = f"`{form if len(form) <= LONGEST else form[: LONGEST - 1] + '…'}`"
    return f"plan: {shown}" if name == PLAN else shown


def kind_of(name: str, row: dict[str, Any]) -> str:
    """`plan`, or the first word of a rule's string form, which controllers have."""
    return name if name == PLAN else str(row.get("rule", name)).partition("+")[0].partition(":")[0]


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
            system.removesuffix("-mini"), what, _rule(name, own),
            _mean(own, lambda r: r["tokens"], 0), _mean(own, lambda r: r["early"], 3),
            _mean(own, lambda r: r["error"], 3), _mean(own, lambda r: r["worst"], 3),
            _mean(own, lambda r: r.get("open_loop", "nan"), 3),
            _mean(own, lambda r: r.get("open_loop_worst", "nan"), 3),
        ])  # fmt: skip
    return rows


COMPARED = ("system", "set", "rule", "tokens", "VRMSE, 10 steps", "all steps", "worst trajectory",
            "best open loop at these tokens", "its worst")  # fmt: skip


def control(systems: dict[str, Any]) -> str:
    """Every rule on every set: errors, tokens, and what open-loop schedules reach with as many."""
    rows = [row for name, what, models in _sets(systems) for row in _compared(name, what, models)]
    return _table(COMPARED, rows, 3)


def _sets(systems: dict[str, Any]) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """System, set, and of each model the rows of that comparison by name."""
    return [
        (name, what, [model["control"][what] for model in models])
        for name, models in systems.items()
        for what in models[0]["control"]
    ]


def tried(systems: dict[str, Any]) -> str:
    """The same on a set for trying things out."""
    rows = [row for name, rules in systems.items() for row in _compared(name, "tried", [rules])]
    return _table(COMPARED, rows, 3)


AGAINST = (("early", "open_loop_early"), ("error", "open_loop"), ("worst", "open_loop_worst"),
           ("error", "constant"), ("perfect", "open_loop"))  # fmt: skip
"""Numbers of a controller's row, and what each is set against."""


def verdict(systems: dict[str, Any]) -> str:
    """Each controller against open loops at its own tokens: a change for each tolerance."""
    rows = []
    for name, what, models in _sets(systems):
        for kind in ("adaptive", "sparing"):
            own = [[model[rule] for model in models]
                   for rule, row in models[0].items() if kind_of(rule, row) == kind]  # fmt: skip
            if own:
                tokens = [_mean_of([float(row["tokens"]) for row in place]) for place in own]
                cells = [" / ".join(_change(place, one, other) for place in own)
                         for one, other in AGAINST]  # fmt: skip
                spent = f"{min(tokens):,.0f} to {max(tokens):,.0f}"
                rows.append([name.removesuffix("-mini"), what, f"`{kind}`", spent, *cells])
    return _table(
        ("system", "set", "controller", "tokens", "10 steps", "all steps", "worst trajectory",
         "against constants", "perfect choice"), rows, 3,
    )  # fmt: skip


def _mean_of(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else math.nan


def _change(rows: Sequence[dict[str, Any]], one: str, other: str) -> str:
    """How far a number is above another of the same row, mean over models."""
    return percent(100 * _mean_of(changes(rows, one, other)), signed=True)


def changes(rows: Sequence[dict[str, Any]], one: str, other: str) -> list[float]:
    """For each row, by what share a number is above another; NaN where there is no other."""
    return [float(row.get(one, "nan")) / float(row.get(other, "nan")) - 1 for row in rows]


def aim(systems: dict[str, Any]) -> str:
    """Patch 4's error at half of its tokens: who comes next to it, and who has it for least."""
    rows = []
    for name, what, models in _sets(systems):
        means = {rule: (_mean_of([float(m[rule]["tokens"]) for m in models]),
                        _mean_of([float(m[rule]["error"]) for m in models]))
                 for rule in models[0]}  # fmt: skip
        first = next(iter(means))
        tokens, error = means[first]
        half = {rule: e for rule, (t, e) in means.items() if t <= tokens / 2}
        best = min(half, key=lambda rule: half[rule])
        equal = {rule: t for rule, (t, e) in means.items() if e <= error}
        least = min(equal, key=lambda rule: equal[rule])
        rows.append([
            name.removesuffix("-mini"), what, f"{error:.3f}", f"{tokens:,.0f}",
            _rule(best, [m[best] for m in models]), percent(100 * (half[best] / error - 1),
                                                            signed=True),
            "–" if least == first else _rule(least, [m[least] for m in models]),
            percent(100 * equal[least] / tokens),
        ])  # fmt: skip
    return _table(
        ("system", "set", "patch 4", "its tokens", "best within half of them", "against patch 4",
         "cheapest that is as good", "its tokens, of patch 4's"), rows, 2,
    )  # fmt: skip


BLOCKS = ((0, 1), (1, 10), (10, 20), (20, 30), (30, 40))
"""Steps whose tokens are averaged."""


def tokens(systems: dict[str, Any]) -> str:
    """Tokens of a step, by when it comes, of the plan and of controllers."""
    rows = []
    for name, what, models in _sets(systems):
        for rule, first in models[0].items():
            if kind_of(rule, first) in (PLAN, "adaptive", "sparing"):
                own = [model[rule] for model in models]
                parts = [_mean(own, lambda r, a=a, b=b: _mean_of(
                            [float(v) for v in r["tokens_by_step"][a:b]]), 0)
                         for a, b in BLOCKS]  # fmt: skip
                rows.append([name.removesuffix("-mini"), what, _rule(rule, own), *parts])
    header = [f"step {a + 1}" if b == a + 1 else f"{a + 1} to {b}" for a, b in BLOCKS]
    return _table(("system", "set", "rule", *header), rows, 3)


def signals(systems: dict[str, Any]) -> str:
    """Which cheap number of a first step tells what fine patches gain over the whole rollout."""
    names = [*next(iter(systems.values()))]
    rows = [[name.removesuffix("-mini"), *(_number(own[key], 2) for key in names)]
            for name, own in systems.items()]  # fmt: skip
    return _table(("system", *names), rows, 1)


KINDS = {"assess-instrument": instrument, "assess-detection": detection,
         "assess-control": control, "assess-verdict": verdict, "assess-aim": aim,
         "assess-tokens": tokens, "assess-tried": tried, "assess-signals": signals}  # fmt: skip
PARTS = {"assess-tried": "tried", "assess-signals": "signals"}
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
