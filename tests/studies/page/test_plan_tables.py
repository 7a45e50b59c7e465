"""Plans beside the schedules whose tokens they had."""

from types import SimpleNamespace

import pytest

from overtone.report.summary import interval
from studies.page.blocks import Block, PageError
from studies.page.markdown import change
from studies.page.plan_tables import plans
from studies.page.sources import Source
from studies.page.values import render_value


def planned(make_comparison, schedule="16+shift", tokens=None):
    shown = make_comparison()
    limit = tokens or max(run.tokens for run in shown.models[0].runs)
    error = shown.models[0].runs[0].vrmse_all.model_dump()
    return Source("some", shown, {"schedule": schedule, "limits": {"tokens": limit},
                                  "error": error})  # fmt: skip


def test_the_plan_comes_first_with_what_it_expected(make_comparison, cells):
    source = planned(make_comparison)
    header, *rows = cells(plans([source], {"relative": ("4-8-16",)}))
    assert header[2] == "expected"
    assert rows[0][1] == "plan: `16+shift`"
    assert rows[0][2] == interval(source.results.models[0].runs[0].vrmse_all)
    assert all(row[2] == "–" for row in rows if not row[1].startswith("plan"))
    (cycle,) = [row for row in rows if row[1] == "`4-8-16`" and row[4] == "0 %"][:1]
    assert cycle[6] == "0 %"


def test_what_costs_more_is_left_out_and_there_may_be_no_plan(make_comparison, cells):
    tokens = min(run.tokens for run in make_comparison().models[0].runs)
    rows = cells(plans([planned(make_comparison, tokens=tokens)], {}))[1:]
    assert {row[1] for row in rows} <= {"plan: `16+shift`", "`16`"}
    bare = cells(plans([Source("some", make_comparison())], {}))[1:]
    assert not any(row[1].startswith("plan") for row in bare)


def test_a_plan_against_a_schedule_in_a_sentence(make_comparison):
    source = planned(make_comparison, schedule="16")
    library = SimpleNamespace(source=lambda name: source if name == "some" else None)

    def rendered(*names):
        return render_value(Block("value", "plan-change", names, {}, 1, 0, 0), library)

    runs = {run.schedule: run.vrmse_all.value for run in source.results.models[0].runs}
    assert rendered("some", "4-8-16", "vrmse_all") == change(runs["16"], runs["4-8-16"])
    assert rendered("some", "16", "vrmse_all") == "0.0 %"
    assert rendered("other", "16", "vrmse_all") == "not run yet"
    with pytest.raises(PageError, match="expected 'value: plan-change COMPARISON"):
        rendered("some", "16")
    library.source = lambda _: Source("some", make_comparison())
    with pytest.raises(PageError, match="'some' has no plan"):
        rendered("some", "16", "vrmse_all")


def test_for_how_many_comparisons_the_planner_kept_its_rule(make_comparison):
    made = {"a": planned(make_comparison, schedule="16"), "b": planned(make_comparison, "4-8-16")}
    library = SimpleNamespace(source=made.get)

    def rendered(*names):
        return render_value(Block("value", "plan-within", names, {}, 1, 0, 0), library)

    runs = {run.schedule: run.vrmse_all.value for run in made["a"].results.models[0].runs}
    above = 100 * (runs["16"] / runs["4-8-16"] - 1)
    assert above > 0.1
    for limit, said in ((0, "1 of 2"), (above - 0.01, "1 of 2"), (above + 0.01, "2 of 2")):
        assert rendered(str(limit), "4-8-16", "vrmse_all", "a", "b") == said
    assert rendered("0", "4-8-16", "vrmse_all", "not there") == "not run yet"
    with pytest.raises(PageError, match="expected 'value: plan-within LIMIT"):
        rendered("0", "4-8-16", "vrmse_all")
