"""From a configuration to a trained model in a folder, see `overtone.train.folder`."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from overtone.baselines.registry import BASELINES, create
from overtone.data import WellFolder
from overtone.domain import Domain
from overtone.errors import ConfigError, suggest
from overtone.files import cache_dir
from overtone.models.base import Model
from overtone.models.cvit import build_cvit
from overtone.models.emulator import build
from overtone.models.processors import PROCESSORS
from overtone.progress import Terminal, one_bar
from overtone.solvers.datasets import build_system, generate
from overtone.train.config import DataConfig, ModelConfig, RunConfig
from overtone.train.loop import Parts
from overtone.train.parallel import Ranks, ranks
from overtone.train.session import Outcome, Way, assemble, conduct

CROWD = 64
"""Threads, or processes, that any machine can bear; more than that only four for each processor."""


def train(
    config: RunConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    allow_other_data: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Train a model, or go on where an interrupted run stopped.

    Args:
        config: all settings.
        folder: of the run.
        resume: go on from the newest complete checkpoint, if there is one.
        overwrite: remove an earlier run of that folder.
        allow_other_data: resume on other data than before; it is noted in the run.
        console: where to print.
    """
    folder, console = Path(folder), console or Terminal()
    use_threads(config)
    way = Way(folder, resume, overwrite, allow_other_data)
    with ranks(config.train.device) as own:
        prepare = partial(_prepare, config, folder, console)
        return conduct(config, own, prepare, way, console)


def use_threads(config: RunConfig) -> None:
    """Let torch have as many threads as the configuration says, if this machine can bear it."""
    _require_bearable("train.threads", config.train.threads or 0)
    _require_bearable("data.workers", config.data.workers)
    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)


def _require_bearable(name: str, number: int) -> None:
    """Refuse more threads or processes than would leave a machine alive."""
    most = max(CROWD, 4 * (os.cpu_count() or 1))
    if number > most:
        raise ConfigError(
            f"{name} is {number}; this machine has {os.cpu_count()} processors, and at most {most} "
            "are allowed. Choose about as many as there are processors"
        )


def _prepare(config: RunConfig, folder: Path, console: Console, own: Ranks) -> Parts:
    """Data and an untrained model, ready for training."""
    path, steps = data_folder(config.data, own, console), config.valid.rollout_steps
    data = read(config, path, "train", horizon=config.train.unroll)
    windows = read(config, path, "valid", horizon=1)
    trajectories = read(config, path, "valid", horizon=steps) if steps else None
    torch.manual_seed(config.train.seed)
    model = make_model(config.model, data.domain)
    told: dict[str, Any] = {"folder": folder, "own": own, "console": console}
    return assemble(config, model, data, windows, trajectories, **told)


def make_model(config: ModelConfig, domain: Domain) -> Model:
    """The untrained model of a configuration."""
    other: dict[str, Any] = dict(config.other)
    if config.is_baseline:
        if config.name not in BASELINES:
            known = [*PROCESSORS, "cvit", *BASELINES]
            raise ConfigError(
                f"there is no model '{config.name}'{suggest(config.name, known)}; model.name is "
                f"one of {', '.join(known)}"
            )
        options = {"size": config.size, **other}
        return create(config.name, domain=domain, context=config.context, **options)
    common: dict[str, Any] = {
        "domain": domain,
        "tokenizer": config.tokenizer,
        "patches": config.patches,
        "size": config.size,
        "context": config.context,
    }
    if config.name == "cvit":
        return build_cvit(**common, **other)
    return build(config.name, **common, **config.options())


def read(config: RunConfig, path: Path | str, split: str, *, horizon: int) -> WellFolder:
    """A split's windows as the configuration wants them."""
    return WellFolder(
        path,
        split,
        config.model.context,
        horizon,
        stride=config.data.stride,
        fields=config.data.fields,
        coarsen=config.data.coarsen,
        keep=int(config.data.memory * 1e9),
    )


def data_folder(
    config: DataConfig, own: Ranks | None = None, console: Console | None = None
) -> Path | str:
    """Where the data is; generated into the cache if need be, on the first rank."""
    if config.path is not None:
        return config.path
    wanted = config.generate
    if wanted is None:
        raise ConfigError(
            f"the run was trained on what a program had in memory ({config.given}); let it go on "
            "with fit(..., out=..., resume=True)"
        )
    digest = hashlib.sha256(wanted.model_dump_json().encode()).hexdigest()[:12]
    folder = cache_dir() / "data" / f"{wanted.system}-{digest}"
    if own is None or own.first:
        system = build_system(wanted.system, grid=wanted.grid, **wanted.settings)
        with one_bar(f"generating {wanted.system}", console, transient=True) as tick:
            generate(
                system,
                folder,
                trajectories=wanted.trajectories,
                steps=wanted.steps,
                seed=wanted.seed,
                per_file=wanted.per_file,
                splits=wanted.splits,
                progress=tick,
                wait=True,
            )
    if own is not None:
        own.wait()
    return folder
