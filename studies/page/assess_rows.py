"""Rows of `results/assess.json`, and how their numbers are written, for tables and sentences.

Numbers of several models, one of each seed, are means, with the lowest and the highest in brackets.
A rollout that was lost has an infinite error, and so has the mean that it is part of.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from overtone.errors import DataError
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


def number(value: Any, digits: int = 3) -> str:
    """A number of some significant digits; a dash for none."""
    value = float(value)
    return f"{value:.{digits}g}" if math.isfinite(value) else "–"


def mean(rows: Sequence[Any], pick: Callable[[Any], Any], digits: int = 2) -> str:
    """Mean over models, with the lowest and the highest of several; infinite if one of them is."""
    values = [value for row in rows if not math.isnan(value := float(pick(row)))]
    if not values:
        return "–"
    if math.inf in values:
        return "∞"
    ends = f" ({min(values):.{digits}f} to {max(values):.{digits}f})"
    return f"{mean_of(values):.{digits}f}" + (ends if len(values) > 1 else "")


def mean_of(values: Sequence[float]) -> float:
    """Mean of what is known; infinite if one is, NaN of nothing."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """A table in Markdown.

    Args:
        header: of the columns.
        rows: their cells.
        texts: columns that are texts, from the left; the others are numbers.
    """
    rule = ["---" if i < texts else "---:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


LONGEST = 40
"""Characters of a schedule that a table shows; the file has all of it."""


def rule_name(name: str, rows: Sequence[dict[str, Any]]) -> str:
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


def sets(systems: dict[str, Any]) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """System, set, and of each model the rows of that comparison by name."""
    return [
        (name, what, [model["control"][what] for model in models])
        for name, models in systems.items()
        for what in models[0]["control"]
    ]


def changes(rows: Sequence[Mapping[str, Any]], one: str, other: str) -> list[float]:
    """For each row, by what share a number is above another; NaN where there is no other."""
    pairs = [(float(row.get(one, "nan")), float(row.get(other, "nan"))) for row in rows]
    # A rollout that was lost is infinitely far above; where open loops are, there is no comparison.
    return [own / against - 1 if math.isfinite(against) else math.nan for own, against in pairs]


def change(values: Sequence[float]) -> str:
    """The mean of some changes in %; infinite if one is, a dash for none."""
    found = 100 * mean_of(values)
    if math.isnan(found):
        return "–"
    return "∞" if math.isinf(found) else percent(found, signed=True)
