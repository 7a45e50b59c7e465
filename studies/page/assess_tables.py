"""Tables and the picture of `results/assess.json`: estimates as instruments, and controllers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from overtone.errors import DataError
from overtone.report.figures.band import Banded, error_band
from overtone.report.style import NothingToDraw
from studies.page.blocks import PageError

FILE = "assess.json"
COMMAND = "python -m studies assess"


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


def _rule(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """A rule's string form; its name where it differs from seed to seed."""
    forms = {row.get("rule", name) for row in rows}
    return f"`{forms.pop()}`" if len(forms) == 1 else f"{name} (tolerance of each seed)"


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
            _mean(own, lambda r: r.get("perfect", "nan"), 3),
        ])  # fmt: skip
    return rows


COMPARED = ("system", "set", "rule", "tokens", "VRMSE, 10 steps", "all steps", "worst trajectory",
            "best open loop at these tokens", "its worst", "perfect choice")  # fmt: skip


def control(systems: dict[str, Any]) -> str:
    """Every rule on every set: errors, tokens, and what open-loop schedules reach with as many."""
    rows = [
        row
        for name, models in systems.items()
        for what in models[0]["control"]
        for row in _compared(name, what, [model["control"][what] for model in models])
    ]
    return _table(COMPARED, rows, 3)


def tried(systems: dict[str, Any]) -> str:
    """The same on a set for trying things out."""
    rows = [row for name, rules in systems.items() for row in _compared(name, "tried", [rules])]
    return _table(COMPARED, rows, 3)


KINDS = {"assess-instrument": instrument, "assess-detection": detection,
         "assess-control": control, "assess-tried": tried}  # fmt: skip


def render(kind: str, names: Sequence[str], folder: Path) -> str:
    """A table of the study, for some systems or all.

    Args:
        kind: one of `KINDS`.
        names: of systems; all if empty.
        folder: of results.
    """
    content = read(folder)
    part = "tried" if kind == "assess-tried" else "systems"
    known = {} if content is None else content.get(part, {})
    if content is not None and (strange := [name for name in names if name not in known]):
        raise PageError(f"{FILE} has no system '{strange[0]}'; there are {', '.join(known)}")
    chosen = {name: known[name] for name in names or known if name in known}
    if not chosen:
        option = "--tried " * (part == "tried")
        return f"not run yet: `{COMMAND} {option}{names[0] if names else 'SYSTEM'}`"
    return KINDS[kind](chosen)


def picture(folder: Path, what: str = "test") -> Figure:
    """A rollout of two systems with its band and the true error, and the patches below.

    Args:
        folder: of the results.
        what: the set of flows; of its rollouts, the ones whose patch changes most often are drawn.
    """
    content = read(folder)
    if content is None:
        raise NothingToDraw(f"there is no {FILE}; run `{COMMAND} SYSTEM`")
    shown = []
    examples = [(name, models[0]["example"].get(what))
                for name, models in content["systems"].items()]  # fmt: skip
    for name, found in sorted(examples, key=lambda own: -own[1]["changes"] if own[1] else 0):
        if found:
            bounds = {float(level): (_floats(pair[0]), _floats(pair[1]))
                      for level, pair in found["bounds"].items()}  # fmt: skip
            title = f"{name.removesuffix('-mini')}, {found['rule']}"
            shown.append(Banded(title, _floats(found["error"]), _floats(found["value"]), bounds,
                                found["patches"], content["horizon"]))  # fmt: skip
    return error_band(shown[:2])


def _floats(values: Sequence[Any]) -> list[float]:
    return [float(value) for value in values]
