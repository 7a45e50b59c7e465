"""The picture of a plan."""

import pytest

from overtone.assess.plan_file import Option, Plan, PlannedModel, Spent
from overtone.evaluate.results import Data, Estimate
from overtone.report.figures.plan import plan_figure
from overtone.report.style import NothingToDraw


def option(schedule, error, tokens, *, on_front=True):
    cost = Spent(tokens=tokens, flops=10 * tokens, seconds=tokens / 1000)
    value = Estimate(value=error, low=0.9 * error, high=1.1 * error)
    return Option(schedule=schedule, error=value, cost=cost, on_front=on_front)


def make(options, **changes):
    domain = {"shape": [64], "extent": [1.0], "boundaries": "periodic", "fields": ["u"], "dt": 1.0}
    about = {
        "command": "", "seed": 0, "machine": {}, "starts": 3, "steps": 12, "tried": 40,
        "model": PlannedModel(name="m_$x$", fingerprint="0" * 64, patches=(4, 8, 16)),
        "data": Data(name="d", split="valid", fingerprint="", trajectories=3, start=0,
                     domain=domain),
        "limits": {"tokens": 150}, "target": None, "price": "tokens", "fits": True,
        "schedule": options[0].schedule, "error": options[0].error, "worst": 0.3,
        "cost": options[0].cost, "options": tuple(options),
    }  # fmt: skip
    return Plan(**(about | changes))


def test_front_budget_plan_and_its_patches():
    options = [option("16", 0.4, 36), option("4-8-16", 0.2, 108),
               option("8", 0.5, 72, on_front=False)]  # fmt: skip
    figure = plan_figure(make(options, schedule="4-8-16"))
    left, right = figure.axes
    (front,) = [line for line in left.lines if line.get_gid() == "front"]
    assert front.get_xydata().tolist() == [[36, 0.4], [108, 0.2]]
    assert front.get_drawstyle() == "steps-post"
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert {"front", "budget", "plan: 4-8-16"} <= {*labels}
    assert right.lines[0].get_ydata().tolist() == [2, 1, 0] * 4  # the finest at the top
    assert [t.get_text() for t in right.get_yticklabels()] == [
        "16\n4 steps", "8\n4 steps", "4\n4 steps"]  # fmt: skip
    assert left.get_xlabel() == "tokens of 12 steps"


def test_an_error_asked_for_is_a_line_and_nothing_is_not_drawn():
    figure = plan_figure(make([option("16", 0.4, 36)], limits={}, target=0.3, price="seconds"))
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "error that is good enough" in labels
    assert "budget" not in labels
    with pytest.raises(NothingToDraw):
        plan_figure(make([option("16", float("inf"), 36)]))
