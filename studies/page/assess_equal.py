"""Tables of `results/assess.json` that set controllers beside schedules of as many tokens.

- `verdict`: at each controller's own tokens, against what open loops reach with them.
- `equal`: at the cycle's tokens, what each kind of rule reaches.
- `aim`: who has the finest patch's error for half of its tokens.
- `candidates`: what was tried, at its own tokens, against what `sparing` reaches with them.

Between two rules of a kind one may go on from the one to the other, as `front_error` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from studies.candidates import CANDIDATES
from studies.control import KINDS as CONTROLLERS
from studies.instrument import front_error
from studies.page.assess_rows import PLAN, change, changes, kind_of, mean_of, rule_name, sets, table
from studies.page.markdown import percent

Rows = Mapping[str, Mapping[str, Any]]
"""Rules of a comparison by name."""

AGAINST = (("early", "open_loop_early"), ("error", "open_loop"), ("worst", "open_loop_worst"),
           ("error", "constant"), ("perfect", "open_loop"))  # fmt: skip
"""Numbers of a controller's row, and what each is set against."""
NUMBERS = ("early", "error", "worst")
"""Over the first steps, over all, and of the worst trajectory."""
NEAR = 0.02
"""Part of the tokens by which a rule may differ from what it is compared at, without a word."""


def verdict(systems: dict[str, Any]) -> str:
    """Each controller against open loops at its own tokens: a change for each tolerance."""
    rows = []
    for name, what, models in sets(systems):
        for kind in CONTROLLERS:
            own = [[model[rule] for model in models]
                   for rule, row in models[0].items() if kind_of(rule, row) == kind]  # fmt: skip
            if own:
                tokens = [mean_of([float(row["tokens"]) for row in place]) for place in own]
                cells = [" / ".join(change(changes(place, one, other)) for place in own)
                         for one, other in AGAINST]  # fmt: skip
                spent = f"{min(tokens):,.0f} to {max(tokens):,.0f}"
                rows.append([name.removesuffix("-mini"), what, f"`{kind}`", spent, *cells])
    return table(
        ("system", "set", "controller", "tokens", "10 steps", "all steps", "worst trajectory",
         "against constants", "perfect choice"), rows, 3,
    )  # fmt: skip


def equal(systems: dict[str, Any]) -> str:
    """What each kind of rule reaches with the cycle's tokens: over 10 steps, all, at worst."""
    rows = []
    for name, what, models in sets(systems):
        kinds = [kind for kind in _KINDS if any(_of_kind(model, kind) for model in models)]
        for kind in kinds:
            found = [_reached(model, kind) for model in models]
            tokens = mean_of([own[0] for own in found])
            limit = mean_of([_cycle_tokens(model) for model in models])
            told = "" if abs(tokens / limit - 1) <= NEAR else f" ({percent(100 * tokens / limit)})"
            cells = [_written(mean_of([own[1][place] for own in found]))
                     for place in range(len(NUMBERS))]  # fmt: skip
            rows.append([name.removesuffix("-mini"), what, kind + told, *cells])
    return table(("system", "set", "rule", "10 steps", "all steps", "worst trajectory"), rows, 3)


_KINDS = ("constants", "cycle", "plan", "random", *CONTROLLERS)
"""Of rules, as `equal` names them."""


def _of_kind(rules: Rows, kind: str) -> list[Mapping[str, Any]]:
    """The rules of a kind."""
    if kind == "cycle":
        # Further cycles may have been asked for, behind the usual one.
        return [rules[name] for name in rules if _is_cycle(name)][:1]
    if kind == "constants":
        return [row for name, row in rules.items() if name.partition("+")[0].isdecimal()]
    return [row for name, row in rules.items() if kind_of(name, dict(row)) == kind]


def _is_cycle(name: str) -> bool:
    return name.endswith("+shift") and name.partition("+")[0].replace("-", "").isdecimal() and (
        "-" in name)  # fmt: skip


def _cycle_tokens(rules: Rows) -> float:
    (row,) = _of_kind(rules, "cycle")
    return float(row["tokens"])


def _reached(rules: Rows, kind: str) -> tuple[float, list[float]]:
    """Tokens, at most the cycle's where a kind has several rules, and the numbers there."""
    own, limit = _of_kind(rules, kind), _cycle_tokens(rules)
    if not own:
        return math.nan, [math.nan] * len(NUMBERS)
    spent = [float(row["tokens"]) for row in own]
    if kind in (PLAN, "cycle", "random"):  # nothing to go between: a mean over draws
        return mean_of(spent), [mean_of([float(row[what]) for row in own]) for what in NUMBERS]
    points = {what: [(float(row["tokens"]), float(row[what])) for row in own] for what in NUMBERS}
    numbers = [front_error(points[what], limit) for what in NUMBERS]
    return min(max(spent), limit), [n if math.isfinite(n) else math.nan for n in numbers]


def plan_change(rules: Rows) -> float:
    """How far the plan's error over all steps is above the cycle's; NaN without a plan."""
    plan, (cycle,) = rules.get(PLAN), _of_kind(rules, "cycle")
    return math.nan if plan is None else float(plan["error"]) / float(cycle["error"]) - 1


def _written(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if math.isfinite(value) else "∞"


def aim(systems: dict[str, Any]) -> str:
    """Patch 4's error at half of its tokens: who comes next to it, and who has it for least."""
    rows = []
    for name, what, models in sets(systems):
        shared = [rule for rule in models[0] if all(rule in model for model in models)]
        means = {rule: (mean_of([float(m[rule]["tokens"]) for m in models]),
                        mean_of([float(m[rule]["error"]) for m in models]))
                 for rule in shared}  # fmt: skip
        first = next(iter(means))
        tokens, error = means[first]
        half = {rule: e for rule, (t, e) in means.items() if t <= tokens / 2}
        best = min(half, key=lambda rule: half[rule])
        equal = {rule: t for rule, (t, e) in means.items() if e <= error}
        least = min(equal, key=lambda rule: equal[rule])
        rows.append([
            name.removesuffix("-mini"), what, f"{error:.3f}", f"{tokens:,.0f}",
            rule_name(best, [m[best] for m in models]), change([half[best] / error - 1]),
            "–" if least == first else rule_name(least, [m[least] for m in models]),
            percent(100 * equal[least] / tokens),
        ])  # fmt: skip
    return table(
        ("system", "set", "patch 4", "its tokens", "best within half of them", "against patch 4",
         "cheapest that is as good", "its tokens, of patch 4's"), rows, 2,
    )  # fmt: skip


def candidates(systems: dict[str, Any]) -> str:
    """What was tried against `sparing` with as many tokens: error over all steps, by system."""
    names = [name for name in next(iter(systems.values())) if name in CANDIDATES]
    rows = [[f"`{name}`", *(change([tried_change(rules, name)]) for rules in systems.values())]
            for name in names]  # fmt: skip
    return table(("tried", *(name.removesuffix("-mini") for name in systems)), rows, 1)


def tried_change(rules: Rows, name: str) -> float:
    """How far a rule's error is above what `sparing` reaches with its tokens; NaN if nothing."""
    usual = [(float(row["tokens"]), float(row["error"])) for other, row in rules.items()
             if kind_of(other, dict(row)) == "sparing" and other not in CANDIDATES]  # fmt: skip
    own = rules.get(name)
    if own is None or not usual:
        return math.nan
    other = front_error(usual, float(own["tokens"]))
    return changes([{"own": own["error"], "other": other}], "own", "other")[0]
