"""A few frames of a dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from overtone.data.trajectories import Trajectories
from overtone.data.well import WellFolder
from overtone.domain import Domain
from overtone.errors import DataError
from overtone.report.figures.scales import field_look, flat
from overtone.report.series import evenly_chosen
from overtone.report.style import new_figure, save_as, text

MAX_CHANNELS = 8
"""Channels that are drawn."""
MAX_FRAMES = 200
"""Frames of a trajectory to be imported that are read for a picture."""


def picture(
    path: str | Path, out: str | Path, *, split: str = "train", trajectory: int = 0, frames: int = 4
) -> Path:
    """Draw a few frames of one trajectory, one row for each channel.

    Args:
        path: as for `WellFolder`.
        out: the picture's file, e.g. `frames.png`.
        split: which split.
        trajectory: counted over the split's files.
        frames: how many, evenly spread over the trajectory.
    """
    out = Path(out)
    data = WellFolder(path, split, 1, whole=True, trajectories=[trajectory])
    window, rest = data[0]
    values = torch.cat([window.fields, rest])
    data.close()
    figure = trajectory_frames(values, data.domain, data.layouts[0].axes, frames)
    name = text(data.layouts[0].dataset_name, 80)
    figure.suptitle(f"{name}: {text(split)}, trajectory {trajectory}")
    save_as(figure, out)
    return out


def draw(data: Trajectories, out: Path) -> Path:
    """Draw a few frames of the first trajectory of what is to be imported, as `picture` would.

    Args:
        data: simulations; of long ones, only some frames are read.
        out: the picture's file.
    """
    stride = -(-data.runs[0].steps // MAX_FRAMES)
    with np.errstate(over="ignore"):  # what float32 can't hold, the import tells
        values = torch.from_numpy(data.read(0, slice(0, None, stride)).astype(np.float32))
    own = data.domain
    domain = Domain(own.shape, own.extent, own.boundaries, own.fields, stride * own.dt)
    figure = trajectory_frames(values, domain, data.axes, 4)
    figure.suptitle(f"{text(data.name, 80)}: trajectory 0")
    save_as(figure, out)
    return out


def trajectory_frames(values: Tensor, domain: Domain, axes: tuple[str, ...], count: int) -> Figure:
    """Frames as images: channels down, times across; x to the right and y upwards.

    On one axis, a channel is drawn over space and time instead. On three, the middle slice of the
    last axis is shown.

    Args:
        values: all frames, `(T, C, *space)`.
        domain: what they lie on.
        axes: names of the spatial axes.
        count: how many frames, evenly spread; on one axis all are drawn.
    """
    if count < 1:
        raise DataError(f"frames is {count}; expected at least 1")
    shown = flat(values, domain)
    if domain.ndim == 1:
        return _draw_space_time(shown, domain, axes[0])
    return _draw_frames(shown, domain, axes, count)


def _draw_frames(values: np.ndarray, domain: Domain, axes: tuple[str, ...], count: int) -> Figure:
    steps = evenly_chosen(range(len(values)), count)
    fields = domain.fields[:MAX_CHANNELS]
    length, height = domain.extent[:2]
    aspect = min(3.0, max(0.4, height / length))
    figure = new_figure(2.4 * len(steps) + 1.5, 2.2 * aspect * len(fields) + 0.8)
    grid = figure.subplots(len(fields), len(steps), squeeze=False)
    for channel, (row, field) in enumerate(zip(grid, fields, strict=True)):
        look = field_look(values[:, channel])
        for panel, step in zip(row, steps, strict=True):
            image = values[step, channel].T
            panel.imshow(image, origin="lower", extent=(0, length, 0, height), **look)
            panel.set(xlabel=text(axes[0]), ylabel=text(axes[1]))
            panel.locator_params(axis="x", nbins=3)
            panel.label_outer()
            if channel == 0:
                panel.set_title(f"t = {step * domain.dt:g}", fontsize=10)
        figure.colorbar(row[0].images[0], ax=row, label=text(field), shrink=0.9)
    return figure


def _draw_space_time(values: np.ndarray, domain: Domain, axis: str) -> Figure:
    """Channels `(T, C, N)` over time (across) and space (up)."""
    fields = domain.fields[:MAX_CHANNELS]
    figure = new_figure(8, 2.4 * len(fields) + 0.6)
    grid = figure.subplots(len(fields), 1, squeeze=False)[:, 0]
    extent = (0, len(values) * domain.dt, 0, domain.extent[0])
    for channel, (panel, field) in enumerate(zip(grid, fields, strict=True)):
        look = field_look(values[:, channel])
        image = panel.imshow(
            values[:, channel].T, origin="lower", aspect="auto", extent=extent, **look
        )
        panel.set(xlabel="t", ylabel=text(axis))
        figure.colorbar(image, ax=panel, label=text(field))
    return figure
