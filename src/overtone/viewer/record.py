"""Rollouts recorded for a page without a model: `overtone view --export view.html`.

The recording is a JSON object. Numbers stand in it; the planes are one stretch of bytes, gzipped,
in base64, in this order, each plane `(*cells)` in C order:

    truth       16 bits    for each view, field and step
    residuals    8 bits    for each rollout, view, field and step

`low` and `high` of every plane are listed in the same order.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.files import replacing
from overtone.metrics import vrmse
from overtone.viewer.lane import Lane
from overtone.viewer.measures import finite, measure, spectrum
from overtone.viewer.messages import View, quantise
from overtone.viewer.page import single
from overtone.viewer.session import seen, told_estimate
from overtone.viewer.stage import Stage, is_calibrated

MAX_BYTES = 10_000_000
"""Largest file."""
Track = tuple[int, str]
"""Number of a model, and a schedule."""
Tick = Callable[[int, int], None]


def write_view(
    path: Path,
    stage: Stage,
    tracks: Sequence[Track],
    *,
    trajectory: int = 0,
    start: int | None = None,
    steps: int = 40,
    settings: dict[str, Any] | None = None,
    progress: Tick | None = None,
) -> Path:
    """Write one file that plays rollouts without a model, a server or a network.

    Args:
        path: of the HTML file; it is complete or absent.
        stage: models and data.
        tracks: which rollouts.
        trajectory, start: where they begin; `start` is the stage's by default.
        steps: of each; no more than there are true frames.
        settings: what the page starts with.
        progress: called with what is done and what there is to do.
    """
    found = record(
        stage,
        tracks,
        trajectory=trajectory,
        start=stage.start if start is None else start,
        steps=steps,
        progress=progress or (lambda *_: None),
    )
    found["hello"]["settings"] = settings or {}
    text = single(found)
    if len(text.encode()) > MAX_BYTES:
        raise DataError(
            f"the recording would take {len(text.encode()) / 1e6:.1f} MB; expected at most "
            f"{MAX_BYTES / 1e6:g}: ask for fewer --steps or schedules, or coarser fields"
        )
    with replacing(path) as scratch:
        scratch.write_text(text, encoding="utf-8")
    return path


def record(
    stage: Stage,
    tracks: Sequence[Track],
    *,
    trajectory: int,
    start: int,
    steps: int,
    progress: Tick,
) -> dict[str, Any]:
    """Roll out and keep what a page shows; arguments are those of `write_view`."""
    stage.require_start(trajectory, start)
    if not tracks:
        raise DataError("no schedule was given to record; expected at least one")
    domain, first = stage.domain(trajectory), start + stage.context - 1
    steps = min(steps, stage.num_frames(trajectory) - 1 - first)
    if steps < 1:
        raise DataError(
            f"trajectory {trajectory} has no frame after a context of {stage.context} that starts "
            f"at frame {start}; start earlier"
        )
    truths = [stage.true_frame(trajectory, first + step) for step in range(steps + 1)]
    truth = torch.stack([frame for frame in truths if frame is not None])
    views, fields = _views(domain), range(len(domain.fields))
    _require_room(truth, views, len(tracks))
    planes = _Planes()
    for view, field in product(views, fields):
        planes.add((_seen(frame, view, field, domain) for frame in truth), 16)
    rollouts = []
    for place, (model, schedule) in enumerate(tracks):
        candidate = stage.candidates[model]
        window = stage.window(candidate, trajectory, start)
        lane = Lane(candidate, window, schedule, memory=0, estimate=is_calibrated(candidate))
        frames, points = _run(lane, truth, lambda n, p=place: progress(
            p * steps + n, len(tracks) * steps
        ))  # fmt: skip
        for view, field in product(views, fields):
            pairs = zip(frames, truth, strict=False)
            planes.add(
                (_seen(f, view, field, domain) - _seen(t, view, field, domain) for f, t in pairs),
                8,
            )
        rollouts.append(
            {
                "model": model,
                "schedule": str(lane.schedule),
                "stopped": lane.stopped,
                "points": points,
            }
        )
    return {
        "hello": stage.facts(),
        "trajectory": trajectory,
        "start": start,
        "steps": steps,
        "domain": domain.to_dict() | {"periodic": list(domain.periodic)},
        "scales": [stage.scale(trajectory, start, field) for field in fields],
        "views": [view.model_dump() for view in views],
        "shapes": [list(seen(truth[0], view, domain).shape) for view in views],
        "persistence": [finite(v) for v in _errors(truth[:1].expand_as(truth), truth, domain)],
        "rollouts": rollouts,
        "lows": planes.lows,
        "highs": planes.highs,
        "planes": planes.text(),
    }


def _run(
    lane: Lane, truth: Tensor, tick: Callable[[int], None]
) -> tuple[list[Tensor], list[dict[str, Any]]]:
    """Frames and numbers of every step, up to the last one or to a blow-up."""
    domain = lane.domain
    frames, points = [], []
    for step, true in enumerate(truth):
        if step and not lane.advance():
            break
        state = lane.state
        frame = state.frames[-1].cpu()
        choice = state.choice if lane.candidate.patched else None
        found = measure(frame, true, choice, domain)
        frames.append(frame)
        points.append(
            {
                "error": found.error,
                "errors": found.errors,
                "seams": found.seams,
                "patch": found.patch,
                "start": found.start,
                "tokens": found.tokens,
                "ms": finite(1e3 * state.seconds) if step else None,
                "estimate": told_estimate(state),
                "spectra": [
                    [_short(spectrum(frame, true, field, axis, domain)) for axis in _axes(domain)]
                    for field in range(len(domain.fields))
                ]
                if step
                else None,
            }
        )
        tick(step)
    return frames, points


def _axes(domain: Domain) -> range:
    return range(domain.ndim)


def _short(values: list[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.3g}") for value in values]


def _views(domain: Domain) -> list[View]:
    """All there is of one or two axes; of three, the planes in the middle of each."""
    if domain.ndim < 3:
        return [View()]
    return [View(across=axis, index=domain.shape[axis] // 2) for axis in (2, 1, 0)]


def _seen(frame: Tensor, view: View, field: int, domain: Domain) -> np.ndarray:
    return seen(frame, view.model_copy(update={"field": field}), domain)


def _errors(frames: Tensor, truth: Tensor, domain: Domain) -> list[float]:
    return vrmse(frames, truth, ndim=domain.ndim).mean(dim=1).tolist()


def _require_room(truth: Tensor, views: Sequence[View], rollouts: int) -> None:
    """Refuse what can't fit before anything is computed; gzip hardly shrinks noise."""
    cells = truth[:, :, ..., 0].numel() * len(views) if truth.dim() == 5 else truth.numel()
    needed = cells * (2 + rollouts)
    if needed > 4 * MAX_BYTES:
        raise DataError(
            f"the recording would take more than {MAX_BYTES / 1e6:g} MB: {needed / 1e6:.0f} MB "
            "before it is packed; ask for fewer --steps or schedules, or coarser fields"
        )


class _Planes:
    """Planes one after the other, and their ranges."""

    def __init__(self) -> None:
        self.lows: list[float] = []
        self.highs: list[float] = []
        self._bytes: list[bytes] = []

    def add(self, values: Iterator[np.ndarray], bits: int) -> None:
        for plane in values:
            whole, low, high = quantise(plane, bits)
            self.lows.append(float(f"{low:.6g}"))
            self.highs.append(float(f"{high:.6g}"))
            self._bytes.append(whole.tobytes())

    def text(self) -> str:
        return base64.b64encode(gzip.compress(b"".join(self._bytes), 9, mtime=0)).decode()
