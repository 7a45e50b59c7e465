"""Cards of packaged models: that of their training, with a study's evaluation as their accuracy."""

from __future__ import annotations

from overtone.domain import Domain
from overtone.evaluate.results import ModelResult, Results
from overtone.models.card import VRMSE, compose, makeup_of, table, usage
from overtone.report.summary import interval
from overtone.train.card import data_rows, training_rows
from overtone.train.config import RunConfig

LIMITS = """## Limits

A miniature, trained for minutes on a CPU with few trajectories of one parameter setting. It shows
the method; it is not a tool for other parameters, grids, boundaries or time steps than those above,
and its rollouts lose small scales. Predictions obey no conservation law by construction.

Licence: MIT, weights and data alike."""


def card(name: str, config: RunConfig, results: Results, model: ModelResult) -> str:
    """The text of a model card, in Markdown.

    Args:
        name: of the packaged model.
        config: of its training.
        results: the evaluation that it was part of.
        model: its own part of that.
    """
    made = config.data.generate
    assert made is not None
    patches = config.model.patches
    parts = makeup_of(model.config, patches, config.model.context, model.num_parameters)
    domain = Domain(**results.data.domain)
    training = training_rows(config, model.training, "one core")
    sections = (
        usage(name, "-".join(map(str, patches))),
        "## Data\n\n" + table(("", ""), data_rows(config, domain, results.data.name)),
        "## Training\n\n" + table(("", ""), training),
        _accuracy(results, model),
        LIMITS,
    )
    about = f"An emulator of `{made.system}`: {parts}, stored in half precision."
    return compose(name, about, sections, license="mit")


def _accuracy(results: Results, model: ModelResult) -> str:
    data = results.data
    next_step = [
        (str(step.patch), interval(step.vrmse), f"{step.tokens:,}") for step in model.next_step
    ]
    rollouts = [
        (run.schedule, interval(run.vrmse_10), interval(run.vrmse_all), f"{run.tokens:,}")
        for run in model.runs
    ]
    return "\n\n".join(
        (
            "## Accuracy",
            f"On the {data.trajectories} trajectories of the {data.split} split, rollouts from "
            f"frame {data.start} on (`{results.command}`). {VRMSE}",
            table(("patch", "next step", "tokens"), next_step),
            table(("schedule", "10 steps", f"{results.steps} steps", "tokens"), rollouts),
        )
    )
