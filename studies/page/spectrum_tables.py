"""Tables of spectra: humps around harmonics, and whether a long rollout keeps its energy."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.evaluate.results import AxisSpectrum, Estimate, Run
from overtone.report.series import mean
from studies.page.blocks import PageError
from studies.page.markdown import (
    Column,
    Row,
    blow_up_columns,
    estimates,
    name_columns,
    rollout_rows,
    table,
)
from studies.page.sources import Options, Source, single
from studies.page.values import at_step

PERIODS = ("16",)
BANDS = ("low", "mid", "high")


def swell(sources: Sequence[Source], options: Options) -> str:
    """Height of the humps around the harmonics of some periods, by field, at the middle step."""
    rows = rollout_rows(sources, options)
    axis = single(options, "axis") if "axis" in options else "0"
    fields = options.get("fields", _fields(rows))
    columns = [
        *name_columns(rows),
        *(
            Column[Row](
                f"{field}, {period}",
                lambda row, field=field, period=period: estimates(
                    [_swell(run, field, axis, period) for run in row.series.runs]
                ),
            )
            for period in options.get("periods", PERIODS)
            for field in fields
        ),
    ]
    return table(rows, columns, group=lambda row: row.source.name)


def _fields(rows: Sequence[Row]) -> tuple[str, ...]:
    found = (one.field for row in rows for run in row.series.runs for one in run.axis_spectra)
    return tuple(dict.fromkeys(found))


def _swell(run: Run, field: str, axis: str, period: str) -> Estimate:
    for one in run.axis_spectra:
        if (one.field, str(one.axis)) == (field, axis):
            return _of_period(one, period)
    raise PageError(f"there is no spectrum of '{field}' along axis {axis}; see the comparison's "
                    "`curves` (studies/catalogue.py)")  # fmt: skip


def _of_period(spectrum: AxisSpectrum, period: str) -> Estimate:
    known = {str(patch): value for patch, value in spectrum.swell.items()}
    if period not in known:
        raise PageError(f"no swell of period '{period}'; there are {', '.join(known) or 'none'}")
    return known[period]


def energy(sources: Sequence[Source], options: Options) -> str:
    """VRMSE at the last step, and energies over the truth's, mean over the last half of steps."""
    rows = rollout_rows(sources, options)
    columns = [
        *name_columns(rows),
        Column[Row](
            "VRMSE, last step",
            lambda row: estimates([at_step(run, run.vrmse, _last(row)) for run in row.series.runs]),
        ),
        *(
            Column[Row](
                f"energy, {band}",
                lambda row, band=band: estimates(
                    [late(run.energy.get(band, ())) for run in row.series.runs]
                ),
            )
            for band in BANDS
        ),
        *blow_up_columns(rows),
    ]
    return table(rows, columns, group=lambda row: row.source.name)


def _last(row: Row) -> str:
    return str(row.source.results.steps)


def late(curve: Sequence[Estimate]) -> Estimate:
    """Mean of value and bounds over the second half of the steps; NaN if there are none."""
    half = curve[len(curve) // 2 :]
    return Estimate(
        value=mean([one.value for one in half]),
        low=mean([one.low for one in half]),
        high=mean([one.high for one in half]),
    )
