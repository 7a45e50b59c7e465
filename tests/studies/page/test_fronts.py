"""The picture of rivals: who is on the front, and what is drawn of whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.page.fronts import Point, best, front, fronts
from studies.page.sources import Source

SIZES = st.floats(0.01, 10)
POINTS = st.lists(st.builds(Point, st.sampled_from("abc"), st.just(2.0), SIZES, SIZES), min_size=1)


@given(POINTS)
def test_nothing_beats_the_front_and_the_front_beats_the_rest(points):
    edge = front(points)
    for one in edge:
        assert not any(p.seconds <= one.seconds and p.error < one.error for p in points)
    for point in points:
        assert any(p.seconds <= point.seconds and p.error <= point.error for p in edge)
    assert [p.seconds for p in edge] == sorted(p.seconds for p in edge)


@given(POINTS)
def test_the_best_of_each_model(points):
    found = {p.model: p.error for p in best(points)}
    assert found == {m: min(p.error for p in points if p.model == m) for m in found}
    assert set(found) == {p.model for p in points}


@pytest.fixture
def sources(make_comparison, make_trained, make_unpatched):
    def budget(minutes, factor):
        models = [
            make_trained("csm", factor=factor), make_unpatched("fno", factor=0.3 * factor),
            make_unpatched("persistence", factor=0.01), make_unpatched("sinenet", factor=90.0),
        ]  # fmt: skip
        return Source(f"shear-flow-mini-rivals-{minutes}", make_comparison(models))

    return [budget(2, 1.0), budget(12, 0.5)]


def drawn(axes, gid):
    return [line for line in axes.get_lines() if line.get_gid() == gid]


def test_panels_of_each_budget_and_one_of_minutes(sources):
    figure = fronts(sources)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:3] == ["best schedule of each model", *(f"{m} CPU-minutes of training"
                          for m in (2, 12))]  # fmt: skip
    (csm,) = drawn(figure.axes[0], "csm")
    assert list(csm.get_xdata()) == [2, 12]
    assert csm.get_ydata()[1] == pytest.approx(csm.get_ydata()[0] / 2, rel=1e-3)
    for panel in (figure.axes[1], figure.axes[2]):
        assert len(drawn(panel, "front")) == 1
        assert len(drawn(panel, "best")) == 2  # neither persistence nor what is far off


def test_one_budget_has_no_panel_of_minutes(sources):
    figure = fronts(sources[:1])
    assert [axes.get_title() for axes in figure.axes] == 2 * ["2 CPU-minutes of training"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["VRMSE, 10 steps", "VRMSE, 12 steps"]
