"""Single numbers for sentences, so that every number of the prose comes from results.

| mark | renders |
|---|---|
| `value: number COMPARISON A QUANTITY` | the number, mean over seeds |
| `value: interval COMPARISON A QUANTITY` | with its interval, or the range over seeds |
| `value: change COMPARISON A B QUANTITY` | how far A is above or below B, in % of B |
| `value: changes COMPARISON A B QUANTITY` | the same, lowest and highest over seeds |
| `value: share COMPARISON A B QUANTITY` | A in % of B |
| `value: times COMPARISON A B QUANTITY` | A divided by B |

A and B are operands and QUANTITY a quantity of `studies.page.quantities`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from overtone.errors import suggest
from overtone.evaluate.results import Estimate
from overtone.report.series import mean
from overtone.report.summary import number
from studies.page.blocks import Block, PageError
from studies.page.markdown import change, estimates, percent
from studies.page.quantities import SEED, measure, written
from studies.page.sources import Library

NOT_RUN = "not run yet"

Seeds = dict[SEED, Estimate]


def _mean(seeds: Seeds) -> float:
    return mean([value.value for value in seeds.values()])


def _interval(seeds: Seeds, quantity: str) -> str:
    alike = len({value.value for value in seeds.values()}) == 1
    if len(seeds) > 1 and not alike:
        return estimates(list(seeds.values()))
    only = next(iter(seeds.values()))
    return written(only.value, quantity) if only.low == only.high else estimates([only])


def _changes(a: Seeds, b: Seeds) -> str:
    """Seeds are compared pair by pair."""
    if set(a) != set(b):
        raise PageError(f"the seeds differ, {list(a)} and {list(b)}; use change")
    ratios = sorted(a[seed].value / b[seed].value for seed in a)
    low, high = (change(ratio, 1.0) for ratio in (ratios[0], ratios[-1]))
    return low if low == high else f"{low} to {high}"


OF_ONE: dict[str, Callable[[Seeds, str], str]] = {
    "number": lambda a, quantity: written(_mean(a), quantity),
    "interval": _interval,
}
OF_TWO: dict[str, Callable[[Seeds, Seeds], str]] = {
    "change": lambda a, b: change(_mean(a), _mean(b)),
    "changes": _changes,
    "share": lambda a, b: percent(100 * _mean(a) / _mean(b)),
    "times": lambda a, b: number(_mean(a) / _mean(b)),
}


def render_value(block: Block, library: Library) -> str:
    """The number of a mark."""
    kind = block.kind
    if kind not in OF_ONE and kind not in OF_TWO:
        known = [*OF_ONE, *OF_TWO]
        raise PageError(
            f"there is no value '{kind}'{suggest(kind, known)}; there are {', '.join(known)}"
        )
    comparison, operands, quantity = _arguments(block, 1 if kind in OF_ONE else 2)
    source = library.source(comparison)
    if source is None:
        return NOT_RUN
    seeds = [measure(source, operand, quantity) for operand in operands]
    if kind in OF_ONE:
        return OF_ONE[kind](seeds[0], quantity)
    return OF_TWO[kind](seeds[0], seeds[1])


def _arguments(block: Block, count: int) -> tuple[str, Sequence[str], str]:
    if block.options or len(block.names) != count + 2:
        rollouts = " ".join("AB"[:count])
        raise PageError(f"expected 'value: {block.kind} COMPARISON {rollouts} QUANTITY'")
    return block.names[0], block.names[1:-1], block.names[-1]
