"""Pictures of `results/assess.json`: rollouts with their bands, and how strange input is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from studies.page.assess_rows import COMMAND, FILE, read


def band(folder: Path, what: str = "test") -> Figure:
    """A rollout of two systems with its band and the true error, and the patches below.

    Of all seeds' rollouts those are drawn whose band holds the true error at all steps, and of
    these the ones whose patch changes most often. Each says how many of its controller's rollouts
    there are whose band holds; where none does, the one that is drawn says so.

    Args:
        folder: of the results.
        what: the set of flows.
    """
    drawn = []
    for name, models in _systems(folder).items():
        found = [own for model in models if (own := model["example"].get(what))]
        if found:
            drawn.append((name, max(found, key=_telling)))
    drawn.sort(key=lambda pair: _telling(pair[1]), reverse=True)
    return error_band([_banded(name, own) for name, own in drawn[:2]])


def _telling(own: Mapping[str, Any]) -> tuple[bool, int]:
    """How much a rollout shows: a band that holds, then many changes of the patch."""
    return bool(own.get("inside")), own["changes"]


def _banded(name: str, own: Mapping[str, Any]) -> Banded:
    """A rollout as the figure takes it.

    Args:
        name: of its system.
        own: what the study kept of it.
    """
    bounds = {float(level): (_floats(pair[0]), _floats(pair[1]))
              for level, pair in own["bounds"].items()}  # fmt: skip
    note = ""
    if "held" in own:
        level = f"{100 * float(own['level']):.0f} %"
        kept = f"of {own['rollouts']} rollouts {own['held']} stay in their {level} band"
        note = kept if own["inside"] else f"{kept}; not this one"
    title = f"{name.removesuffix('-mini')}, {own['rule']}"
    error, value = _floats(own["error"]), _floats(own["value"])
    return Banded(title, error, value, bounds, own["patches"], note=note)


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
