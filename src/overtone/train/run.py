"""From a configuration to a trained model in a folder.

RUN/
config.json, config.yaml    the resolved configuration
metrics.jsonl, tensorboard/ curves
checkpoints/                where it goes on after an interruption
best/, last/                model folders: lowest validation error, and the end
summary.json                how it ended
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from overtone.baselines.registry import BASELINES, create
from overtone.data import WellFolder
from overtone.domain import Domain
from overtone.errors import ConfigError, suggest
from overtone.files import cache_dir, replacing
from overtone.models.base import Model
from overtone.models.cvit import build_cvit
from overtone.models.emulator import build
from overtone.models.processors import PROCESSORS
from overtone.models.storage import load_folder
from overtone.normalize import change_share, typical_pace
from overtone.progress import one_bar
from overtone.solvers.datasets import build_system, generate
from overtone.train.checkpoint import Checkpoint, Checkpoints
from overtone.train.config import DataConfig, ModelConfig, RunConfig, load_config
from overtone.train.console import Display, duration
from overtone.train.draws import Share
from overtone.train.journal import SUMMARY, Journal, plain
from overtone.train.loop import Parts, Trainer, update_flops
from overtone.train.parallel import Ranks, ranks
from overtone.train.validate import Validator, evenly_spaced
from overtone.version import machine

PACE_WINDOWS = 64
"""Windows by which the pace of the fields is measured."""

# What may differ when a run is resumed: how long it lasts and what is measured, not what it does.
FREE = ("train.updates", "train.max_", "train.device", "train.threads", "train.compile",
        "data.workers", "data.path", "valid.", "save.", "log.", "parallel.",
        "train.accumulate", "train.checkpoint_activations")  # fmt: skip


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
    console: Console | None = None,
) -> Outcome:
    """Train a model, or go on where an interrupted run stopped.

    Args:
        config: all settings.
        folder: of the run.
        resume: go on from the newest complete checkpoint, if there is one.
        overwrite: remove an earlier run of that folder.
        console: where to print.
    """
    folder, console = Path(folder), console or Console()
    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)
    with ranks(config.train.device) as own:
        return _train(config, folder, own, resume, overwrite, console)


def _train(
    config: RunConfig, folder: Path, own: Ranks, resume: bool, overwrite: bool, console: Console
) -> Outcome:
    """One rank's part. Whatever uses the ranks' connections ends with this call, before they do."""
    Share(config.train.batch, config.train.accumulate, own.rank, own.world)
    if config.train.precision == "fp16" and config.parallel.strategy != "ddp" and own.world > 1:
        raise ConfigError("train.precision=fp16 works with parallel.strategy=ddp; use bf16")
    checkpoint = _open_folder(config, folder, own, resume, overwrite, console)
    trainer = _prepare(config, folder, own, checkpoint, console)
    journal = None
    if own.first:
        journal = Journal(folder, config.log, update=trainer.progress.update, name=folder.name)
    budget = config.train
    by_updates = (budget.max_minutes, budget.max_cpu_minutes, budget.max_flops) == (None,) * 3
    total = config.num_updates if by_updates else 1000
    start = trainer.progress.update if by_updates else int(trainer.done * total)
    try:
        with Display(total, start, console, quiet=not own.first) as display:
            status = trainer.run(journal, display)
    finally:
        if journal is not None:
            journal.close()
    if own.first:
        _summarise(trainer, status, folder)
        display.table(f"{config.recipe}: {status}", _rows(trainer, folder))
    return Outcome(status, folder)


def _open_folder(
    config: RunConfig, folder: Path, own: Ranks, resume: bool, overwrite: bool, console: Console
) -> Checkpoint | None:
    """Make the run's folder, or find where to go on in it."""
    used = (folder / "config.json").exists()
    if folder.exists() and not used and any(folder.iterdir()):
        raise ConfigError(f"'{folder}' exists and is not a run; choose another --out")
    if used and not resume and not overwrite:
        raise ConfigError(
            f"'{folder}' holds a run already. --resume goes on with it, --overwrite removes it, "
            "--out chooses another folder"
        )
    own.wait()  # all have looked before the first one changes anything
    if used and overwrite and not resume and own.first:
        shutil.rmtree(folder)
    own.wait()
    checkpoint = None
    if used and resume:
        _require_same(config, load_config(folder / "config.json"), folder)
        checkpoint, notes = Checkpoints(folder, own).newest()
        if own.first:
            for note in notes:
                console.print(f"warning: {note}", soft_wrap=True, markup=False)
            where = f"update {checkpoint.update}" if checkpoint else "the start: no checkpoint yet"
            console.print(f"resuming from {where}", highlight=False)
    own.wait()
    if own.first:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("config.yaml", config.to_yaml()),
            ("config.json", config.model_dump_json(indent=2) + "\n"),
        ):
            with replacing(folder / name) as scratch:
                scratch.write_text(text)
    own.wait()
    return checkpoint


def _require_same(config: RunConfig, before: RunConfig, folder: Path) -> None:
    """A resumed run must be the same run."""
    old, new = _flat(before.model_dump()), _flat(config.model_dump())
    differing = [
        f"{key}: {old.get(key)} before, {new.get(key)} now"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and not key.startswith(FREE)
    ]
    if differing:
        raise ConfigError(
            f"the run in '{folder}' was made with other settings ({'; '.join(differing)}); resume "
            "it with the same ones, or choose another --out"
        )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, dict)
        found |= _flat(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return found


def _prepare(
    config: RunConfig, folder: Path, own: Ranks, checkpoint: Checkpoint | None, console: Console
) -> Trainer:
    path = data_folder(config.data, own, console)
    data = read(config, path, "train", horizon=config.train.unroll)
    torch.manual_seed(config.train.seed)
    model = make_model(config.model, data.domain)
    if config.model.unit == "pace":
        model.pace.copy_(_pace(data))
    if checkpoint is not None:
        weights, saved = load_folder(checkpoint.path / "model")
        _require_fields(saved, data.domain, path)
        model.load_state_dict(weights)
    flops = update_flops(model, config)
    model.checkpoint_activations(config.train.checkpoint_activations)
    model.to(own.device)
    steps = config.valid.rollout_steps
    validator = Validator(
        windows=read(config, path, "valid", horizon=1),
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
            soft_wrap=True,
        )
    parts = Parts(model, data, validator, flops, folder, own)
    return Trainer(config, parts, checkpoint)


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
                progress=lambda n, m, _: tick(n, m),
            )
    if own is not None:
        own.wait()
    return folder


def _require_fields(saved: dict[str, Any], domain: Domain, path: Path | str) -> None:
    before = Domain(**saved.get("architecture", saved)["domain"])
    if before.fields != domain.fields or before.ndim != domain.ndim:
        raise ConfigError(
            f"the checkpoint was trained on the fields {before.fields} in {before.ndim}D, '{path}' "
            f"has {domain.fields} in {domain.ndim}D; resume with the data that the run began with"
        )


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
        scratch.write_text(json.dumps(plain(content), indent=2) + "\n")


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
