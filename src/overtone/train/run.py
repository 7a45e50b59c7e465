"""From a configuration to a trained model in a folder, see `overtone.train.folder`."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from overtone.baselines.registry import BASELINES, create
from overtone.data import WellFolder
from overtone.domain import Domain
from overtone.errors import (
    ConfigError,
    DataError,
    OvertoneError,
    TrainingStopped,
    refusal,
    suggest,
)
from overtone.files import cache_dir, replacing
from overtone.guard.limits import require_memory
from overtone.models.base import Model
from overtone.models.cvit import build_cvit
from overtone.models.emulator import build
from overtone.models.processors import PROCESSORS
from overtone.normalize import change_share, typical_pace
from overtone.progress import Terminal, one_bar
from overtone.solvers.datasets import build_system, generate
from overtone.train.checkpoint import Checkpoints
from overtone.train.config import DataConfig, ModelConfig, RunConfig, load_config
from overtone.train.console import Display, duration
from overtone.train.draws import Share
from overtone.train.folder import run_folder
from overtone.train.journal import SUMMARY, Journal, plain
from overtone.train.loop import Parts, Trainer, update_flops
from overtone.train.parallel import Ranks, ranks
from overtone.train.resume import find_checkpoint, flat, other_data, require_same
from overtone.train.validate import Validator, evenly_spaced
from overtone.version import machine

PACE_WINDOWS = 64
"""Windows by which the pace of the fields is measured."""

LOCAL = ("data.path", "data.workers", "data.memory", "train.device", "train.threads")
"""What may differ between the ranks of a run."""
CROWD = 64
"""Threads, or processes, that any machine can bear; more than that only four for each processor."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        status: `"finished"`, `"stopped early"` or `"interrupted"`.
        folder: of the run.
    """

    status: str
    folder: Path


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
    _require_bearable("train.threads", config.train.threads or 0)
    _require_bearable("data.workers", config.data.workers)
    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)
    with ranks(config.train.device) as own:
        return _train(config, folder, own, resume, overwrite, allow_other_data, console)


def _train(
    config: RunConfig,
    folder: Path,
    own: Ranks,
    resume: bool,
    overwrite: bool,
    allow_other_data: bool,
    console: Console,
) -> Outcome:
    """One rank's part. Whatever uses the ranks' connections ends with this call, before they do."""
    settings = flat(config.model_dump(mode="json"))
    alike = {key: value for key, value in settings.items() if key not in LOCAL}
    own.require_alike(alike, "Start all of them with the same settings")
    Share(config.train.batch, config.train.accumulate, own.rank, own.world)
    if config.train.precision == "fp16" and config.parallel.strategy != "ddp" and own.world > 1:
        raise ConfigError("train.precision=fp16 works with parallel.strategy=ddp; use bf16")
    with run_folder(folder, own) as opened:
        inputs = () if config.data.path is None else (config.data.path,)
        opened.require_free(resume=resume, overwrite=overwrite, inputs=inputs)
        own.wait()  # all have looked before the first one changes anything
        going_on = resume and opened.used
        trainer, changed = _make_trainer(config, folder, own, going_on, allow_other_data, console)
        if own.first and (aside := opened.begin(config, replace=not resume)):
            said = f"the earlier run is kept as '{aside}' until this one has finished"
            console.print(said, soft_wrap=True, markup=False, highlight=False)
        own.wait()
        with _ending_well(trainer.checkpoints):
            with _reporting(trainer, changed, console) as (journal, display):
                status = trainer.run(journal, display)
            if own.first:
                _summarise(trainer, status, folder)
                display.table(f"{config.recipe}: {status}", _rows(trainer, folder))
        if own.first and status != "interrupted":
            opened.finish()
    return Outcome(status, folder)


def _make_trainer(
    config: RunConfig,
    folder: Path,
    own: Ranks,
    going_on: bool,
    allow_other_data: bool,
    console: Console,
) -> tuple[Trainer, dict[str, Any]]:
    """All that training needs, and what is other than before; nothing is written."""
    changed, checkpoint = {}, None
    if going_on:
        changed = require_same(config, load_config(folder / "config.json"), folder)
    parts = _prepare(config, folder, own, console)
    if going_on:
        checkpoint = find_checkpoint(config, parts, console)
    if checkpoint is not None:
        changed |= other_data(parts, checkpoint, allow_other_data)
    return Trainer(config, parts, checkpoint), changed


@contextmanager
def _reporting(
    trainer: Trainer, changed: Mapping[str, Any], console: Console
) -> Iterator[tuple[Journal | None, Display]]:
    """Journal and display of a run; both begin with what is other than before."""
    config, own, folder = trainer.config, trainer.parts.ranks, trainer.parts.folder
    update = trainer.progress.update
    journal = None
    if own.first:
        journal = Journal(folder, config.log, update=update, name=folder.name)
    budget = config.train
    by_updates = (budget.max_minutes, budget.max_cpu_minutes, budget.max_flops) == (None,) * 3
    total = config.num_updates if by_updates else 1000
    start = update if by_updates else int(trainer.done * total)
    try:
        with Display(total, start, console, quiet=not own.first) as display:
            if journal is not None and changed:
                journal.write("resume", update, {"changed": changed})
                for name, values in changed.items():
                    display.say(f"changed: {name} was {values['before']}, is {values['now']}")
            yield journal, display
    finally:
        if journal is not None:
            journal.close()


@contextmanager
def _ending_well(checkpoints: Checkpoints) -> Iterator[None]:
    """Say of what the system did to a run where it can go on."""
    try:
        yield
    except Exception as error:
        text = str(error).rstrip()
        if "in DataLoader worker process" in text:  # with the traceback of that process before it
            kind, _, text = text.splitlines()[-1].rpartition("Error: ")
            if isinstance(error, OvertoneError):
                raise type(error)(text) from error
            reason = f"a process that reads data failed: {kind}Error: {text}"
        elif "DataLoader worker" in text:
            reason = (
                f"a process that reads data was ended from outside ({text}), perhaps because the "
                "memory was used up; use fewer data.workers or a smaller train.batch"
            )
        else:
            reason = "" if isinstance(error, OvertoneError) else refusal(error)
        if not reason:
            raise
        found, _ = checkpoints.newest()
        kept = f"'{found.path.name}' is intact" if found else "there is none yet"
        raise TrainingStopped(
            f"training stopped: {reason}. The last complete checkpoint: {kept}. --resume goes on"
        ) from error


def _require_bearable(name: str, number: int) -> None:
    """Refuse more threads or processes than would leave a machine alive."""
    most = max(CROWD, 4 * (os.cpu_count() or 1))
    if number > most:
        raise ConfigError(
            f"{name} is {number}; this machine has {os.cpu_count()} processors, and at most {most} "
            "are allowed. Choose about as many as there are processors"
        )


def _prepare(config: RunConfig, folder: Path, own: Ranks, console: Console) -> Parts:
    """Data and an untrained model, ready for training."""
    path = data_folder(config.data, own, console)
    data = read(config, path, "train", horizon=config.train.unroll)
    windows = read(config, path, "valid", horizon=1)
    _require_known_steps(windows, data.domain)
    source = {"train": _about(data), "valid": _about(windows)}
    own.require_alike(flat(source), "Let data.path be the same data for all of them")
    part = Share(config.train.batch, config.train.accumulate, own.rank, own.world).size
    _require_batch(part, data, "choose a smaller train.batch, or more parts (train.accumulate)")
    at_once = min(config.valid.batch, config.valid.windows, len(windows))
    _require_batch(at_once, windows, "choose a smaller valid.batch")
    torch.manual_seed(config.train.seed)
    model = make_model(config.model, data.domain)
    if config.model.unit == "pace":
        model.pace.copy_(_pace(data))
    flops = update_flops(model, config)
    model.checkpoint_activations(config.train.checkpoint_activations)
    model.to(own.device)
    steps = config.valid.rollout_steps
    validator = Validator(
        windows=windows,
        trajectories=read(config, path, "valid", horizon=steps) if steps else None,
        config=config.valid,
        ranks=own,
    )
    if own.first:
        console.print(
            f"{config.recipe}: {model.num_parameters:,} parameters, {len(data):,} windows of "
            f"{data.num_trajectories} trajectories on {'x'.join(map(str, data.domain.shape))} "
            f"cells, {config.num_updates:,} updates of {config.train.batch} windows on "
            f"{own.world} x {own.device.type}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    return Parts(model, data, validator, flops, folder, own, source)


def _about(data: WellFolder) -> dict[str, Any]:
    """What is kept of a split, to know it again."""
    return {
        "fingerprint": data.fingerprint(),
        "trajectories": data.num_trajectories,
        "cells": "x".join(map(str, data.layouts[0].shape)),
    }


def _require_known_steps(data: WellFolder, domain: Domain) -> None:
    """Refuse trajectories whose frames are further apart, or closer, than any that are learned."""
    for row in range(data.num_trajectories):
        own = data.domain_of(row)
        if not domain.steps_by(own.dt):
            known = " to ".join(map(str, dict.fromkeys(domain.dt_range)))
            raise DataError(
                f"'{data.path}': dt is {own.dt} in trajectory {row} of split '{data.split}', and "
                f"{known} in the training split; a model takes the steps that it has learned"
            )


def _require_batch(num: int, data: WellFolder, advice: str) -> None:
    """Refuse windows that memory can't hold at once."""
    domain, frames = data.domain, data.context + data.horizon
    values = num * frames * len(domain.fields) * math.prod(domain.shape)
    require_memory(
        values * data.dtype.itemsize,
        f"{num:,} windows of {frames} frames at once",
        advice,
        error=ConfigError,
    )


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


def _pace(data: WellFolder) -> Tensor:
    """The pace of each field `(C,)`, by windows that are spread over the data."""
    items = (data[index] for index in evenly_spaced(len(data), PACE_WINDOWS))
    shares = [change_share(torch.cat([w.fields, following])[None]) for w, following in items]
    return typical_pace(torch.cat(shares))


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
    assert wanted is not None
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


def _summarise(trainer: Trainer, status: str, folder: Path) -> None:
    content = {
        "status": status,
        "recipe": trainer.config.recipe,
        **trainer.progress.to_dict(),
        "num_updates": trainer.config.num_updates,
        "ranks": trainer.parts.ranks.world,
        "machine": machine(),
    }
    with replacing(folder / SUMMARY) as scratch:
        scratch.write_text(json.dumps(plain(content), indent=2, allow_nan=False) + "\n")


def _rows(trainer: Trainer, folder: Path) -> list[tuple[str, str]]:
    progress = trainer.progress
    counts = ", ".join(f"{patch}: {count}" for patch, count in progress.patches.items())
    best = "none yet"
    if progress.best is not None:
        best = f"{progress.best:.4f} at update {progress.best_update:,}"
    return [
        ("updates", f"{progress.update:,} of {trainer.config.num_updates:,} ({counts})"),
        ("time", duration(progress.seconds)),
        ("PFLOP", f"{progress.flops / 1e15:.3g}"),
        ("best validation score", best),
        ("folder", str(folder)),
    ]
