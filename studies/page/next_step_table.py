"""Next-step errors: a row for each patch, a column for each model.

Fixed models have one patch each, so `fixed4`, `fixed8` and `fixed16` share the column `fixed`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from overtone.report.series import NextPoint, next_points
from overtone.report.style import patch_name
from studies.page.blocks import PageError
from studies.page.markdown import Column, bold, change, estimates, lowest, table
from studies.page.sources import Options, Source, single

RIVAL = "fixed"
"""The column that others are compared with, where there is one."""


@dataclass(frozen=True)
class _Line:
    """One patch of one comparison: the column's name -> the model's errors."""

    source: Source
    patch: str
    tokens: int
    points: dict[str, NextPoint]

    def show(self, column: str) -> str:
        """Errors of a column; the lowest of the row is bold."""
        if column not in self.points:
            return "–"
        point = self.points[column]
        text = estimates([step.vrmse for step in point.steps])
        errors = [p.vrmse.value for p in self.points.values()]
        best = lowest(errors, [None] * len(errors))
        return bold(text) if list(self.points).index(column) in best else text

    def against(self, column: str, other: str) -> str:
        """Change of a column against another."""
        if column not in self.points or other not in self.points:
            return "–"
        return change(self.points[column].vrmse.value, self.points[other].vrmse.value)


def next_step(sources: Sequence[Source], options: Options) -> str:
    """Next-step VRMSE; `against=COLUMN` is what the others are compared with."""
    lines = [line for source in sources for line in _lines(source, options)]
    names = list(dict.fromkeys(name for line in lines for name in line.points))
    other = single(options, "against") if "against" in options else RIVAL
    if "against" in options and other not in names:
        raise PageError(f"against is '{other}'; expected one of {'; '.join(names)}")
    columns = [
        Column[_Line]("patch (tokens)", lambda line: f"{line.patch} ({line.tokens:,})", left=True),
        *(Column[_Line](name, lambda line, name=name: line.show(name)) for name in names),
    ]
    if other in names:
        columns += [
            Column[_Line](
                f"{name} against {other}", lambda line, name=name: line.against(name, other)
            )
            for name in names
            if name != other
        ]
    if len(sources) > 1:
        first = Column[_Line]("comparison", lambda line: line.source.name, left=True)
        columns.insert(0, first)
    return table(lines, columns)


def _lines(source: Source, options: Options) -> list[_Line]:
    models = source.models(options.get("models"))
    points = [p for name in models for p in next_points(source.results) if p.model == name]
    sizes = {name: {p.patch for p in points if p.model == name} for name in models}
    lines: dict[str, _Line] = {}
    for p in points:
        patch = patch_name(p.patch)
        line = lines.setdefault(patch, _Line(source, patch, p.tokens, {}))
        column = column_name(p.model, patch) if len(sizes[p.model]) == 1 else p.model
        line.points[column] = p
    return sorted(lines.values(), key=lambda line: -line.tokens)


def column_name(model: str, patch: str) -> str:
    """A fixed model's name without its patch."""
    return re.sub(rf"(?<!\d){patch}(?!\d)", "", model).strip() or model
