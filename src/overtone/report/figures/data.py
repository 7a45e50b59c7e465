"""A few frames of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from overtone.data.well import WellFolder
from overtone.domain import Domain
from overtone.errors import DataError

MAX_CHANNELS = 8


def picture(
    path: str | Path, out: str | Path, *, split: str = "train", trajectory: int = 0, frames: int = 4
) -> Path:
    """Draw a few frames of one trajectory, one row for each channel.

    On one axis, a channel is drawn over space and time instead. On three, the middle slice of the
    last axis is shown.

    Args:
        path: as for `WellFolder`.
        out: the picture's file, e.g. `frames.png`.
        split: which split.
        trajectory: counted over the split's files.
        frames: how many, evenly spread over the trajectory.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    if frames < 1:
        raise DataError(f"frames is {frames}; expected at least 1")
    data = WellFolder(path, split, 1, whole=True, trajectories=[trajectory])
    window, rest = data[0]
    values = np.concatenate([window.fields.numpy(), rest.numpy()])
    data.close()
    if data.domain.ndim == 1:
        figure = _draw_space_time(plt, values, data.domain)
    else:
        figure = _draw_frames(plt, values, data.domain, data.layouts[0].axes, frames)
    figure.suptitle(f"{data.layouts[0].dataset_name}: {split}, trajectory {trajectory}")
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    plt.close(figure)
    return Path(out)


LOG_RATIO = 300
"""Positive values that span more than this ratio are drawn on a logarithmic scale."""
MOST_DECADES = 1e6
"""And no further down than this ratio below the largest."""


def _limits(values: np.ndarray) -> dict[str, Any]:
    """Colours: a diverging map about zero if both signs occur, else a sequential one.

    Values that are positive and span many decades get a logarithmic scale.
    """
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low < 0 < high:
        bound = max(-low, high)
        return {"vmin": -bound, "vmax": bound, "cmap": "RdBu_r"}
    if 0 < LOG_RATIO * low < high:
        return {"norm": "log", "vmin": max(low, high / MOST_DECADES), "vmax": high}
    return {"vmin": low, "vmax": high, "cmap": "viridis"}


def _draw_frames(
    plt: Any, values: np.ndarray, domain: Domain, axes: tuple[str, ...], count: int
) -> Any:
    """Frames `(T, C, *space)` as a grid of images: channels down, times across."""
    if domain.ndim == 3:
        values = values[..., domain.shape[2] // 2]
    steps = np.unique(np.linspace(0, len(values) - 1, count).round().astype(int))
    rows = min(MAX_CHANNELS, len(domain.fields))
    length, height = domain.extent[:2]
    aspect = min(3.0, max(0.4, height / length))
    size = (2.4 * len(steps) + 1.5, 2.2 * aspect * rows + 0.8)
    figure, grid = plt.subplots(rows, len(steps), figsize=size, squeeze=False, layout="constrained")
    for row in range(rows):
        look = _limits(values[:, row])
        for column, step in enumerate(steps):
            grid[row, column].imshow(
                values[step, row].T, origin="lower", extent=(0, length, 0, height), **look
            )
            grid[row, column].set(xlabel=axes[0], ylabel=axes[1])
            grid[row, column].locator_params(axis="x", nbins=3)
            grid[row, column].label_outer()
            if row == 0:
                grid[row, column].set_title(f"t = {step * domain.dt:g}", fontsize=10)
        figure.colorbar(grid[row, 0].images[0], ax=grid[row], label=domain.fields[row], shrink=0.9)
    return figure


def _draw_space_time(plt: Any, values: np.ndarray, domain: Domain) -> Any:
    """Channels `(T, C, N)` over time (across) and space (up)."""
    rows = min(MAX_CHANNELS, len(domain.fields))
    figure, grid = plt.subplots(
        rows, 1, figsize=(8, 2.4 * rows + 0.6), squeeze=False, layout="constrained"
    )
    for row in range(rows):
        look = _limits(values[:, row])
        look |= {"extent": (0, len(values) * domain.dt, 0, domain.extent[0])}
        image = grid[row, 0].imshow(values[:, row].T, origin="lower", aspect="auto", **look)
        grid[row, 0].set(xlabel="t", ylabel="x")
        figure.colorbar(image, ax=grid[row, 0], label=domain.fields[row])
    return figure
