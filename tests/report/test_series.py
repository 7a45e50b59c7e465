"""Seeds, averages and choices."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.evaluate.results import Estimate
from overtone.report.series import (
    domain_of,
    dt_text,
    evenly_chosen,
    mean_by_step,
    model_names,
    next_points,
    num_seeds,
    pool,
    series,
)


def test_models_that_share_a_name_are_one_series(make_model, make_results):
    models = [make_model(seed=0), make_model(seed=1, factor=2.0), make_model("other")]
    results = make_results(models)
    found = series(results)
    assert model_names(results) == ["csm", "other"]
    assert num_seeds(results) == 2
    assert len(found) == 8
    assert len(next_points(results)) == 6
    first = found[0]
    values = [run.vrmse_all for run in first.runs]
    assert first.vrmse_all.value == pytest.approx((values[0].value + values[1].value) / 2)
    assert first.vrmse_all.low == values[0].low
    assert first.vrmse_all.high == values[1].high
    assert first.curve[3].value == pytest.approx(1.5 * models[0].runs[0].vrmse[3].value)
    assert first.harmonics(8).overall == pytest.approx(1.5 * models[0].runs[0].harmonics[1].overall)


def test_an_average_ends_where_its_first_seed_ends(make_model, make_results):
    models = [make_model(seed=0), make_model(seed=1, blow_up=6)]
    first = series(make_results(models))[0]
    assert len(first.curve) == 5
    assert first.blow_up == 6
    assert first.spectrum(12).power == first.runs[0].spectra[-1].power


def test_not_finite_numbers_stay_visible():
    bad = Estimate(value=math.nan, low=math.nan, high=math.nan)
    good = Estimate(value=1.0, low=0.5, high=2.0)
    assert math.isnan(pool([bad, good]).value)
    assert pool([bad, good]).high == 2.0
    assert mean_by_step([[1.0, 2.0, 3.0], [3.0, 4.0]]) == [2.0, 3.0]


@given(st.integers(1, 50), st.integers(2, 9))
def test_a_choice_keeps_ends_order_and_count(length, count):
    items = list(range(length))
    chosen = evenly_chosen(items, count)
    assert len(chosen) == min(length, count)
    assert (chosen[0], chosen[-1]) == (0, length - 1)
    assert chosen == sorted(set(chosen))


def test_results_without_a_domain_are_refused(make_results):
    results = make_results()
    data = results.data.model_copy(update={"domain": {}})
    with pytest.raises(DataError, match="domain"):
        domain_of(results.model_copy(update={"data": data}))


def test_one_dt_or_the_shortest_and_the_longest():
    assert dt_text(Domain((4,), (1.0,), "open", ("u",), 0.25)) == "0.25"
    assert dt_text(Domain((4,), (1.0,), "open", ("u",), 0.25, (0.25, 1.4))) == "0.25 to 1.4"
