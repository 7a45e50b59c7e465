"""What a model can do so far: next-step error at each patch, and a short rollout.

Windows are spread evenly over the validation split and divided among the ranks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from overtone.baselines.untrained import Yardstick, yardsticks
from overtone.data import ArrayWindows, Items, WellFolder, collate_mixed
from overtone.domain import Domain, Window
from overtone.errors import DataError
from overtone.metrics import vrmse
from overtone.metrics.confidence import bootstrap
from overtone.models.base import Model
from overtone.rollout import rollout
from overtone.schedules import Cycle, Patch
from overtone.train.config import ValidConfig
from overtone.train.parallel import Ranks

ROLLOUT = "rollout"
"""Name of the rollout's error beside those of the patches."""


class Spread(NamedTuple):
    """A mean over trajectories, the bounds of its 95 % interval, and how many trajectories."""

    value: float
    low: float
    high: float
    trajectories: int


class Measured(NamedTuple):
    """An error: its mean over windows, and how sure it is."""

    mean: float
    spread: Spread


@dataclass(frozen=True, eq=False)
class Glimpse:
    """Some frames of one validation rollout, for pictures.

    Attributes:
        domain: what they lie on.
        schedule: of the rollout, its string form.
        steps: which of its steps, counted from 1.
        truth, prediction: `(S, C, *space)`, on the CPU.
    """

    domain: Domain
    schedule: str
    steps: tuple[int, ...]
    truth: Tensor
    prediction: Tensor


@dataclass(frozen=True)
class Validation:
    """Errors on the validation split, means over windows and fields.

    Attributes:
        vrmse: patch, as text -> VRMSE of the next step.
        rollout: VRMSE of a rollout that cycles through the patches, over all its steps; infinite
            if it blew up, None if none is made.
        yardsticks: what needs no training, by name: its `vrmse` of the next step and `rollout`.
        spreads: the same errors, by patch and as `"rollout"`, with their intervals.
        glimpse: frames of the first rollout, on the first rank; None if none is made.
    """

    vrmse: dict[str, float]
    rollout: float | None
    yardsticks: dict[str, dict[str, float | None]] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)
    glimpse: Glimpse | None = field(default=None, compare=False, repr=False)

    @property
    def score(self) -> float:
        """What the best model is chosen by: the rollout, or else the mean over patches."""
        if self.rollout is not None:
            return self.rollout
        return sum(self.vrmse.values()) / len(self.vrmse)


@dataclass(frozen=True)
class Validator:
    """Measures a model.

    Attributes:
        windows: windows with the next frame as target.
        trajectories: windows with `rollout_steps` frames as target; None for no rollouts.
        config: how many.
        ranks: this process among all.
    """

    windows: Items
    trajectories: Items | None
    config: ValidConfig
    ranks: Ranks

    def __call__(
        self, model: Model, progress: Callable[[str], None] = lambda _: None
    ) -> Validation:
        """Measure; the model is left in the mode that it was in."""
        training = model.training
        model.eval()
        try:
            with torch.no_grad():
                return self._measure(model)
        finally:
            model.train(training)

    def _measure(self, model: Model) -> Validation:
        found = {str(patch): self._next_step(model, patch) for patch in model.patches}
        errors = {patch: measured.mean for patch, measured in found.items()}
        seen: list[Glimpse] = []
        rolled = self._rollout(model, seen)
        found |= {} if rolled is None else {ROLLOUT: rolled}
        spreads = {name: measured.spread for name, measured in found.items()}
        glimpse = seen[0] if seen else None
        return Validation(errors, rolled and rolled.mean, self._yardsticks, spreads, glimpse)

    @cached_property
    def _yardsticks(self) -> dict[str, dict[str, float | None]]:
        """What every model should beat; the windows stay the same, so it is measured once."""
        window, _ = self.windows[0]
        bare = yardsticks(window.domain, window.num_frames)
        found: dict[str, dict[str, float | None]] = {}
        for model in bare:
            rolled = self._rollout(model)
            found[model.name] = {
                "vrmse": self._next_step(model, 1).mean,
                "rollout": rolled and rolled.mean,
            }
        return found

    def _next_step(self, model: Model | Yardstick, patch: Patch) -> Measured:
        def error(window: Window, target: Tensor) -> Tensor:
            return vrmse(model(window, patch), target[:, 0], ndim=window.domain.ndim).mean(dim=-1)

        return self._mean(self.windows, self.config.windows, error)

    def _rollout(
        self, model: Model | Yardstick, seen: list[Glimpse] | None = None
    ) -> Measured | None:
        """Mean error; `seen` gets frames of the first rollout, on the first rank."""
        if self.trajectories is None:
            return None
        schedule = Cycle(*model.patches)

        def error(window: Window, target: Tensor) -> Tensor:
            # One rank must not stop while the others go on, so what blows up is held.
            steps = target.shape[1]
            frames = rollout(model, window, steps=steps, schedule=schedule, on_blow_up="hold")
            wanted = self._wanted(steps) if seen == [] and self.ranks.first else ()
            per_step, kept = [], []
            for step, (frame, true) in enumerate(zip(frames, target.unbind(dim=1), strict=True), 1):
                per_step.append(vrmse(frame, true, ndim=window.domain.ndim).mean(dim=-1))
                kept += [frame[0].cpu()] if step in wanted else []
            if seen is not None and kept:
                truth = torch.stack([target[0, step - 1].cpu() for step in wanted])
                shown = wanted, truth, torch.stack(kept)
                seen.append(Glimpse(window.domain, str(schedule), *shown))
            mean = torch.stack(per_step).mean(dim=0)
            return torch.where(frames.alive, mean, torch.inf)

        return self._mean(self.trajectories, self.config.rollouts, error)

    def _wanted(self, steps: int) -> tuple[int, ...]:
        """Steps of a rollout that are kept for pictures: the first, the middle and the last."""
        return tuple(dict.fromkeys((1, (steps + 1) // 2, steps)))

    def _mean(self, data: Items, num: int, error: Callable[[Window, Tensor], Tensor]) -> Measured:
        """Mean of an error `(B,)` over windows; infinite where it is not a number.

        Windows whose own values are not finite say nothing about a model, and are refused.
        """
        indices = evenly_spaced(len(data), num)
        share = math.ceil(len(indices) / self.ranks.world)
        own = indices[self.ranks.rank :: self.ranks.world]
        # Every rank calls the model equally often: sharded weights are gathered by all together.
        own, counted = own + indices[:1] * (share - len(own)), len(own)
        total, spoilt, by_window = 0.0, [], []
        for first in range(0, share, self.config.batch):
            batch = own[first : first + self.config.batch]
            window, target = collate_mixed([data[i] for i in batch])
            device = self.ranks.device
            values = error(window.to(device), target.to(device)).nan_to_num(
                nan=math.inf, posinf=math.inf
            )
            kept = values[: max(counted - first, 0)].double()
            by_window += zip(batch, kept.tolist(), strict=False)
            subtotal = float(kept.sum())
            if math.isinf(subtotal):
                spoilt += [i for i in batch if not _is_finite(data, i)]
            total += subtotal
        total, count, refused = self.ranks.total([total, float(counted), float(len(spoilt))])
        if refused:
            self._refuse(data, spoilt)
        return Measured(total / count, self._spread(data, by_window))

    def _spread(self, data: Items, by_window: list[tuple[int, float]]) -> Spread:
        """How sure an error is: windows of one trajectory are averaged, trajectories are drawn."""
        rows: dict[Hashable, list[float]] = {}
        for text in self.ranks.gather(json.dumps(by_window)):
            for index, value in json.loads(text):
                rows.setdefault(_trajectory(data, index), []).append(value)
        means = torch.tensor([sum(row) / len(row) for row in rows.values()], dtype=torch.float64)
        found = bootstrap(means)
        return Spread(float(found.value), float(found.low), float(found.high), len(rows))

    def _refuse(self, data: Items, spoilt: list[int]) -> None:
        """Stop on all ranks; name what each of them has found."""
        found = self.ranks.gather(", ".join(place_name(data, index) for index in spoilt[:3]))
        where = "the validation data has values that are not finite"
        if isinstance(data, WellFolder):
            where = f"'{data.path}' has values that are not finite in split '{data.split}'"
        raise DataError(
            f"{where}: {'; '.join(text for text in found if text)}. No model can be validated by "
            "them: look at that data with `overtone data check`"
        )


def _is_finite(data: Items, index: int) -> bool:
    window, target = data[index]
    return bool(window.fields.isfinite().all() and target.isfinite().all())


def _trajectory(data: Items, index: int) -> Hashable:
    """What tells a window's trajectory from others; of unknown data, each window is its own."""
    if isinstance(data, ArrayWindows):
        return data.where(index)[0]
    if not isinstance(data, WellFolder):
        return index
    place = data.where(index)
    return place.file, place.trajectory


def place_name(data: Items, index: int) -> str:
    """Where a window comes from, for a message."""
    if isinstance(data, ArrayWindows):
        return "trajectory {} step {}".format(*data.where(index))
    if not isinstance(data, WellFolder):
        return f"window {index}"
    place = data.where(index)
    return f"{Path(place.file).name} trajectory {place.trajectory} step {place.step}"


def evenly_spaced(num: int, wanted: int) -> list[int]:
    """Evenly spaced indices, first and last among them."""
    count = min(num, wanted)
    return [round(i * (num - 1) / max(count - 1, 1)) for i in range(count)]
