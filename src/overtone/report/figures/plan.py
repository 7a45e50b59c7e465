"""What a plan was chosen from: error against price, and the patches of the steps.

Points on the front are joined by a staircase; the others are grey. The budget is a line.
"""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overtone.assess.plan_file import Option, Plan
from overtone.report.figures.steps import VRMSE, reach
from overtone.report.style import (
    BLUE,
    GREY,
    VERMILION,
    WIDE,
    NothingToDraw,
    fit_scale,
    new_figure,
    patch_name,
    styled,
    text,
)
from overtone.schedules import parse_schedule

UNITS = {"tokens": "tokens", "flops": "FLOPs", "seconds": "seconds"}


@styled
def plan_figure(plan: Plan) -> Figure:
    """Draw a plan."""
    options = [option for option in plan.options if math.isfinite(option.error.value)]
    if not options:
        raise NothingToDraw("no schedule of the plan has a finite error")
    figure = new_figure(WIDE, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_front(left, plan, options)
    _draw_patches(right, plan)
    figure.suptitle(
        f"Plan for {text(plan.model.name)} on {text(plan.data.name)}: {plan.steps} steps, "
        f"{plan.tried} schedules tried"
    )
    return figure


def _price(plan: Plan, option: Option) -> float:
    return getattr(option.cost, plan.price)


def _draw_front(axes: Axes, plan: Plan, options: list[Option]) -> None:
    """Error against price, with the budget and what was chosen."""
    others = [option for option in options if not option.on_front]
    front = [option for option in options if option.on_front]
    axes.plot(
        [_price(plan, o) for o in others], [o.error.value for o in others], "o",
        color="#aaaaaa", markersize=4, label="tried on all trajectories",
    )  # fmt: skip
    axes.step(
        [_price(plan, o) for o in front], [o.error.value for o in front], where="post",
        color=BLUE, marker="o", label="front", gid="front",
    )  # fmt: skip
    chosen = [option for option in options if option.schedule == plan.schedule]
    for option in chosen:
        axes.errorbar(
            [_price(plan, option)], [option.error.value], yerr=reach([option.error]),
            color=VERMILION, marker="*", markersize=15, capsize=3, linestyle="",
            label=f"plan: {text(plan.schedule, 26)}", gid="plan",
        )  # fmt: skip
    if plan.price in plan.limits:
        axes.axvline(plan.limits[plan.price], color=GREY, linestyle="--", label="budget")
    if plan.target is not None:
        axes.axhline(plan.target, color=GREY, linestyle=":", label="error that is good enough")
    fit_scale(axes, "x", [_price(plan, option) for option in options])
    fit_scale(axes, "y", [option.error.value for option in options])
    axes.set(xlabel=f"{UNITS[plan.price]} of {plan.steps} steps", ylabel=f"mean rollout {VRMSE}")
    axes.margins(0.08, 0.12)
    axes.legend(fontsize=8)


def _draw_patches(axes: Axes, plan: Plan) -> None:
    """The patch of each step, the finest at the top, and how often each is used."""
    schedule = parse_schedule(plan.schedule)
    names = [patch_name(patch) for patch in plan.model.patches]
    used = [patch_name(schedule(step).patch) for step in range(plan.steps)]
    rows = [len(names) - 1 - names.index(name) for name in used]
    axes.step(range(1, plan.steps + 1), rows, where="mid", color=VERMILION, linewidth=1.2)
    axes.plot(range(1, plan.steps + 1), rows, "s", color=VERMILION, markersize=3)
    labels = [f"{name}\n{used.count(name)} steps" for name in reversed(names)]
    axes.set_yticks(range(len(names)), labels)
    axes.set(xlabel="rollout step", ylabel="patch", ylim=(-0.5, len(names) - 0.5))
    axes.set_title("patches of the plan" + (", shifted" if "+shift" in plan.schedule else ""))
