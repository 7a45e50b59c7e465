"""How the numbers came about: trainings as a table, the evaluation as a paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overtone.evaluate.results import ModelResult
from overtone.report.series import domain_of, mean
from overtone.report.summary import number
from studies.page.markdown import Column, code, table
from studies.page.quantities import OF_MODEL, written
from studies.page.sources import Options, Source

VERSIONS = ("overtone", "torch", "python")
RATE = "lr"
"""Name of the learning rate in a model's `training`, where it is known."""


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


def setting(sources: Sequence[Source], options: Options) -> str:
    """Data, rollouts, machine and command, in a paragraph for each comparison."""
    return "\n\n".join(_paragraph(source) for source in sources)


def _paragraph(source: Source) -> str:
    results, domain = source.results, domain_of(source.results)
    data, machine = results.data, results.machine
    versions = ", ".join(f"{name} {machine[name]}" for name in VERSIONS if name in machine)
    seeds = sorted({model.seed for model in results.models if model.seed is not None})
    parts = [
        f"{data.name}, {data.split} split (fingerprint {code(data.fingerprint[:8])}), "
        f"{data.trajectories} trajectories on {'x'.join(map(str, domain.shape))} cells, fields "
        f"{', '.join(domain.fields)}; rollouts of {results.steps} steps of dt = {domain.dt:g}, "
        f"with contexts from frame {data.start} on",
        f"Seeds of the trainings: {', '.join(map(str, seeds))}" if seeds else "",
        f"Machine: {machine.get('processor', 'unknown')}"
        + (f"; threads {machine['threads']}" if "threads" in machine else "")
        + (f"; {versions}" if versions else ""),
        f"Command: {code(results.command)}",
    ]
    return "Data: " + ". ".join(part for part in parts if part) + "."
