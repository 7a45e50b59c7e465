"""Truth, predictions and residuals at chosen steps, on common scales.

A wide domain has its residuals below the predictions, a tall one beside them. Fields of one axis
are lines; of three axes, the middle plane or the mean along the last axis is shown.

`overview` is an evaluation in one picture: the errors of all rollouts by step, beside what some of
them end with. Schedules have their usual looks for the model with the most of them; the lines of
the other models are black.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from overtone.domain import Domain
from overtone.errors import OvertoneError, require_one_of
from overtone.evaluate.results import Results
from overtone.evaluate.samples import Samples
from overtone.report.figures.scales import Scale, common_scale, flat, view_name, visible
from overtone.report.figures.steps import VRMSE, count_steps, draw_yardsticks, drawable
from overtone.report.series import evenly_chosen
from overtone.report.style import (
    FIELD_COLOURS,
    SIGNED_COLOURS,
    WIDE,
    Look,
    NothingToDraw,
    Panel,
    Picture,
    Sheet,
    add_legend,
    assign,
    fit_scale,
    looks,
    new_figure,
    styled,
    text,
)

Key = tuple[str, str]
"""A model's name and a schedule."""
Images = list[tuple[AxesImage, tuple[int, int]]]
"""Each image, with the index of its step and of its prediction; -1 is the truth."""
Lines = list[tuple[Line2D, tuple[int, int]]]
"""Each line, with the index of its step and of its prediction; -1 is the truth."""

MAX_STEPS = 3
MAX_KEYS = 4
HEIGHT = 6.0
"""Inches: the height of an overview."""
SHARES = (1.0, 1.5)
"""Relative widths of an overview's errors and fields."""
TALL = 1.2
"""Height over width from which residuals stand beside the predictions."""
EXTREME = 4.0
"""Ratio of the axes beyond which cells are not drawn as squares."""
UNIT = "domain units"


@dataclass(frozen=True)
class Scene:
    """What is drawn of samples: one field, some steps, some predictions.

    Attributes:
        samples: where it comes from.
        field: its name.
        keys: model and schedule of each prediction.
        steps: rollout steps.
        truth: `(S, *plane)`, one or two axes.
        predictions: `(S, *plane)`, one for each of `keys`.
        scale: of all.
        view: as in `flat`.
        bare: names of models without patches, whose schedule says nothing.
    """

    samples: Samples
    field: str
    keys: tuple[Key, ...]
    steps: tuple[int, ...]
    truth: np.ndarray
    predictions: tuple[np.ndarray, ...]
    scale: Scale
    view: str
    bare: frozenset[str] = frozenset()

    @property
    def domain(self) -> Domain:
        """What the frames lie on."""
        return self.samples.domain

    def name(self, key: Key) -> str:
        """A prediction's name: its schedule, and its model if there are several."""
        several = len({model for model, _ in self.samples.predictions}) > 1
        if key[0] in self.bare:
            return text(key[0], 15)
        return f"{text(key[0], 15)}\n{text(key[1], 15)}" if several else text(key[1], 15)

    def when(self, step: int) -> str:
        """A step and its time after the last true frame."""
        return f"step {step}, t = {step * self.domain.dt:.4g}"


def scene(
    samples: Samples,
    field: str | None,
    keys: Sequence[Key],
    steps: Sequence[int],
    view: str = "slice",
    bare: frozenset[str] = frozenset(),
) -> Scene:
    """Choose from samples; errors name what there is to choose from."""
    fields = samples.domain.fields
    field = fields[0] if field is None else field
    require_one_of(field, fields, "field")
    for key in keys:
        if key not in samples.predictions:
            known = ", ".join(f"{model} {schedule}" for model, schedule in samples.predictions)
            raise OvertoneError(f"no samples of {key!r}; there are: {known or 'none'}")
    if not keys or not steps:
        raise NothingToDraw("the evaluation kept no samples of predictions")
    chosen = [samples.steps.index(step) for step in steps]
    channel = fields.index(field)
    truth = flat(samples.truth[chosen, channel], samples.domain, view)
    predictions = [
        flat(samples.predictions[key][chosen, channel], samples.domain, view) for key in keys
    ]
    scale = common_scale(truth, predictions)
    frames = truth, tuple(predictions)
    return Scene(samples, field, tuple(keys), tuple(steps), *frames, scale, view, bare)


@styled
def field_panels(
    samples: Samples,
    field: str | None = None,
    *,
    keys: Sequence[Key] | None = None,
    steps: Sequence[int] | None = None,
    view: str = "slice",
    known: dict[str, Look] | None = None,
    bare: frozenset[str] = frozenset(),
) -> Figure:
    """Draw one field.

    Args:
        samples: frames of one trajectory.
        field: its name; the first by default.
        keys: predictions to show; by default four of them.
        steps: which of the samples' steps; by default three of them, the last included.
        view: of three axes, the middle `"slice"` or the `"projection"` along the last.
        known: looks of the schedules, for lines.
        bare: names of models without patches.
    """
    keys = evenly_chosen(list(samples.predictions), MAX_KEYS) if keys is None else keys
    steps = evenly_chosen(samples.steps, MAX_STEPS) if steps is None else steps
    chosen = scene(samples, field, keys, steps, view, bare)
    if chosen.domain.ndim == 1:
        known = assign(schedule for _, schedule in samples.predictions) | (known or {})
        return draw_lines(chosen, known)[0]
    return draw_images(chosen)[0]


@styled
def overview(
    results: Results, samples: Samples, keys: Sequence[Key], field: str | None = None
) -> Figure:
    """Draw errors and the last frame that was kept.

    Args:
        results: of an evaluation.
        samples: its frames, of two or three axes.
        keys: model and schedule of the predictions to show.
        field: its name; the first by default.
    """
    if samples.domain.ndim == 1:
        raise OvertoneError("the samples have one axis; an overview shows two. Use field_panels")
    figure = new_figure(WIDE, HEIGHT)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=SHARES)[0]
    _draw_errors(left.subplots(), results)
    _, residuals = fill_images(right, scene(samples, field, keys, samples.steps[-1:]), tall=False)
    for image, _ in residuals:
        panel = cast("Panel", image.axes)
        panel.set_xlabel("x", fontsize=8)  # its unit is y's, and would be wider than a panel
    return figure


def draw_images(chosen: Scene, *, timed: bool = True) -> tuple[Picture, Images, Images]:
    """Panels of two axes; returns the figure, its images of fields and those of residuals.

    `timed` writes the steps beside their rows.
    """
    size, tall = _measure(chosen)
    figure = new_figure(*size)
    return figure, *fill_images(figure, chosen, tall=tall, timed=timed)


def fill_images(
    figure: Sheet, chosen: Scene, *, tall: bool, timed: bool = True
) -> tuple[Images, Images]:
    """Draw into a figure, or a part of one; returns the images of fields and of residuals.

    Args:
        figure: where.
        chosen: what.
        tall: whether residuals stand beside the predictions, or below them.
        timed: whether steps are written beside their rows.
    """
    num_keys, num_steps = len(chosen.keys), len(chosen.steps)
    grid = figure.subplots(*_counts(chosen, tall=tall), squeeze=False)
    fields: Images = []
    residuals: Images = []
    for i in range(num_steps):
        row = i if tall else 2 * i
        fields += [
            (_draw_field(grid[row, j + 1], chosen, i, j), (i, j)) for j in range(-1, num_keys)
        ]
        for j in range(num_keys):
            axes = grid[row, 1 + num_keys + j] if tall else grid[row + 1, 1 + j]
            residuals.append((_draw_residual(axes, chosen, i, j), (i, j)))
    _label(figure, grid, chosen, tall=tall, timed=timed)
    _add_colorbars(figure, grid, chosen, tall=tall)
    return fields, residuals


def draw_lines(
    chosen: Scene, known: dict[str, Look], *, timed: bool = True
) -> tuple[Picture, Lines, Lines]:
    """Lines of one axis: fields above, residuals below, a column for each step.

    Returns the figure, its lines of fields and those of residuals. `timed` writes the steps above
    their columns.
    """
    num_steps = len(chosen.steps)
    figure = new_figure({1: 6.4, 2: 8.2}.get(num_steps, WIDE), 4.9)
    grid = figure.subplots(2, num_steps, sharex=True, sharey="row", squeeze=False)
    (n,), (length,) = chosen.domain.shape, chosen.domain.extent
    x = (np.arange(n) + 0.5) * length / n
    fields: Lines = []
    residuals: Lines = []
    for i, step in enumerate(chosen.steps):
        top, bottom = grid[:, i]
        (line,) = top.plot(x, chosen.truth[i], color="black", linewidth=2, label="truth")
        fields.append((line, (i, -1)))
        for j, key in enumerate(chosen.keys):
            look = known[key[1]].curve(n, first=3 * j) | {"label": chosen.name(key), "alpha": 0.9}
            fields.append((top.plot(x, chosen.predictions[j][i], **look)[0], (i, j)))
            residual = chosen.predictions[j][i] - chosen.truth[i]
            residuals.append((bottom.plot(x, residual, **look)[0], (i, j)))
        top.set_title(chosen.when(step) if timed else "")
        bottom.set(xlabel=f"x ({UNIT})")
    _limit_lines(grid, chosen.scale)
    grid[0, 0].set(ylabel=f"{text(chosen.field)}\n(data units)")
    grid[1, 0].set(ylabel="predicted − true\n(data units)")
    add_legend(figure, grid[0, 0].get_lines(), title="")
    return figure, fields, residuals


def _counts(chosen: Scene, *, tall: bool) -> tuple[int, int]:
    """Rows and columns of panels."""
    num_keys, num_steps = len(chosen.keys), len(chosen.steps)
    return (num_steps, 1 + 2 * num_keys) if tall else (2 * num_steps, 1 + num_keys)


def _measure(chosen: Scene) -> tuple[tuple[float, float], bool]:
    """The figure's size in inches, and whether residuals stand beside the predictions."""
    length, height = chosen.domain.extent[:2]
    aspect = float(np.clip(height / length, 1 / EXTREME, EXTREME))
    tall = aspect > TALL
    rows, columns = _counts(chosen, tall=tall)
    width = min((WIDE - 0.9) / columns, 2.4, 2.8 / aspect)
    title = 0.25 * (1 + max(chosen.name(key).count("\n") for key in chosen.keys))
    titles = title if tall else 2 * title
    size = (
        max(4.8, (width + 0.1) * columns + 0.9),
        rows * (0.9 * width * aspect + 0.12) + titles + 1.25 + (0.0 if tall else 0.7),
    )
    return size, tall


def _draw_field(axes: Panel, chosen: Scene, i: int, j: int) -> AxesImage:
    values = chosen.truth[i] if j < 0 else chosen.predictions[j][i]
    image = _show(axes, values, chosen, cmap=FIELD_COLOURS, norm=chosen.scale.field)
    if i == 0:
        axes.set_title("truth" if j < 0 else chosen.name(chosen.keys[j]), fontsize=8)
    return image


def _draw_residual(axes: Panel, chosen: Scene, i: int, j: int) -> AxesImage:
    values = chosen.predictions[j][i] - chosen.truth[i]
    image = _show(axes, values, chosen, cmap=SIGNED_COLOURS, norm=chosen.scale.residual)
    if i == 0:
        axes.set_title(f"{chosen.name(chosen.keys[j])}\n− truth", fontsize=8)
    return image


def _show(axes: Panel, values: np.ndarray, chosen: Scene, cmap: str, norm: Normalize) -> AxesImage:
    """A plane `(nx, ny)` with x to the right and y upwards; not-finite cells are grey."""
    length, height = chosen.domain.extent[:2]
    square = 1 / EXTREME <= height / length <= EXTREME
    axes.set_facecolor("#dddddd")
    axes.grid(visible=False)
    image = axes.imshow(
        visible(values, norm).T, origin="lower", extent=(0, length, 0, height),
        aspect="equal" if square else "auto", cmap=cmap, norm=norm,
    )  # fmt: skip
    if not np.isfinite(values).any():
        axes.text(
            0.5, 0.5, "not\nfinite", ha="center", va="center", transform=axes.transAxes,
            fontsize=9, gid="not finite",
        )  # fmt: skip
    return image


def _label(figure: Sheet, grid: np.ndarray, chosen: Scene, *, tall: bool, timed: bool) -> None:
    """Ticks at the outer panels alone, as all have the same axes; steps beside their rows."""
    figure.supylabel(f"y ({UNIT})", fontsize=9)
    length, height = chosen.domain.extent[:2]
    narrow = height / length > TALL
    for (row, column), axes in np.ndenumerate(grid):
        axes.tick_params(labelsize=8, labelbottom=row == grid.shape[0] - 1, labelleft=column == 0)
        axes.locator_params(axis="x", nbins=2 if narrow else 4)
        axes.locator_params(axis="y", nbins=4 if narrow else 3)
    for axes in grid[-1]:
        axes.set_xlabel(f"x ({UNIT})", fontsize=8)
    for i, step in enumerate(chosen.steps):
        if tall:
            grid[i, 0].set_ylabel(chosen.when(step) if timed else "", fontsize=8.5)
            continue
        blank = grid[2 * i + 1, 0]  # there is no residual of the truth
        blank.axis("off")
        when = chosen.when(step).replace(", ", "\n") if timed else ""
        blank.text(0.5, 0.5, when, ha="center", va="center", transform=blank.transAxes)


def _add_colorbars(figure: Sheet, grid: np.ndarray, chosen: Scene, *, tall: bool) -> None:
    split = 1 + len(chosen.keys)
    left, right = (grid[:, :split], grid[:, split:]) if tall else (grid, grid)
    view = view_name(chosen.domain, chosen.view)
    name = text(chosen.field) + (f", {view}" if view else "") + " (data units)"
    beyond = "both" if chosen.scale.clipped else "neither"
    look: dict[str, Any] = {"location": "bottom", "shrink": 0.8, "aspect": 40, "pad": 0.02}
    look["extend"] = beyond
    residual = ScalarMappable(chosen.scale.residual, SIGNED_COLOURS)
    field = ScalarMappable(chosen.scale.field, FIELD_COLOURS)
    # Of two bars below the same panels, the one that comes first is the lower one.
    single = tall and split == 2  # a bar below one panel is not wider than it
    difference = "predicted − true" + ("\n" if single else " ") + "(data units)"
    ticks = _ends(chosen.scale.residual) if single else _few()
    figure.colorbar(residual, ax=right, label=difference, ticks=ticks, **look)
    own = {} if isinstance(chosen.scale.field, LogNorm) else {"ticks": _few()}
    figure.colorbar(field, ax=left, label=name, **own, **look)


def _few() -> MaxNLocator:
    """Few ticks, as signed numbers are long; a bar of its own each, whose range it follows."""
    return MaxNLocator(5)


def _ends(norm: Normalize) -> list[float]:
    """Two round numbers near the ends of a scale around 0: a third would run into them."""
    limit = float(norm.vmax or 1.0)
    power = 10.0 ** math.floor(math.log10(limit))
    nearest = max(step for step in (1, 2, 5) if step * power <= limit * (1 + 1e-9)) * power
    return [-nearest, nearest]


def _limit_lines(grid: np.ndarray, scale: Scale) -> None:
    low, high = float(scale.field.vmin or 0.0), float(scale.field.vmax or 0.0)
    margin = 0.3 * (high - low)
    grid[0, 0].set_ylim(low - margin, high + margin)
    if isinstance(scale.field, LogNorm):
        grid[0, 0].set(yscale="log", ylim=(low / 2, high * 2))
    limit = 1.05 * float(scale.residual.vmax or 0.0)
    grid[1, 0].set_ylim(-limit, limit)


def _draw_errors(axes: Panel, results: Results) -> None:
    by_model = drawable(results, lambda s: s.curve, "errors by step")
    found, known = list(chain(*by_model.values())), looks(results)
    main = max(by_model, key=lambda name: len(by_model[name]))
    for index, s in enumerate(found):
        look = known[s.schedule] if s.model == main else replace(known[s.schedule], colour="black")
        label = s.model if not s.patched else s.schedule
        label = f"{s.model}, {label}" if s.patched and len(by_model) > 1 else label
        values = [e.value for e in s.curve]
        style = look.curve(len(values), first=index)
        axes.plot(range(1, len(values) + 1), values, label=text(label), **style)
    fit_scale(axes, "y", [e.value for s in found for e in s.curve])
    draw_yardsticks(axes, results)
    axes.set(ylabel=VRMSE)
    count_steps(axes, results)
    axes.set_title(f"Error, mean of {results.data.trajectories} trajectories")
    axes.legend(handlelength=3.2)  # long enough to show dashes
