"""Tables of models: next-step errors, what the trainings cost, and the setting as a paragraph.

Next-step errors have a row for each patch and a column for each model. Fixed models have one patch
each, so `fixed4`, `fixed8` and `fixed16` share the column `fixed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from overtone.evaluate.results import ModelResult
from overtone.report.series import NextPoint, domain_of, mean, next_points
from overtone.report.style import patch_name
from overtone.report.summary import number
from studies.catalogue import STUDIES
from studies.page.blocks import PageError
from studies.page.markdown import (
    Column,
    all_steps,
    bold,
    change,
    code,
    estimates,
    literal,
    lowest,
    table,
)
from studies.page.sources import Options, Source, single, study_of
from studies.page.values import EVERY, OF_MODEL, measure, written

RIVAL = "fixed"
"""The column that others are compared with, where there is one."""
VERSIONS = ("overtone", "torch", "python")
RATE = "lr"
"""Name of the learning rate in a model's `training`, where it is known."""
UNROLLED = "-unrolled"
"""How names of forms end that are unrolled."""


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


@dataclass(frozen=True)
class _Trained:
    """A model of a comparison, of one seed."""

    source: Source
    model: ModelResult

    def show(self, quantity: str) -> str:
        return written(OF_MODEL[quantity](self.model).value, quantity)


def training(sources: Sequence[Source], options: Options) -> str:
    """What each training cost, and the validation error that it ended with."""
    rows = [
        _Trained(source, model)
        for source in sources
        for name in source.models(options.get("models"))
        for model in source.seeds(name)
    ]
    columns = [
        Column[_Trained]("model", lambda row: row.model.name, left=True),
        Column[_Trained]("seed", _seed),
        Column[_Trained]("parameters", lambda row: row.show("parameters")),
        Column[_Trained]("updates", lambda row: row.show("updates")),
        Column[_Trained]("minutes", lambda row: row.show("minutes")),
        Column[_Trained]("PFLOP", lambda row: row.show("pflop")),
        *_rates(rows),
        Column[_Trained]("validation VRMSE", lambda row: number(_validation(row.model))),
    ]
    if len(sources) > 1:
        first = Column[_Trained]("comparison", lambda row: row.source.name, left=True)
        columns.insert(0, first)
    return table(rows, columns)


def _seed(row: _Trained) -> str:
    return "–" if row.model.seed is None else str(row.model.seed)


def _rates(rows: Sequence[_Trained]) -> list[Column[_Trained]]:
    """The learning rate, if any model tells it."""
    if not any(RATE in row.model.training for row in rows):
        return []

    def show(row: _Trained) -> str:
        rate = row.model.training.get(RATE)
        return "–" if rate is None else f"{rate:g}"

    return [Column("learning rate", show)]


def _validation(model: ModelResult) -> float:
    """What the best weights were chosen by: the rollout, or else the mean over patches."""
    found = model.training.get("validation", {})
    score = found.get("rollout")
    return mean(list(found.get("vrmse", {}).values())) if score is None else float(score)


def tried(sources: Sequence[Source], options: Options) -> str:
    """What was changed, one model a row: means over all its schedules and all comparisons.

    `against=MODEL` is what the others are compared with, the first one if it is not given.
    """
    names = sources[0].models(options.get("models"))
    base = single(options, "against") if "against" in options else names[0]
    if base not in names:
        raise PageError(f"against is '{base}'; expected one of {'; '.join(names)}")

    def average(name: str, quantity: str, place: str = f":{EVERY}") -> float:
        found = [measure(source, f"{name}{place}", quantity) for source in sources]
        return mean([e.value for seeds in found for e in seeds.values()])

    def next_steps(name: str) -> float:
        found = [s.vrmse.value for source in sources for m in source.seeds(name)
                 for s in m.next_step]  # fmt: skip
        return mean(found)

    def error_columns(header: str, error: Callable[[str], float]) -> list[Column[str]]:
        return [
            Column(header, lambda name: number(error(name)), error),
            Column("change", lambda name: change(error(name), error(base))),
        ]

    columns = [
        Column[str]("what is changed", lambda name: name, left=True),
        Column[str](
            "parameters", lambda name: written(average(name, "parameters", ""), "parameters")
        ),
        Column[str]("updates", lambda name: written(average(name, "updates", ""), "updates")),
        *error_columns("next step", next_steps),
        *error_columns("10 steps", lambda name: average(name, "vrmse_10")),
        *error_columns(all_steps(sources), lambda name: average(name, "vrmse_all")),
    ]
    return table(names, columns)


def forms(sources: Sequence[Source], options: Options) -> str:
    """Which form each model chose, and the validation scores of all that it was tried in."""
    (source,) = sources
    labels = {t.name: t.label for t in STUDIES[study_of(source.name)].trainings}
    found = source.forms.get("models", {})
    every = dict.fromkeys(form for own in found.values() for form in own["scores"])
    tried = [form for form in every if not form.endswith(UNROLLED)]

    def unrolled(name: str) -> float:
        scores = found[name]["scores"]
        return min((float(scores[f]) for f in scores if f.endswith(UNROLLED)), default=math.nan)

    def score(value: float) -> str:
        return number(float(value)) if math.isfinite(float(value)) else "–"

    columns = [
        Column[str]("model", lambda name: labels[name], left=True),
        Column[str]("chosen", lambda name: found[name]["chosen"].replace("-", " "), left=True),
        *(
            Column[str](
                form.replace("-", " "),
                lambda name, form=form: score(found[name]["scores"].get(form, math.nan)),
            )
            for form in tried
        ),
        Column[str]("best unrolled", lambda name: score(unrolled(name))),
    ]
    return table([name for name in found if name in labels], columns)


def setting(sources: Sequence[Source], options: Options) -> str:
    """Data, rollouts, machine and command, in a paragraph for each comparison."""
    return "\n\n".join(_paragraph(source) for source in sources)


def _paragraph(source: Source) -> str:
    results, domain = source.results, domain_of(source.results)
    data, machine = results.data, results.machine
    versions = ", ".join(f"{name} {machine[name]}" for name in VERSIONS if name in machine)
    seeds = sorted({model.seed for model in results.models if model.seed is not None})
    place, fields = literal(f"{data.name}, {data.split}"), literal(", ".join(domain.fields))
    parts = [
        f"{place} split (fingerprint {code(data.fingerprint[:8])}), "
        f"{data.trajectories} trajectories on {'x'.join(map(str, domain.shape))} cells, fields "
        f"{fields}; rollouts of {results.steps} steps of dt = {domain.dt:g}, "
        f"with contexts from frame {data.start} on",
        f"Seeds of the trainings: {', '.join(map(str, seeds))}" if seeds else "",
        f"Machine: {literal(machine.get('processor', 'unknown'))}"
        + (f"; threads {machine['threads']}" if "threads" in machine else "")
        + (f"; {versions}" if versions else ""),
        f"Command: {code(results.command)}",
    ]
    return "Data: " + ". ".join(part for part in parts if part) + "."
