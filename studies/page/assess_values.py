"""Numbers of `results/assess.json` for sentences: counts and ranges over what was measured.

| mark | renders |
|---|---|
| `value: assess-wins KIND NUMBER` | in how many cases a controller is below the best open loop |
| `value: assess-plans LIMIT` | in how many the plan is at most so many % above the cycle |
| `value: assess-held SET` | how many rollouts of controllers that are drawn keep in their band |
| `value: assess-tried NAME` | how far what was tried is above `sparing`, over systems |
| `value: assess-aims KIND` | on how many sets a rule has patch 4's error for half of its tokens |
| `value: assess-range SET PART NUMBER` | an estimate's quality, the lowest and the highest |

A case is a system, a set, a tolerance and a seed; of plans, a system and a seed on the test split,
over all steps. `KIND` is `adaptive` or `sparing`, of aims also `any`. `NUMBER` is `early`, `error`
or `worst`; of ranges `correlation`, `by_step`, `ratio`, `0.5` or `0.9` (coverage). `PART` is
`within` or `beyond`. What was tried is set against `sparing` with as many tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.page.assess_equal import AGAINST, plan_change, tried_change
from studies.page.assess_rows import changes, kind_of, read
from studies.page.blocks import PageError
from studies.page.markdown import percent

NOT_RUN = "not run yet"


def render(kind: str, names: Sequence[str], folder: Path) -> str:
    """The number of a mark.

    Args:
        kind: one of `KINDS`.
        names: what follows it.
        folder: of results.
    """
    content = read(folder)
    if content is None:
        return NOT_RUN
    part = PARTS.get(kind, "systems")
    if not content.get(part):
        return NOT_RUN
    made, count = KINDS[kind]
    if len(names) != count:
        raise PageError(f"value '{kind}' takes {count} words; given: {' '.join(names) or 'none'}")
    return made(content[part], *names)


def _wins(systems: dict[str, Any], kind: str, number: str) -> str:
    against = dict(AGAINST[:3])
    if number not in against:
        raise PageError(f"there is no number '{number}'; there are {', '.join(against)}")
    rows = [row for rows in _compared(systems) for name, row in rows.items()
            if kind_of(name, row) == kind]  # fmt: skip
    found = [c for c in changes(rows, number, against[number]) if not math.isnan(c)]
    return f"{sum(change < 0 for change in found)} of {len(found)}"


def _aims(systems: dict[str, Any], kind: str) -> str:
    every, met = _compared(systems), 0
    for rows in every:
        fine = next(iter(rows.values()))
        met += any(
            float(row["error"]) <= float(fine["error"])
            and float(row["tokens"]) <= float(fine["tokens"]) / 2
            for name, row in rows.items()
            if kind in ("any", kind_of(name, row))
        )
    return f"{met} of {len(every)}"


def _plans(systems: dict[str, Any], limit: str) -> str:
    found = [plan_change(model["control"]["test"])
             for models in systems.values() for model in models]  # fmt: skip
    found = [change for change in found if not math.isnan(change)]
    if not found:
        return NOT_RUN
    return f"{sum(100 * change <= float(limit) for change in found)} of {len(found)}"


def _held(systems: dict[str, Any], what: str) -> str:
    drawn = [model["example"].get(what, {}) for models in systems.values() for model in models]
    drawn = [own for own in drawn if "held" in own]
    if not drawn:
        return NOT_RUN
    return f"{sum(own['held'] for own in drawn)} of {sum(own['rollouts'] for own in drawn)}"


def _tried(systems: dict[str, Any], name: str) -> str:
    found = [tried_change(rules, name) for rules in systems.values()]
    known = [change for change in found if not math.isnan(change)]
    if not known:
        raise PageError(f"'{name}' was not tried")
    low, high = (percent(100 * end, signed=True) for end in (min(known), max(known)))
    return low if low == high else f"{low} to {high}"


def _range(systems: dict[str, Any], what: str, part: str, number: str) -> str:
    found = [
        float(own["coverage"].get(number, "nan") if number[0].isdigit() else own[number])
        for models in systems.values()
        for model in models
        for kind, own in model["instrument"].get(what, {}).items()
        if kind.endswith(part)
    ]
    known = [value for value in found if math.isfinite(value)]
    if not known:
        raise PageError(f"nothing is known of '{number}' on '{what}', {part}")
    if number[0].isdigit():
        return f"{100 * min(known):.0f} to {100 * max(known):.0f} %"
    return f"{min(known):.2f} to {max(known):.2f}"


def _compared(systems: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of every system, set and model."""
    return [rows for models in systems.values() for model in models
            for rows in model["control"].values()]  # fmt: skip


KINDS = {"assess-wins": (_wins, 2), "assess-aims": (_aims, 1), "assess-range": (_range, 3),
         "assess-plans": (_plans, 1), "assess-held": (_held, 1),
         "assess-tried": (_tried, 1)}  # fmt: skip
"""Value -> what makes it, and how many words it takes."""
PARTS = {"assess-tried": "tried"}
"""Values -> part of the file, if not `systems`."""
