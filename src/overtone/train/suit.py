"""Settings that suit some data and this machine: the recipe `mine`, and what `fit` starts from.

Every choice is a rule on a few facts, so that the same data on the same machine give the same run:

- the whole grid, all frames: nothing is averaged or left out;
- patches: three that divide the grid, each about twice the one before, from 4 cells on where the
  shortest axis has room for two of the coarsest; finer on smaller grids, and coarser where the
  finest would make more tokens than the machine can attend to in a reasonable time;
- size, context and batch: by the number of windows and of frames, and whether there is a GPU;
- the end of the training unrolled, half of the updates with a shifted grid, validation at ten
  points of the budget: what the mini recipes were chosen by.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from overtone.data import ArrayWindows, WellFolder
from overtone.domain import Domain
from overtone.models.base import Model
from overtone.schedules import Constant
from overtone.train.budget import Budget
from overtone.train.config import (
    MOST,
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    RunConfig,
    SaveConfig,
    TrainConfig,
    ValidConfig,
)

MINUTES = 15.0
"""The budget, unless another is given."""
POINTS = 10
"""Validations of a budget."""
UNROLL = 4
UNROLL_FROM = 0.6
"""Steps of an update, and the share of the budget from which on it has so many."""
SHIFT = 0.5
"""Share of the updates whose patch grid is shifted."""
CONTEXT = 8
"""Frames that are read where trajectories are long enough."""
MOST_TOKENS = {"cpu": 2048, "cuda": 16384}
"""Tokens of a frame at the finest patch, by kind of machine."""
FEW_WINDOWS = 200
"""Windows below which a smaller model is enough."""
LARGE = {"7m": 2_000, "25m": 50_000}
"""Windows from which on a GPU is worth a larger model."""
RATES = {2e6: 8e-3, 1.5e7: 2e-3, math.inf: 1e-3}
"""Learning rate of an emulator under Muon, by the number of parameters that it is below."""
SIZES = {"nano": 4e5, "tiny": 7.5e5, "7m": 7e6, "25m": 2.5e7}
"""About how many parameters the sizes that are chosen from have."""
DECAY = 0.1
"""Weight decay under Muon."""
CAREFUL = 1e-3
"""Learning rate of other people's models under AdamW, unless half of an emulator's is lower."""
KEPT = 1.0
"""Gigabytes of frames that stay in memory."""


@dataclass(frozen=True)
class Facts:
    """What settings are chosen by.

    Attributes:
        domain: what the data lives on.
        frames: of each training trajectory.
        valid_frames: of the shortest one that validates.
        device: `"cpu"` or `"cuda"`.
        cores: of the processor.
    """

    domain: Domain
    frames: tuple[int, ...]
    valid_frames: int
    device: str
    cores: int

    @property
    def context(self) -> int:
        """Frames to read: a quarter of the shortest trajectory, from 2 to `CONTEXT`."""
        return min(max(min(self.frames) // 4, 2), CONTEXT)

    def windows(self, context: int, horizon: int = 1) -> int:
        """How many windows there are."""
        return sum(max(frames - context - horizon + 1, 0) for frames in self.frames)

    @property
    def gigabytes(self) -> float:
        """All frames in single precision."""
        values = math.prod(self.domain.shape) * len(self.domain.fields) * sum(self.frames)
        return 4e-9 * values


def survey(train: WellFolder | ArrayWindows, valid: WellFolder | ArrayWindows) -> Facts:
    """The facts of some data on this machine."""
    return Facts(
        train.domain,
        _frames(train),
        min(_frames(valid)),
        "cuda" if torch.cuda.is_available() else "cpu",
        os.cpu_count() or 1,
    )


def _frames(data: WellFolder | ArrayWindows) -> tuple[int, ...]:
    if isinstance(data, ArrayWindows):
        return tuple(map(len, data.trajectories))
    return tuple(data.num_frames(i) for i in range(data.num_trajectories))


def survey_folder(folder: str | Path) -> Facts:
    """The facts of a Well folder on this machine."""
    return survey(*(WellFolder(folder, split, context=1) for split in ("train", "valid")))


def suit(facts: Facts, data: DataConfig, *, recipe: str, minutes: float | None) -> RunConfig:
    """Settings for a model of our own.

    Args:
        facts: of the data and the machine.
        data: where it is.
        recipe: what to call them.
        minutes: the budget; None for one of updates, to be set by the caller.
    """
    size = _size(facts)
    model = ModelConfig(size=size, context=facts.context, patches=suitable_patches(facts))
    return RunConfig(
        recipe=recipe,
        data=data,
        model=model,
        optimizer=_optimizer(SIZES[size]),
        train=_training(facts, facts.context, minutes),
        valid=_validation(facts, facts.context),
        save=SaveConfig(every=250),
    )


def suit_model(model: Model, facts: Facts, minutes: float | None) -> Mapping[str, Any]:
    """Settings for a model that is given, section by section; the model's own is not among them."""
    # Flexible layers of other people's models can't be given cells beyond a boundary.
    moves = model.patched and (model.kind != "flexible" or all(model.domain.periodic))
    train = _training(facts, model.context, minutes)
    return {
        "optimizer": _optimizer(model.num_parameters, ours=model.kind == "emulator"),
        "train": train.model_copy(update={"shift": SHIFT if moves else 0.0}),
        "valid": _validation(facts, model.context),
        "save": SaveConfig(every=250),
    }


def _training(facts: Facts, context: int, minutes: float | None) -> TrainConfig:
    unroll = min(UNROLL, max(min(facts.frames) - context, 1))
    return TrainConfig(
        batch=_batch(facts, facts.windows(context, unroll)),
        updates=MOST,
        max_minutes=minutes,
        shift=SHIFT,
        unroll=unroll,
        unroll_from=UNROLL_FROM if unroll > 1 else 0.0,
    )


def _validation(facts: Facts, context: int) -> ValidConfig:
    steps = min(10, facts.valid_frames - context)
    return ValidConfig(points=POINTS, windows=48, rollouts=12, rollout_steps=max(steps, 0))


def suitable_patches(facts: Facts) -> tuple[int, ...]:
    """Three patches, or fewer where the grid has no room for so many."""
    shape, least = facts.domain.shape, min(facts.domain.shape)
    finest = min(4, max(least // 8, 1))
    while _tokens(shape, finest) > MOST_TOKENS[facts.device] and 8 * finest <= least:
        finest *= 2
    wanted = [finest * factor for factor in (1, 2, 4) if finest * factor <= max(least // 2, 1)]
    common = math.gcd(*shape)
    chosen = [_nearest(patch, common, most=max(least // 2, 1)) for patch in wanted]
    return tuple(sorted(set(chosen)))


def _nearest(patch: int, common: int, most: int) -> int:
    """The number nearest to a patch that divides all axes; the patch itself if none is near."""
    divisors = [d for d in range(1, min(common, most) + 1) if common % d == 0]
    best = min(divisors, key=lambda d: abs(math.log(d / patch)))
    return best if patch / 1.5 <= best <= patch * 1.5 else patch


def _tokens(shape: tuple[int, ...], patch: int) -> int:
    return math.prod(math.ceil(n / patch) for n in shape)


def _size(facts: Facts) -> str:
    windows = facts.windows(facts.context)
    if facts.device == "cpu" or windows < min(LARGE.values()):
        return "nano" if facts.domain.ndim == 3 or windows < FEW_WINDOWS else "tiny"
    return max((size for size, least in LARGE.items() if windows >= least), key=SIZES.__getitem__)


def _batch(facts: Facts, windows: int) -> int:
    """A power of two: 4 windows on a processor, 16 on a GPU, and at most a quarter of all."""
    most = 4 if facts.device == "cpu" else 16
    return 2 ** int(math.log2(max(min(most, windows // 4), 1)))


def _optimizer(parameters: float, *, ours: bool = True) -> OptimizerConfig:
    rate = next(rate for least, rate in RATES.items() if parameters < least)
    if ours:
        return muon(rate)
    return OptimizerConfig(lr=min(rate / 2, CAREFUL), schedule="cosine", warmup=0.1)


def muon(rate: float) -> OptimizerConfig:
    """What models of our own are trained with, at a peak learning rate."""
    return OptimizerConfig(kind="muon", lr=rate, weight_decay=DECAY, schedule="cosine", warmup=0.1)


def explain(config: RunConfig, facts: Facts) -> list[str]:
    """What is set and why, in five lines; what was set otherwise has the user's own reasons.

    Args:
        config: what `suit` chose, changed or not.
        facts: what it was chosen by.
    """
    chosen = suit(facts, config.data, recipe=config.recipe, minutes=MINUTES)
    machine = "a GPU" if facts.device == "cuda" else f"{facts.cores} CPU cores"
    model, train = config.model, config.train
    lengths = "-".join(map(str, sorted({min(facts.frames), max(facts.frames)})))
    windows = facts.windows(model.context, train.unroll)
    coarsen = "all used" if config.data.coarsen == 1 else f"coarsen {config.data.coarsen} as set"

    def why(own: bool, reason: str) -> str:
        return reason if own else "as set"

    own_patches = model.patches == chosen.model.patches and config.data.coarsen == 1
    own_model = (model.name, model.size, model.context) == (
        chosen.model.name, chosen.model.size, chosen.model.context)  # fmt: skip
    own_steps = (train.batch, config.optimizer) == (chosen.train.batch, chosen.optimizer)
    unrolled = f"; last {1 - train.unroll_from:.0%} unrolled {train.unroll} steps"
    valid = config.valid
    points = f"at {valid.points} points" if valid.points else f"every {valid.every} updates"
    return [
        f"data     {len(facts.frames)} trajectories of {lengths} frames, "
        f"{'x'.join(map(str, facts.domain.shape))} cells ({coarsen})",
        f"patches  {'-'.join(str(Constant(patch)) for patch in model.patches)}: "
        + why(own_patches, _why_patches(facts, chosen.model.patches)),
        f"model    {model.name} {model.size}, reads {model.context} frames: "
        + why(own_model, f"for {windows:,} windows on {machine}"),
        f"updates  batch {train.batch}, {config.optimizer.kind} at {config.optimizer.lr:g}: "
        + why(own_steps, f"for {machine}")
        + (unrolled if train.unroll > 1 else ""),
        f"budget   {Budget(config)} of training, validated {points} of it",
    ]


def _why_patches(facts: Facts, patches: tuple[Any, ...]) -> str:
    shape, common = facts.domain.shape, math.gcd(*facts.domain.shape)
    fits = all(common % patch == 0 for patch in patches)
    reason = "they divide the grid" if fits else "few sizes divide the grid"
    return f"{reason}; {_tokens(shape, patches[0])} to {_tokens(shape, patches[-1])} tokens"
