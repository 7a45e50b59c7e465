"""A study's numbers in one small file, `RESULTS/STUDY.json`: what pages and cards are made from.

The whole of an evaluation stays in its `results.json`, beside the report. Here numbers have five
digits, and what a rollout has for each step is left out unless the comparison asks for it
(`Comparison.curves`). Estimates by step are stored as columns,
`{"value": [...], "low": [...], "high": [...]}`: half the bytes of a list of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overtone.errors import DataError
from overtone.evaluate.results import Estimate, Results, storable
from overtone.files import replacing

FORMAT = "overtone-study-1"
DIGITS = 5
BULKY = ("spectra", "axis_spectra", "cell", "told")
"""Further fields of a rollout that are long and left out; curves are known by what they hold."""
_COLUMNS = tuple(Estimate.model_fields)


@dataclass(frozen=True)
class Archive:
    """What is kept of a study.

    Attributes:
        comparisons: name of a comparison -> its numbers.
        forms: command, machine and, for each model whose form of training was chosen, the form and
            all scores; empty if none was.
        plans: name of a comparison -> the plan that it followed, as its file has it.
    """

    comparisons: dict[str, Results]
    forms: dict[str, Any] = field(default_factory=dict)
    plans: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write JSON, a line for each comparison; the file is complete or absent."""
        lines = [
            f"{json.dumps(name)}:{_packed_json(results.model_dump())}"
            for name, results in self.comparisons.items()
        ]
        head = f'{{"format":"{FORMAT}",\n"forms":{_packed_json(self.forms)},\n'
        head += f'"plans":{_packed_json(self.plans)},\n' if self.plans else ""
        head += '"comparisons":{\n'
        with replacing(path) as scratch:
            scratch.write_text(head + ",\n".join(lines) + "\n}}\n")

    @classmethod
    def load(cls, path: str | Path) -> Archive:
        """Read what `save` wrote."""
        try:
            content = json.loads(Path(path).read_text())
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r}, expected '{FORMAT}'")
            comparisons = {
                name: Results.model_validate(_unpacked(packed))
                for name, packed in content["comparisons"].items()
            }
            # The first studies chose learning rates alone, and called them so.
            forms = content["forms"] if "forms" in content else content["rates"]
            return cls(comparisons, forms, _unpacked(content.get("plans", {})))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"'{path}' can't be read as the numbers of a study: {error}") from error


def thinned(results: Results, curves: Collection[str]) -> Results:
    """Results whose rollouts have empty lists in place of what is long and not asked for.

    Args:
        results: the whole.
        curves: names of the fields to keep, e.g. `("vrmse", "seams")`.
    """
    plain = results.model_dump()
    for model in plain["models"]:
        model["runs"] = _thin(model["runs"], curves)
    return Results.model_validate(plain)


def _thin(value: Any, curves: Collection[str]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_thin(entry, curves) for entry in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for name, entry in value.items():
        left_out = name in BULKY or _is_curve(entry)
        empty = None if name == "told" else []
        made[name] = entry if name in curves else empty if left_out else _thin(entry, curves)
    return made


def _is_curve(value: Any) -> bool:
    """Whether it is plain data of one or more estimates in a row."""
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(entry, dict) and tuple(entry) == _COLUMNS for entry in value)
    )


def _packed_json(value: Any) -> str:
    return json.dumps(_packed(storable(value, DIGITS)), separators=(",", ":"), allow_nan=False)


def _packed(value: Any) -> Any:
    if _is_curve(value):
        return {name: [_packed(entry[name]) for entry in value] for name in _COLUMNS}
    if isinstance(value, list):
        return [_packed(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _packed(entry) for name, entry in value.items()}
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if tuple(value) == _COLUMNS and all(isinstance(column, list) for column in value.values()):
        rows = zip(*value.values(), strict=True)
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
    return {name: _unpacked(entry) for name, entry in value.items()}
