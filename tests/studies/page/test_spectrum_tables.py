"""Tables of humps around harmonics and of energies."""

import math

import pytest

from overtone.evaluate.results import Estimate
from overtone.report.summary import interval
from studies.page.blocks import PageError
from studies.page.spectrum_tables import late

NAME = "shear-flow-mini"


def test_swell_of_fields_along_an_axis(render, cells, make_comparison):
    shown = make_comparison()
    said = f"swell {NAME} models=csm schedules=16,4 axis=1 periods=16 fields=pressure"
    header, *rows = cells(render(said, shear_flow_mini=shown))
    assert header == ["model", "schedule", "pressure, 16"]
    run = shown.models[0].runs[0]
    (seen,) = (s for s in run.axis_spectra if (s.field, s.axis) == ("pressure", 1))
    assert rows[0] == ["csm", "`16`", interval(seen.swell[16])]
    assert [row[1] for row in rows] == ["`16`", "`4`"]


def test_all_fields_by_default_and_errors_that_say_what_there_is(render, cells, make_comparison):
    shown = make_comparison()
    header = cells(render(f"swell {NAME} models=csm periods=16", shear_flow_mini=shown))[0]
    assert header[2:] == ["tracer, 16", "pressure, 16"]
    with pytest.raises(PageError, match=r"no swell of period '5'; there are 16"):
        render(f"swell {NAME} periods=5", shear_flow_mini=shown)
    with pytest.raises(PageError, match=r"no spectrum of 'tracer' along axis 7"):
        render(f"swell {NAME} axis=7", shear_flow_mini=shown)


def test_energies_are_means_over_the_last_half(render, cells, make_comparison):
    shown = make_comparison()
    header, *rows = cells(render(f"energy {NAME} models=csm schedules=16", shear_flow_mini=shown))
    assert header[2:] == ["VRMSE, last step", "energy, low", "energy, mid", "energy, high"]
    run = shown.models[0].runs[0]
    assert rows[0][2] == interval(run.vrmse[-1])
    expected = sum(e.value for e in run.energy["low"][6:]) / 6
    assert float(rows[0][3].split()[0]) == pytest.approx(expected, rel=1e-2)


def test_late_of_an_odd_number_and_of_nothing():
    curve = [Estimate(value=v, low=v - 1, high=v + 1) for v in (1.0, 2.0, 9.0)]
    assert late(curve) == Estimate(value=5.5, low=4.5, high=6.5)
    assert math.isnan(late(()).value)
