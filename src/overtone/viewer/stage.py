"""What can be shown: models, the data that they start from, and the scales of its fields.

One stage serves all pages at once. It is made from what the command line names; a page chooses
among its models and trajectories by number, so that no path from a page reaches the file system.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from torch import Tensor

from overtone.domain import Domain, Window
from overtone.errors import DataError
from overtone.evaluate import Candidate, Reading
from overtone.evaluate.candidates import as_candidates, usual_schedules
from overtone.evaluate.trajectories import Trajectories
from overtone.models.base import Model
from overtone.report.figures.scales import common_scale
from overtone.report.style import FIELD_COLOURS, SIGNED_COLOURS
from overtone.schedules import Constant, Cycle, Shifted
from overtone.version import __version__

KEPT_FRAMES = 64_000_000
"""Bytes of true frames that stay in memory."""
SCALE_FRAMES = 9
"""True frames by which a field's colours are chosen."""


class Stage:
    """Models and data for pages.

    Args:
        models: as for `evaluate`; they must predict the same fields.
        data: as for `WellFolder`.
        reading: how to read it; `start` is where a page starts unless it asks for another frame.
        device: where to compute.

    Attributes:
        candidates: the models.
        context: the longest of their contexts.
        start: first frame of that context where a page does not ask for another.
    """

    def __init__(
        self,
        models: Sequence[Candidate],
        data: str | Path,
        reading: Reading,
        *,
        device: str = "cpu",
    ):
        self.candidates = as_candidates(models)
        for candidate in self.candidates:
            candidate.prepare(device)
        self.device = device
        self.context = max(candidate.model.context for candidate in self.candidates)
        fields = self.candidates[0].model.domain.fields
        self.start, self.split = reading.get("start", 0), reading.get("split", "test")
        self._truth = Trajectories(data, fields, self.context, {**reading, "start": 0})
        self._frames: OrderedDict[tuple[int, int], Tensor] = OrderedDict()
        self.scale = lru_cache(maxsize=256)(self._scale)
        self.start = self.require_start(0, self.start)

    @property
    def num_trajectories(self) -> int:
        """Trajectories to choose from."""
        return len(self._truth)

    def domain(self, trajectory: int) -> Domain:
        """What a trajectory lives on."""
        return self._truth.domain_of(trajectory)

    def num_frames(self, trajectory: int) -> int:
        """True frames of a trajectory."""
        return self._truth.folder.num_frames(trajectory)

    def require_start(self, trajectory: int, start: int) -> int:
        """The first frame of a context, which must lie within the trajectory."""
        if not 0 <= trajectory < self.num_trajectories:
            raise DataError(
                f"trajectory {trajectory} was asked for; the data has {self.num_trajectories}, "
                "counted from 0"
            )
        latest = self.num_frames(trajectory) - self.context
        if not 0 <= start <= latest:
            raise DataError(
                f"start is frame {start}; trajectory {trajectory} has "
                f"{self.num_frames(trajectory)} frames and the context takes {self.context}: "
                f"choose a frame from 0 to {max(latest, 0)}"
            )
        return start

    def window(self, candidate: Candidate, trajectory: int, start: int) -> Window:
        """What a model starts from, `(1, T, C, *space)`; all models predict the same frame next."""
        target = start + self.context
        window = self._truth.window([trajectory], candidate.model.context, target)
        return window.to(self.device)

    def true_frame(self, trajectory: int, number: int) -> Tensor | None:
        """A true frame `(C, *space)`; None past the end of the data."""
        if number >= self.num_frames(trajectory):
            return None
        key = trajectory, number
        if key not in self._frames:
            frame = self._truth.frame([trajectory], number)[0]
            self._frames[key] = frame
            most = max(2, KEPT_FRAMES // (frame.numel() * frame.element_size()))
            while len(self._frames) > most:
                self._frames.popitem(last=False)
        self._frames.move_to_end(key)
        return self._frames[key]

    def _scale(self, trajectory: int, start: int, channel: int) -> dict[str, Any]:
        """Range of a field over what a rollout from a frame is compared with; log where it spans.

        Returns:
            `low`, `high` and `log`, plain data.
        """
        first, last = start + self.context - 1, self.num_frames(trajectory) - 1
        numbers = sorted({int(i) for i in np.linspace(first, last, SCALE_FRAMES)})
        frames = [self.true_frame(trajectory, number) for number in numbers]
        values = torch.stack([frame[channel] for frame in frames if frame is not None])
        norm = common_scale(values.double().numpy(), []).field
        return {"low": norm.vmin, "high": norm.vmax, "log": isinstance(norm, LogNorm)}

    def facts(self) -> dict[str, Any]:
        """What a page is told first, plain data."""
        return {
            "type": "hello",
            "overtone": __version__,
            "data": {
                "name": self._truth.name,
                "split": self.split,
                "frames": [self.num_frames(i) for i in range(min(self.num_trajectories, 10_000))],
                "start": self.start,
                "context": self.context,
            },
            "models": [_describe(candidate) for candidate in self.candidates],
            "fields": list(self.domain(0).fields),
            "shape": list(self.domain(0).shape),
            "palettes": {"field": palette(FIELD_COLOURS), "signed": palette(SIGNED_COLOURS)},
        }

    def close(self) -> None:
        """Close the files."""
        self._truth.close()


def palette(name: str) -> str:
    """256 colours of a map of matplotlib's, as base64 of red, green, blue bytes."""
    colours = colormaps[name](np.arange(256), bytes=True)[:, :3]
    return base64.b64encode(np.ascontiguousarray(colours).tobytes()).decode()


def _describe(candidate: Candidate) -> dict[str, Any]:
    """A model, for the page's buttons."""
    usual = usual_schedules(candidate) if candidate.patched else []
    patches = [schedule for schedule in usual if isinstance(schedule, Constant)]
    cycles = [schedule for schedule in usual if isinstance(schedule, Cycle | Shifted)]
    return {
        "name": candidate.name,
        "parameters": candidate.model.num_parameters,
        "context": candidate.model.context,
        "patched": candidate.patched,
        "patches": [str(schedule) for schedule in patches],
        "schedules": [str(schedule) for schedule in cycles],
        "calibrated": is_calibrated(candidate),
        "adaptive": len(patches) > 1,
    }


def is_calibrated(candidate: Candidate) -> bool:
    """Whether a model's estimates are errors, with intervals, and not disagreements alone."""
    return isinstance(candidate.model, Model) and candidate.model.calibration is not None
