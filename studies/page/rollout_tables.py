"""Tables of rollouts: their errors, and what these are like (artifacts, scales, physics)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from overtone.evaluate.results import Estimate, Harmonics, Run
from overtone.report.series import Series, mean
from overtone.report.style import patch_name
from overtone.report.summary import number, ranked
from overtone.schedules import (
    Bursts,
    Constant,
    Cycle,
    Dwell,
    Explicit,
    RandomChoice,
    ReverseWarmup,
    Shifted,
    Warmup,
    parse_schedule,
)
from studies.page.blocks import PageError
from studies.page.markdown import (
    Column,
    Pick,
    Row,
    all_steps,
    blow_up_columns,
    bold,
    change_column,
    code,
    error_column,
    estimates,
    lowest,
    name_columns,
    over_10,
    over_all,
    price_columns,
    probability,
    rollout_rows,
    table,
    ten_steps,
)
from studies.page.sources import Options, Source, single
from studies.page.values import COUNTS, at_step, measure, of_run, plain, written

FAMILIES = {
    Constant: "constant",
    Cycle: "cycle",
    RandomChoice: "random",
    Bursts: "bursts",
    Dwell: "dwell",
    Warmup: "warm-up",
    ReverseWarmup: "reverse warm-up",
    Explicit: "explicit",
    Shifted: "shifted",
}
"""Kinds of schedules, in the order in which tables list them."""
LAST = "last"
PERIODS = ("16", "8", "4")
BANDS = ("low", "mid", "high")
BY_STEP = ("excess", "worst_seams")
"""What is known of a period at each step."""


def rollouts(sources: Sequence[Source], options: Options) -> str:
    """Errors and prices of rollouts; `relative=MODEL:SCHEDULE` adds changes against a row."""
    rows = rollout_rows(sources, options)
    columns = [
        *name_columns(rows),
        error_column(f"VRMSE, {ten_steps(sources)}", over_10),
        *relative_columns(options, over_10),
        error_column(f"VRMSE, {all_steps(sources)}", over_all),
        *relative_columns(options, over_all),
        *price_columns(),
        *blow_up_columns(rows),
    ]
    return table(rows, columns, group=lambda row: row.source.name)


def relative_columns(options: Options, pick: Pick) -> list[Column[Row]]:
    """A column of changes if the options ask for it."""
    if "relative" not in options:
        return []
    operand = single(options, "relative")
    model, _, schedule = operand.partition(":")
    return [change_column(f"against {model} {code(schedule)}", pick, operand)]


def schedules(sources: Sequence[Source], options: Options) -> str:
    """Schedule families, each sorted by the error over all steps, with the rank among all."""
    rows = rollout_rows(sources, options)
    order = ranked([row.series for row in rows], lambda s: s.vrmse_all)
    places = {(s.model, s.schedule): i for i, s in enumerate(order)}
    families = list(FAMILIES.values())

    def place(row: Row) -> float:
        return places.get((row.series.model, row.series.schedule), math.inf)

    rows.sort(key=lambda row: (families.index(family(row.series.schedule)), place(row)))
    several = len({row.series.model for row in rows}) > 1
    names = [column for column in name_columns(rows) if several or column.header != "model"]
    columns = [
        Column[Row]("family", lambda row: family(row.series.schedule), left=True),
        *names,
        Column[Row]("rank", lambda row: f"{place(row) + 1:.0f}" if place(row) < math.inf else "–"),
        error_column(f"VRMSE, {all_steps(sources)}", over_all),
        *relative_columns(options, over_all),
        error_column(f"VRMSE, {ten_steps(sources)}", over_10),
        Column[Row]("tokens", lambda row: f"{row.series.tokens:,}"),
        *blow_up_columns(rows),
    ]
    return table(rows, columns)


def family(schedule: str) -> str:
    """What kind of schedule it is; every shifted one is `shifted`."""
    return FAMILIES[type(parse_schedule(schedule))]


def comparison(sources: Sequence[Source], options: Options) -> str:
    """Models beside each other, one row for each schedule, the best over ten steps first."""
    rows = rollout_rows(sources, options)
    rows.sort(key=lambda row: (row.source.name, _sortable(row.error(over_10))))

    def training(row: Row, quantity: str) -> str:
        found = measure(row.source, row.series.model, quantity).values()
        return written(mean([value.value for value in found]), quantity)

    columns = [
        Column[Row]("model", _model_and_schedule, left=True),
        Column[Row]("parameters", lambda row: training(row, "parameters")),
        Column[Row]("updates", lambda row: training(row, "updates")),
        Column[Row]("CPU minutes", lambda row: training(row, "cpu_minutes")),
        Column[Row]("next step", _next_steps),
        error_column(f"VRMSE, {ten_steps(sources)}", over_10),
        error_column(f"VRMSE, {all_steps(sources)}", over_all),
        Column[Row]("s/step", lambda row: number(row.seconds_per_step)),
        *blow_up_columns(rows),
    ]
    if len(sources) > 1:
        columns.insert(0, name_columns(rows)[0])
    return table(rows, columns, group=lambda row: row.source.name)


def _sortable(error: float) -> float:
    return error if math.isfinite(error) else math.inf


def _model_and_schedule(row: Row) -> str:
    return row.series.model + ("" if row.unpatched else f", {row.schedule}")


def _next_steps(row: Row) -> str:
    """Next-step VRMSE at each patch that the schedule uses, in order of their first use."""
    choose = parse_schedule(row.series.schedule)
    steps = range(row.source.results.steps)
    patches = dict.fromkeys(patch_name(choose(step).patch) for step in steps)
    known = {patch_name(step.patch) for step in row.model.next_step}
    found = [
        measure(row.source, f"{row.series.model}:{patch}", "next_step").values()
        for patch in patches
        if patch in known
    ]
    return " / ".join(number(mean([e.value for e in seeds])) for seeds in found) or "–"


@dataclass(frozen=True)
class _Line:
    """A row of `matrix`: a schedule, with the text of each model that followed it."""

    schedule: str
    tokens: int
    texts: dict[str, str]


def matrix(sources: Sequence[Source], options: Options) -> str:
    """One quantity: a row for each schedule, a column for each model, each row's lowest bold."""
    (source,) = sources
    quantity = single(options, "quantity") if "quantity" in options else "vrmse_all"
    chosen = source.chosen(options)
    names = list(dict.fromkeys(s.model for s in chosen))
    wanted = options.get("schedules", tuple(dict.fromkeys(s.schedule for s in chosen)))
    lines = [
        _line(source, [s for s in chosen if s.schedule == schedule], quantity)
        for schedule in wanted
    ]
    columns = [
        Column[_Line]("schedule", lambda line: code(line.schedule), left=True),
        Column[_Line]("tokens", lambda line: f"{line.tokens:,}"),
        *(Column[_Line](name, lambda line, name=name: line.texts.get(name, "–")) for name in names),
    ]
    return table(lines, columns)


def _line(source: Source, own: Sequence[Series], quantity: str) -> _Line:
    errors, texts = [], {}
    for s in own:
        seeds = list(measure(source, f"{s.model}:{s.schedule}", quantity).values())
        errors.append(math.inf if s.blow_up is not None else mean([e.value for e in seeds]))
        counted = quantity in COUNTS
        texts[s.model] = written(seeds[0].value, quantity) if counted else estimates(seeds)
    for place in lowest(errors, [None] * len(errors)):
        best = own[place].model
        texts[best] = bold(texts[best])
    return _Line(own[0].schedule, own[0].tokens, texts)


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
    def seeds(self) -> list[tuple[Run, Harmonics]]:
        pairs = [(run, h) for run in self.series.runs for h in run.harmonics]
        return [(run, h) for run, h in pairs if patch_name(h.patch) == self.period]

    @property
    def average(self) -> Harmonics:
        found = self.series.harmonics(self.seeds[0][1].patch)
        assert found is not None
        return found


def artifacts(sources: Sequence[Source], options: Options) -> str:
    """Excess or worst seams at some steps, excess overall. Nothing is bold: 0 dB is none."""
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
        return estimates(
            [at_step(run, getattr(h, quantity), str(step)) for run, h in artifact.seeds]
        )

    def overall(artifact: _Artifact) -> str:
        return f"{number(artifact.average.overall)} ({probability(artifact.average.p_value)})"

    columns = [
        Column[_Artifact](
            "rollout", lambda a: f"{a.series.model}, {a.row.schedule}", left=True
        ),
        Column[_Artifact]("period", lambda a: a.period),
        *(
            Column[_Artifact](
                f"{quantity.replace('_', ' ')} at step {step}", lambda a, step=step: at(a, step)
            )
            for step in steps
        ),
        Column[_Artifact]("excess overall", overall),
    ]  # fmt: skip
    return table(shown, columns)


def seams(sources: Sequence[Source], options: Options) -> str:
    """Seams at some steps: of the grid of that step, and of the worst grid of a period."""
    (source,) = sources
    period = single(options, "period") if "period" in options else PERIODS[0]
    steps = steps_of(options, ("1", "10", "20", LAST), source.results.steps)

    def own(row: Row, step: int) -> str:
        return estimates([at_step(run, run.seams, str(step)) for run in row.series.runs])

    def worst(row: Row, step: int) -> str:
        found = _Artifact(row, period).seeds
        return estimates([at_step(run, h.worst_seams, str(step)) for run, h in found])

    columns = [
        Column[Row]("rollout", lambda row: f"{row.series.model}, {row.schedule}", left=True),
        *(Column[Row](f"seams at step {step}", lambda row, step=step: own(row, step))
          for step in steps),
        *(Column[Row](f"worst of {period}, step {step}", lambda row, step=step: worst(row, step))
          for step in steps),
    ]  # fmt: skip
    return table(rollout_rows(sources, options), columns)


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
        if self.law not in run.physics:
            return plain(math.nan)
        return at_step(run, run.physics[self.law], str(step))


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
