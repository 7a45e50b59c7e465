"""Pictures of `results/assess.json`: rollouts with their bands, and how strange input is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overtone.report.figures.band import Banded, error_band
from overtone.report.style import (
    COLOURS,
    DASHES,
    GREY,
    WIDE,
    NothingToDraw,
    add_legend,
    new_figure,
    styled,
)
from studies.instrument import RATES
from studies.page.assess_tables import COMMAND, FILE, read


def band(folder: Path, what: str = "test") -> Figure:
    """A rollout of two systems with its band and the true error, and the patches below.

    Args:
        folder: of the results.
        what: the set of flows; of its rollouts, those are drawn whose band holds the true error at
            all steps, and of these the ones whose patch changes most often.
    """
    examples = [(name, models[0]["example"].get(what)) for name, models in _systems(folder).items()]
    found = [(name, own) for name, own in examples if own]
    found.sort(key=lambda pair: (pair[1].get("inside", False), pair[1]["changes"]), reverse=True)
    shown = []
    for name, own in found[:2]:
        bounds = {float(level): (_floats(pair[0]), _floats(pair[1]))
                  for level, pair in own["bounds"].items()}  # fmt: skip
        title = f"{name.removesuffix('-mini')}, {own['rule']}"
        shown.append(Banded(title, _floats(own["error"]), _floats(own["value"]), bounds,
                            own["patches"]))  # fmt: skip
    return error_band(shown)


@styled
def curves(folder: Path) -> Figure:
    """For each system, how much strange input is found at how many false alarms.

    With several models, of one seed each, means over them.
    """
    systems = _systems(folder)
    inputs = list(dict.fromkeys(w for models in systems.values() for w in models[0]["detection"]))
    looks = dict(zip(inputs, zip(COLOURS, ("-", *DASHES), strict=False), strict=False))
    figure = new_figure(WIDE, 3.3)
    panels = figure.subplots(1, len(systems), squeeze=False, sharey=True)[0]
    for panel, (name, models) in zip(panels, systems.items(), strict=True):
        panel.plot((0, 1), (0, 1), color=GREY, linestyle=":", linewidth=1)
        for what in models[0]["detection"]:
            found = [_floats(model["detection"][what]["found"]) for model in models]
            mean = [sum(column) / len(column) for column in zip(*found, strict=True)]
            colour, dashes = looks[what]
            panel.plot(
                RATES, mean, color=colour, linestyle=dashes, drawstyle="steps-post", gid=what
            )
        panel.set_title(name.removesuffix("-mini"))
        panel.set_xlabel("false alarms")
    panels[0].set_ylabel("strange input found")
    handles = [Line2D([], [], color=colour, linestyle=dashes, label=what)
               for what, (colour, dashes) in looks.items()]  # fmt: skip
    chance = Line2D([], [], color=GREY, linestyle=":", label="chance")
    add_legend(figure, [*handles, chance], title="input")
    return figure


def _systems(folder: Path) -> dict[str, Any]:
    content = read(folder)
    if content is None or not content["systems"]:
        raise NothingToDraw(f"there is no {FILE} of a system; run `{COMMAND} SYSTEM`")
    return content["systems"]


def _floats(values: Sequence[Any]) -> list[float]:
    return [float(value) for value in values]
