"""Tables of what the errors are like: grid artifacts, scales, laws of physics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overtone.evaluate.results import Estimate, Harmonics, Run
from overtone.report.series import Series
from overtone.report.style import patch_name
from overtone.report.summary import number
from studies.page.blocks import PageError
from studies.page.markdown import Column, estimates, probability, table
from studies.page.quantities import at_step, of_run
from studies.page.rows import Row, error_column, name_columns, rollout_rows
from studies.page.sources import Options, Source, single

LAST = "last"
PERIODS = ("16", "8", "4")
BANDS = ("low", "mid", "high")
BY_STEP = ("seams", "excess")
"""What is known of a period at each step."""


def steps_of(options: Options, usual: tuple[str, ...], last: int) -> list[int]:
    """Rollout steps of the option `steps`, without those that the rollouts do not have."""
    given = options.get("steps", usual)
    for step in given:
        if step != LAST and not (step.isdecimal() and int(step) > 0):
            raise PageError(f"steps is {','.join(given)}; expected numbers from 1 on, or {LAST}")
    numbers = {last if step == LAST else int(step) for step in given}
    return sorted(step for step in numbers if step <= last)


@dataclass(frozen=True)
class _Artifact:
    """A period of a rollout."""

    row: Row
    period: str

    @property
    def series(self) -> Series:
        return self.row.series

    @property
    def seeds(self) -> list[Harmonics]:
        runs = self.series.runs
        return [h for run in runs for h in run.harmonics if patch_name(h.patch) == self.period]

    @property
    def average(self) -> Harmonics:
        found = self.series.harmonics(self.seeds[0].patch)
        assert found is not None
        return found


def artifacts(sources: Sequence[Source], options: Options) -> str:
    """Seams or excess at some steps, excess overall. Nothing is bold: 0 dB is as good as less."""
    (source,) = sources
    quantity = single(options, "quantity") if "quantity" in options else BY_STEP[0]
    if quantity not in BY_STEP:
        raise PageError(f"quantity is '{quantity}'; expected one of {', '.join(BY_STEP)}")
    periods = options.get("periods", PERIODS)
    made = [_Artifact(row, p) for row in rollout_rows(sources, options) for p in periods]
    shown = [artifact for artifact in made if artifact.seeds]
    if not shown:
        raise PageError(f"'{source.name}' has no harmonics of periods {', '.join(periods)}")
    steps = steps_of(options, ("1", "10", "20", LAST), source.results.steps)

    def at(artifact: _Artifact, step: int) -> str:
        return estimates([at_step(getattr(h, quantity), str(step)) for h in artifact.seeds])

    def overall(artifact: _Artifact) -> str:
        return f"{number(artifact.average.overall)} ({probability(artifact.average.p_value)})"

    columns = [
        Column[_Artifact](
            "rollout", lambda a: f"{a.series.model}, {a.row.schedule}", left=True
        ),
        Column[_Artifact]("period", lambda a: a.period),
        *(
            Column[_Artifact](f"{quantity} at step {step}", lambda a, step=step: at(a, step))
            for step in steps
        ),
        Column[_Artifact]("excess overall", overall),
    ]  # fmt: skip
    return table(shown, columns)


def bands(sources: Sequence[Source], options: Options) -> str:
    """BSNMSE of three bands of scales, over all steps."""
    rows = rollout_rows(sources, options)
    columns = [
        *name_columns(rows),
        *(
            error_column(f"BSNMSE, {band}", lambda run, band=band: of_run(run, f"bsnmse@{band}"))
            for band in BANDS
        ),
    ]
    return table(rows, columns, group=lambda row: row.source.name)


@dataclass(frozen=True)
class _Deviation:
    """A law and a rollout."""

    law: str
    row: Row

    def at(self, step: int) -> list[Estimate]:
        return [self.of(run, step) for run in self.row.series.runs]

    def of(self, run: Run, step: int) -> Estimate:
        return at_step(run.physics.get(self.law, ()), str(step))


def physics(sources: Sequence[Source], options: Options) -> str:
    """Deviation from each law at some steps."""
    (source,) = sources
    rows = rollout_rows(sources, options)
    known = list(
        dict.fromkeys(law for row in rows for run in row.series.runs for law in run.physics)
    )
    laws = options.get("laws", tuple(known))
    for law in laws:
        if law not in known:
            raise PageError(f"there is no law '{law}'; there are {'; '.join(known) or 'none'}")
    made = [_Deviation(law, row) for law in laws for row in rows]
    steps = steps_of(options, ("1", "10", "25", LAST), source.results.steps)

    def error(deviation: _Deviation, step: int) -> float:
        return deviation.row.error(lambda run: deviation.of(run, step))

    columns = [
        Column[_Deviation]("law", lambda d: d.law, left=True),
        Column[_Deviation]("model", lambda d: d.row.series.model, left=True),
        Column[_Deviation]("schedule", lambda d: d.row.schedule, left=True),
        *(
            Column[_Deviation](
                f"step {step}",
                lambda d, step=step: estimates(d.at(step)),
                lambda d, step=step: error(d, step),
            )
            for step in steps
        ),
    ]
    return table(made, columns, group=lambda d: d.law)
