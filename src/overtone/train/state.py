"""What changes during a run: the optimizer, averages of the weights, and the run's own counters.

Learning rates and random draws are functions of the progress and the number of the update, so they
are no state.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from overtone.errors import CheckpointError
from overtone.train.config import OptimizerConfig
from overtone.train.muon import Muon

COUNTS = ("update", "best_update", "stale")
AMOUNTS = ("seconds", "cpu_seconds", "flops", "optimizer_steps")
SCALER = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}
"""Entries of a saved state: counts, amounts that need not be whole, and those of fp16's scaler."""


@dataclass
class RunProgress:
    """How far a run is.

    Attributes:
        update: updates made.
        seconds: spent on training, over all its parts.
        cpu_seconds: of a processor, spent on training; of the busiest rank.
        flops: spent on training, by `overtone.models.flops`.
        patches: patch, as text -> steps made with it; as many as updates where none is unrolled.
        best: lowest validation score; None before the first that did not blow up.
        best_update: when it was reached.
        stale: validations since.
    """

    update: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    flops: float = 0.0
    patches: dict[str, int] = field(default_factory=dict)
    best: float | None = None
    best_update: int = 0
    stale: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Adam, AdamW or Muon; scales, biases and norms have no weight decay."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    turned = [p for p in parameters if _is_turned(p, config)]
    rest = [p for p in parameters if not _is_turned(p, config)]
    groups = [
        {"params": [p for p in rest if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    # One pass over each weight in place of a dozen, which torch does not choose on a CPU by itself;
    # it knows no complex ones.
    fused = all(p.device.type == "cpu" and p.is_floating_point() for p in rest) or None
    options: dict[str, Any] = {"lr": config.lr, "betas": config.betas, "fused": fused}
    if turned:
        return Muon(turned, groups, weight_decay=config.weight_decay, **options)
    kind = torch.optim.Adam if config.kind == "adam" else torch.optim.AdamW
    return kind(groups, **options)


def _is_turned(parameter: Tensor, config: OptimizerConfig) -> bool:
    """Whether a parameter's steps are made orthogonal: real matrices and kernels, under Muon."""
    return config.kind == "muon" and parameter.dim() >= 2 and parameter.is_floating_point()


def learning_rate(config: OptimizerConfig, done: float) -> float:
    """The rate at a share of the budget between 0 and 1."""
    if done < config.warmup:
        return config.lr * done / config.warmup
    if config.schedule == "constant":
        return config.lr
    share = (done - config.warmup) / max(1 - config.warmup, 1e-12)
    cosine = 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))
    return config.lr * (config.final + (1 - config.final) * cosine)


class Average:
    """An exponential average of a model's weights.

    Args:
        model: whose weights to follow.
        decay: share that is kept at every update; less at the first ones.
    """

    def __init__(self, model: nn.Module, decay: float):
        self.model, self.decay = model, decay
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def follow(self, update: int) -> None:
        """Take in the weights after an update, counted from 1."""
        # Early on an average over a tenth of all updates, so that the start is soon forgotten.
        decay = min(self.decay, (1 + update) / (10 + update))
        for name, parameter in self.model.named_parameters():
            self.weights[name].lerp_(parameter, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the model have the averaged weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self.model.named_parameters():
            kept = parameter.clone()
            parameter.copy_(self.weights[name])
            self.weights[name].copy_(kept)


def state_tensors(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: Average | None,
    config: OptimizerConfig,
) -> dict[str, Tensor]:
    """Everything of tensor kind that a resume needs besides the weights, by name.

    The tensors are those in use: loading fills them in place. Before the first update the
    optimizer has none, so its moments are made here as it would make them.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        moments = optimizer.state[parameter]
        kinds = _moments(parameter, config)
        if not moments:
            moments["step"] = torch.tensor(0.0)
            moments |= {kind: torch.zeros_like(parameter) for kind in kinds}
        tensors |= {f"{kind}.{name}": moments[kind].detach() for kind in kinds}
        if average is not None:
            tensors[f"average.{name}"] = average.weights[name]
    return tensors


def state_forms(model: nn.Module, config: OptimizerConfig) -> dict[str, Tensor]:
    """What has the shapes and kinds of `state_tensors`, by their names, without making any."""
    average = () if config.ema is None else ("average",)
    return {
        f"{kind}.{name}": parameter
        for name, parameter in model.named_parameters()
        for kind in (*_moments(parameter, config), *average)
    }


def _moments(parameter: Tensor, config: OptimizerConfig) -> tuple[str, ...]:
    """What the optimizer keeps of a parameter's gradients."""
    return ("exp_avg",) if _is_turned(parameter, config) else ("exp_avg", "exp_avg_sq")


def optimizer_steps(optimizer: torch.optim.Optimizer) -> float:
    """How many steps were made; fewer than updates where fp16 skipped some."""
    return max((float(s["step"]) for s in optimizer.state.values() if s), default=0.0)


def set_optimizer_steps(optimizer: torch.optim.Optimizer, steps: float) -> None:
    """The inverse of `optimizer_steps`."""
    for moments in optimizer.state.values():
        moments["step"].fill_(steps)


def restore_progress(values: Mapping[str, Any]) -> RunProgress:
    """The inverse of `RunProgress.to_dict`, from a larger mapping."""
    return RunProgress(**{name: values[name] for name in RunProgress().to_dict()})


def require_state(values: Mapping[str, Any], patches: Collection[str]) -> None:
    """Refuse a saved state that is not what a run can go on from.

    Args:
        values: the state; more than is looked at here may be in it.
        patches: those of the model, as text.
    """
    for name in COUNTS:
        _require(_is_count(values.get(name)), name, values)
    for name in AMOUNTS:
        _require(_is_amount(values.get(name)), name, values)
    counts: Any = values.get("patches")
    counted = isinstance(counts, dict) and counts.keys() == set(patches)
    _require(counted and all(map(_is_count, counts.values())), "patches", values)
    scaler: Any = values.get("scaler")
    scaled = isinstance(scaler, dict) and scaler.keys() in (set(), SCALER)
    _require(scaled and all(map(_is_amount, scaler.values())), "scaler", values)
    best = values.get("best")
    _require("best" in values and (best is None or _is_amount(best)), "best", values)
    splits = values.get("data", {})  # older versions did not save it
    known = isinstance(splits, dict) and all(isinstance(split, dict) for split in splits.values())
    _require(known, "data", values)


def _require(right: bool, name: str, values: Mapping[str, Any]) -> None:
    if not right:
        given = f"{name} is {values[name]!r}" if name in values else f"it lacks {name}"
        raise CheckpointError(f"its state is not one that a run can go on from: {given}")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0
