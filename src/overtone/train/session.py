"""A training from start to end: checks, its folder if it has one, where it goes on, how it ends.

`run.train` makes data and model by a configuration, `fit.fit` is given them; the rest is here.
Nothing is written before the settings, the data and the model are known to work together.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from overtone.data import ArrayWindows, Items, WellFolder
from overtone.domain import Domain, Window
from overtone.errors import ConfigError, DataError, OvertoneError, TrainingStopped, refusal
from overtone.files import replacing
from overtone.guard.limits import require_memory
from overtone.models.base import Model
from overtone.models.storage import load_model, save_calibration
from overtone.normalize import change_share, spread_of, typical_pace, typical_scale
from overtone.rollout.calibrate import calibrate
from overtone.schedules import Cycle, Shifted
from overtone.train import follow
from overtone.train.budget import Budget
from overtone.train.checkpoint import Checkpoints
from overtone.train.config import RunConfig
from overtone.train.console import Display, duration
from overtone.train.draws import Share
from overtone.train.folder import RunFolder, run_folder
from overtone.train.journal import SUMMARY, History, Journal, plain, require_loggers
from overtone.train.loop import Callback, Parts, Trainer, update_flops
from overtone.train.parallel import Ranks
from overtone.train.resume import find_checkpoint, flat, other_data, require_same
from overtone.train.settings import load_config
from overtone.train.validate import Validator, evenly_spaced
from overtone.version import machine

TYPICAL_WINDOWS = 64
"""Windows by which the scale and the pace of the fields are measured."""

LOCAL = ("data.path", "data.workers", "data.memory", "train.device", "train.threads")
"""What may differ between the ranks of a run."""
EVALUATED = 40
"""Steps that `overtone evaluate` rolls out by default."""

Prepare = Callable[[Ranks], Parts]
"""Makes what a trainer works with, for a rank."""


@dataclass(frozen=True)
class Way:
    """Where a training goes, and whether there was one before.

    Attributes:
        folder: of the run; None to write nothing.
        resume: go on from the newest complete checkpoint, if there is one.
        overwrite: remove an earlier run of that folder.
        allow_other_data: resume on other data than before; it is noted in the run.
        callbacks: as for `Trainer`.
        draw: draws the run's page while it trains, if `log.report` is on; ours if None.
    """

    folder: Path | None
    resume: bool = False
    overwrite: bool = False
    allow_other_data: bool = False
    callbacks: Sequence[Callback] = ()
    draw: follow.Draw | None = None


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        status: `"finished"`, `"stopped early"` or `"interrupted"`.
        folder: of the run, if it has one.
        history: the numbers of this part of it.
        best: the best weights, where there is no folder that holds them and a validation was made.
    """

    status: str
    folder: Path | None
    history: History
    best: Mapping[str, Tensor] | None = None


def conduct(config: RunConfig, own: Ranks, prepare: Prepare, way: Way, console: Console) -> Outcome:
    """One rank's part. Whatever uses the ranks' connections ends with this call, before they do.

    Args:
        config: all settings.
        own: this process among all.
        prepare: called once the folder is known to be free.
        way: where to write and where to go on.
        console: where to print.
    """
    settings = flat(config.model_dump(mode="json"))
    alike = {key: value for key, value in settings.items() if key not in LOCAL}
    own.require_alike(alike, "Start all of them with the same settings")
    Share(config.train.batch, config.train.accumulate, own.rank, own.world)
    if config.train.precision == "fp16" and config.parallel.strategy != "ddp" and own.world > 1:
        raise ConfigError("train.precision=fp16 works with parallel.strategy=ddp; use bf16")
    require_loggers(config.log)
    with nullcontext() if way.folder is None else run_folder(way.folder, own) as opened:
        if opened is not None:
            inputs = () if config.data.path is None else (config.data.path,)
            opened.require_free(resume=way.resume, overwrite=way.overwrite, inputs=inputs)
            own.wait()  # all have looked before the first one changes anything
        going_on = opened is not None and way.resume and opened.used
        changed = _changes(config, way.folder) if going_on else {}
        trainer, other = _make_trainer(config, prepare(own), way, going_on, console)
        if own.first and opened is not None:
            _begin(opened, config, console, replace=not way.resume)
        own.wait()
        history = History()
        with _ending_well(trainer.checkpoints):
            with _reporting(trainer, changed | other, history, console) as display:
                status = trainer.run(history.add, display)
            if own.first:
                _conclude(trainer, status, way.folder, display)
        if own.first and opened is not None and status != "interrupted":
            opened.finish()
    return Outcome(status, way.folder, history, trainer.best)


def assemble(
    config: RunConfig,
    model: Model,
    data: Items,
    windows: Items,
    trajectories: Items | None,
    *,
    folder: Path | None,
    own: Ranks,
    console: Console,
) -> Parts:
    """What a trainer works with, if all of it fits together.

    Args:
        config: all settings.
        model: to be trained. Where it knows no scale and pace yet, those of the data are measured.
        data: windows to train on, with `train.unroll` frames as target.
        windows, trajectories: to validate by, as `Validator` has them.
        folder: of the run.
        own: this process among all.
        console: where to print what it is.
    """
    for part, split in ((data, "training"), (windows, "validation")):
        if not len(part):
            raise DataError(f"the {split} data has no windows; give at least one")
    source = {"train": _about(data), "valid": _about(windows)}
    own.require_alike(flat(source), "Let data.path be the same data for all of them")
    part = Share(config.train.batch, config.train.accumulate, own.rank, own.world).size
    _require_batch(part, data, "choose a smaller train.batch, or more parts (train.accumulate)")
    if config.train.batch > len(data):
        raise ConfigError(
            f"train.batch is {config.train.batch}; there are {len(data)} windows to train on. "
            f"Choose at most {len(data)}, or give longer or more trajectories"
        )
    at_once = min(config.valid.batch, config.valid.windows, len(windows))
    _require_batch(at_once, windows, "choose a smaller valid.batch")
    if isinstance(windows, WellFolder):
        _require_known_steps(windows, model.domain)
    for part in (data, windows):
        _require_accepted(config, model, part)
    _measure_typical(config, model, data)
    model.calibration, model.digest = None, ""  # of weights that are about to change
    flops = update_flops(model, config)
    model.checkpoint_activations(config.train.checkpoint_activations)
    model.to(own.device)
    if own.first:
        cells = "x".join(map(str, data[0][0].domain.shape))
        told = (
            f"{config.recipe}: {model.num_parameters:,} parameters, {len(data):,} windows of "
            f"{source['train']['trajectories']} trajectories on {cells} cells, batch "
            f"{config.train.batch}, {Budget(config)} on {own.world} x {own.device.type}"
        )
        console.print(told, highlight=False, markup=False, soft_wrap=True)
    validator = Validator(windows, trajectories, config.valid, own)
    return Parts(model, data, validator, flops, folder, own, source)


def _about(data: Items) -> dict[str, Any]:
    """What is kept of a split, to know it again."""
    if isinstance(data, WellFolder):
        return {
            "fingerprint": data.fingerprint(),
            "trajectories": data.num_trajectories,
            "cells": "x".join(map(str, data.layouts[0].shape)),
        }
    cells = "x".join(map(str, data[0][0].domain.shape))
    if isinstance(data, ArrayWindows):
        trajectories, fingerprint = len(data.trajectories), data.fingerprint()
    else:  # of a dataset of the user's own no more is known than its length
        trajectories, fingerprint = "unknown", f"{len(data)} windows"
    return {"fingerprint": fingerprint, "trajectories": trajectories, "cells": cells}


def _require_batch(num: int, data: Items, advice: str) -> None:
    """Refuse windows that memory can't hold at once."""
    window, target = data[0]
    frames = window.num_frames + len(target)
    require_memory(
        num * (window.fields.nbytes + target.nbytes),
        f"{num:,} windows of {frames} frames at once",
        advice,
        error=ConfigError,
    )


def _require_accepted(config: RunConfig, model: Model, data: Items) -> None:
    """Refuse what the model would refuse at its first update: fields, dt, frames, patches."""
    window, _ = data[0]
    if not isinstance(window, Window):
        raise DataError(
            f"item 0 of the data begins with a {type(window).__name__}; expected pairs of a Window "
            "(T, C, *space) and a target (horizon, C, *space)"
        )
    model.accept(Window(window.fields[None], window.domain), check_finite=False)
    for patch in model.patches:
        model.lay(window.domain, patch, int(config.train.shift > 0), False)


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


def _measure_typical(config: RunConfig, model: Model, data: Items) -> None:
    """Give a model the scale and the pace of its data, by windows that are spread over them.

    A model that knows one of the two has learned with it, and keeps what it knows. The pace is a
    share of what fields are measured in, so the scale comes first.
    """
    scaled, paced = config.model.scale == "typical", config.model.unit == "pace"
    if not (scaled or paced) or bool(model.pace.any()) or bool(model.scale.any()):
        return
    items = [data[index] for index in evenly_spaced(len(data), TYPICAL_WINDOWS)]
    frames = [torch.cat([window.fields, following])[None] for window, following in items]
    if scaled:
        model.scale.copy_(typical_scale(torch.cat([spread_of(x) for x in frames])))
    if paced:
        own, measured = (
            torch.cat([change_share(x, scale) for x in frames]) for scale in (None, model.scale)
        )
        model.pace.copy_(typical_pace(measured, own))


def _changes(config: RunConfig, folder: Path | None) -> dict[str, Any]:
    """Settings that are other than those of the run that goes on."""
    assert folder is not None
    return require_same(config, load_config(folder / "config.json"), folder)


def _make_trainer(
    config: RunConfig, parts: Parts, way: Way, going_on: bool, console: Console
) -> tuple[Trainer, dict[str, Any]]:
    """What trains, and what of the data is other than before; nothing is written."""
    checkpoint = find_checkpoint(config, parts, console) if going_on else None
    changed = {} if checkpoint is None else other_data(parts, checkpoint, way.allow_other_data)
    drawing = config.log.report and parts.ranks.first
    draw = way.draw or follow.draw_page
    follower = follow.Follower(draw if drawing else None, way.folder)
    return Trainer(config, parts, checkpoint, way.callbacks, follower), changed


def _begin(opened: RunFolder, config: RunConfig, console: Console, *, replace: bool) -> None:
    if aside := opened.begin(config, replace=replace):
        said = f"the earlier run is kept as '{aside}' until this one has finished"
        console.print(said, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def _reporting(
    trainer: Trainer, changed: Mapping[str, Any], history: History, console: Console
) -> Iterator[Display]:
    """The display of a run, and its journal behind its history; both begin with what is other."""
    own, folder, update = trainer.parts.ranks, trainer.parts.folder, trainer.progress.update
    journal = None
    if own.first and folder is not None:
        journal = Journal(folder, trainer.config.log, update=update, name=folder.name)
        history.follow(journal.write)
    try:
        with Display(console, quiet=not own.first) as display:
            if journal is not None and changed:
                journal.write("resume", update, {"changed": changed})
                for name, values in changed.items():
                    display.say(f"changed: {name} was {values['before']}, is {values['now']}")
            yield display
    finally:
        if journal is not None:
            journal.close()


@contextmanager
def _ending_well(checkpoints: Checkpoints | None) -> Iterator[None]:
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
        if checkpoints is None:
            raise TrainingStopped(f"training stopped: {reason}") from error
        found, _ = checkpoints.newest()
        kept = f"'{found.path.name}' is intact" if found else "there is none yet"
        raise TrainingStopped(
            f"training stopped: {reason}. The last complete checkpoint: {kept}. --resume goes on"
        ) from error


def _conclude(trainer: Trainer, status: str, folder: Path | None, display: Display) -> None:
    """Say how it ended and what to do next."""
    if folder is not None:
        _summarise(trainer, status, folder)
        if status != "interrupted":
            _calibrate(trainer, folder, display)
    if said := trainer.follower.ended():
        display.say(said)
    display.table(f"{trainer.config.recipe}: {status}", _rows(trainer, folder))
    if folder is not None and status != "interrupted" and (command := _next(trainer, folder)):
        display.say(f"next: {command}")


def _calibrate(trainer: Trainer, folder: Path, display: Display) -> None:
    """Let the best model know what its disagreements are worth, by a few short rollouts.

    Whatever goes wrong here, the training itself is done.
    """
    windows, data = trainer.config.valid.calibrate, trainer.parts.validator.trajectories
    best, own = folder / "best", trainer.parts.ranks
    if not windows or data is None or own.world > 1 or not best.is_dir():
        return
    try:
        model = load_model(best)
        if not model.patched:
            return
        model.to(own.device)
        schedule = Shifted(Cycle(*model.patches))
        about = {"split": "valid", "fingerprint": str(trainer.parts.source["valid"]["fingerprint"])}
        found = calibrate(model, data, windows=windows, batch=trainer.config.valid.batch,
                          schedules=[schedule], about=about, device=own.device)  # fmt: skip
        save_calibration(best, found)
    except OvertoneError as error:
        display.say(f"note: the model's estimates of its error are not calibrated: {error}")


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


def _rows(trainer: Trainer, folder: Path | None) -> list[tuple[str, str]]:
    progress = trainer.progress
    counts = ", ".join(f"{patch}: {count}" for patch, count in progress.patches.items())
    best = "none yet"
    if progress.best is not None:
        best = f"{progress.best:.4f} at update {progress.best_update:,}"
    return [
        ("budget", str(trainer.budget)),
        ("updates", f"{progress.update:,} ({counts})"),
        ("time", duration(progress.seconds)),
        ("PFLOP", f"{progress.flops / 1e15:.3g}"),
        ("best validation score", best),
        *([] if folder is None else [("folder", str(folder))]),
    ]


def _next(trainer: Trainer, folder: Path) -> str:
    """The command that evaluates a run, if there is data to do it on."""
    data = trainer.parts.validator.windows
    if not isinstance(data, WellFolder):
        return ""
    try:
        data, split = data.again(context=data.context, horizon=1, split="test"), ""
    except DataError:  # there is no such split
        split = f" --split {data.split}"
    frames = min(data.num_frames(i) for i in range(data.num_trajectories))
    steps = frames - data.context
    shorter = f" --steps {steps}" if steps < EVALUATED else ""
    return f"overtone evaluate {shlex.quote(str(folder))} {shlex.quote(data.path)}{split}{shorter}"
