"""Training in Python: `fit(model, data)`.

The same loop as `overtone train`, which makes data and model by a configuration. Here both are
given, and settings that nobody gave are chosen by them (`suit`). The model is trained in place.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from overtone.data import ArrayWindows, Items, Trajectories, WellFolder
from overtone.data.arrays import Arrays
from overtone.domain import Domain, Window
from overtone.errors import ConfigError, DataError, OvertoneError
from overtone.models.base import Model
from overtone.models.storage import load_folder
from overtone.progress import Terminal
from overtone.train.config import DataConfig, ModelConfig, RunConfig
from overtone.train.journal import METRICS, History, read_journal
from overtone.train.loop import Callback, Parts
from overtone.train.parallel import Ranks, ranks
from overtone.train.run import use_threads
from overtone.train.session import Way, assemble, conduct
from overtone.train.settings import change
from overtone.train.suit import KEPT, MINUTES, UNROLL, Facts, suit_model, survey

Source = str | Path | WellFolder | Trajectories | ArrayWindows | Arrays | Items
"""A Well folder, trajectories in memory, or any map-style dataset of windows and targets."""


READING = ("stride", "fields", "coarsen")
"""Settings by which a folder is read."""


class Fitted(NamedTuple):
    """What `fit` returns.

    Attributes:
        model: the model that was given, with the best weights, in evaluation mode.
        history: losses and validations; it draws itself.
    """

    model: Model
    history: History


def fit(
    model: Model,
    data: Source,
    *,
    valid: Source | None = None,
    domain: Domain | None = None,
    minutes: float | None = None,
    updates: int | None = None,
    settings: RunConfig | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callback | Sequence[Callback] = (),
    console: Console | None = None,
    quiet: bool = False,
) -> Fitted:
    """Train a model and keep what validates best.

    Ctrl-C ends the training as if its budget were used: the best weights so far are kept.

    Args:
        model: an emulator, a baseline, a CViT or a `FlexibleStepper`; it is trained in place.
            Where it knows no scale and no pace yet, the data's are measured (see `normalize`).
        data: a Well folder, a `WellFolder`, what `ot.data.from_files` and the like understood,
            trajectories in memory `(n, T, C, *space)` in physical units, or any map-style dataset
            of windows `(T, C, *space)` and targets `(horizon, C, *space)`. All but the last are
            cut into windows as the model needs them.
        valid: what to validate by, of the same kinds. If None, the folder's split `valid`, or of
            arrays a tenth of the trajectories, which are not trained on then.
        domain: what arrays live on; the model's own if None.
        minutes, updates: the budget; the first that is used up ends the training. By default that
            of the settings, or else 15 minutes.
        settings: dotted keys and values as of `overtone train`, e.g. `{"optimizer.lr": 1e-3}`; or
            a whole configuration, e.g. of `recipes.for_data`, whose model is not looked at.
        out: folder for checkpoints, curves and models. Without it nothing is written.
        resume: go on with the run in `out`, if there is one.
        overwrite: replace the run in `out`.
        callbacks: each gets a record of plain data after every validation (`update`, `minutes`,
            `done`, `score`, `best`, `better`, `vrmse`, `rollout`, …) and may answer True to stop.
        console: where to show progress.
        quiet: show nothing.

    Returns:
        The model and its history.
    """
    _require_trainable(model)
    console = Console(file=io.StringIO()) if quiet else console or Terminal()
    opened = partial(_opened, domain=domain or model.domain, reading=_reading(settings))
    held = None if valid is None else opened(valid, "valid")
    sources = _sources(model, opened(data, "train"), held)
    config = _configure(model, sources, settings, minutes, updates)
    use_threads(config)
    own_callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks)
    folder = None if out is None else Path(out)
    way = Way(folder, resume, overwrite, callbacks=own_callbacks)
    prepare = partial(_prepare, config, model, sources, folder, console)
    apart = torch.random.fork_rng(devices=[])  # pyright: ignore
    with apart, ranks(config.train.device) as own:
        if own.world > 1 and config.parallel.strategy != "ddp":
            raise ConfigError("fit keeps whole models: use parallel.strategy=ddp")
        outcome = conduct(config, own, prepare, way, console)
    best, history = outcome.best, outcome.history
    if folder is not None:
        history = History(read_journal(folder / METRICS))
        best = load_folder(folder / "best")[0] if (folder / "best").exists() else None
    if best is not None:
        model.load_state_dict(best)
        model.source = None if folder is None else folder / "best"
    history.status = outcome.status
    return Fitted(model.eval(), history)


def _require_trainable(model: object) -> None:
    if not isinstance(model, Model):
        how = "expected an emulator, a baseline, a CViT or a FlexibleStepper"
        if isinstance(model, nn.Module):
            how += ": ot.flexify it, then ot.FlexibleStepper(model, domain=..., context=...)"
        raise OvertoneError(f"model is a {type(model).__name__}; {how}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise OvertoneError(f"{type(model).__name__} has no weights to train; give another model")


class _Sources(NamedTuple):
    """What to train on and what to validate by, not yet cut as the settings want it."""

    train: Items
    valid: Items


def _sources(model: Model, train: Items, valid: Items | None) -> _Sources:
    if valid is not None:
        return _Sources(train, valid)
    if isinstance(train, WellFolder):
        if train.split == "valid":
            raise DataError(f"{train} is to be trained on and to validate by; give valid=...")
        return _Sources(train, train.again(context=1, horizon=1, split="valid"))
    if isinstance(train, ArrayWindows):
        # In windows of what a step needs, so that a single trajectory can be divided.
        return _Sources(*train.again(context=model.context, horizon=1).hold_out())
    raise DataError(
        f"there is nothing to validate by: a {type(train).__name__} can't be divided by "
        "trajectories. Give valid=..."
    )


def _reading(settings: RunConfig | Mapping[str, Any] | None) -> dict[str, Any]:
    """How settings want a folder to be read."""
    if isinstance(settings, RunConfig):
        return {name: getattr(settings.data, name) for name in READING}
    found = settings or {}
    return {name: found[f"data.{name}"] for name in READING if f"data.{name}" in found}


def _opened(data: Any, split: str, *, domain: Domain, reading: Mapping[str, Any]) -> Items:
    """A dataset, whatever was given."""
    if isinstance(data, (str, Path)):
        return WellFolder(data, split, context=1, **reading)
    if isinstance(data, (WellFolder, ArrayWindows)):
        return data
    if isinstance(data, Trajectories):
        return ArrayWindows(data, data.domain, context=1)
    items, several = data, isinstance(data, (list, tuple))
    arrays: Sequence[Any] = items[:1] if several else (items,)
    if all(isinstance(array, (np.ndarray, Tensor)) for array in arrays) and len(arrays):
        return ArrayWindows(items, domain, context=1)
    try:
        window, target = items[0]
        known = isinstance(window, Window) and isinstance(target, Tensor) and len(items) > 0
    except (TypeError, ValueError, LookupError):
        known = False
    if not known:
        raise DataError(
            f"the {split} data is a {type(items).__name__}; expected a Well folder, a WellFolder, "
            "arrays (n, T, C, *space), or a dataset whose items are (Window, target)"
        )
    return items


def _where(data: Items, base: DataConfig | None) -> DataConfig:
    """What the configuration says of the data: where it is and how it is read."""
    found: dict[str, Any] = {"path": None, "generate": None, "given": None}
    if isinstance(data, WellFolder):
        found |= {"path": data.path} | {name: data.reading[name] for name in READING}
    else:
        arrays = isinstance(data, ArrayWindows)
        found |= {"given": f"arrays: {data}" if arrays else type(data).__name__}
        found |= {name: DataConfig.model_fields[name].default for name in READING}
    return (base or DataConfig(given="", memory=KEPT)).model_copy(update=found)


def _configure(
    model: Model,
    sources: _Sources,
    settings: RunConfig | Mapping[str, Any] | None,
    minutes: float | None,
    updates: int | None,
) -> RunConfig:
    """All settings: those given, and for the others what suits model and data."""
    budget = {"train.max_minutes": minutes, "train.updates": updates}
    changes: dict[str, Any] = {k: value for k, value in budget.items() if value is not None}
    if isinstance(settings, RunConfig):
        data = _where(sources.train, settings.data)
        if updates is not None and minutes is None:
            changes["train.max_minutes"] = None
        return change(
            settings.model_copy(update={"model": _described(model), "data": data}), changes
        )
    changes = {**(settings or {}), **changes}
    read = [f"data.{name}" for name in READING if f"data.{name}" in changes]
    if read and not isinstance(sources.train, WellFolder):
        raise ConfigError(f"{read[0]} is for folders; cut the data before it is given to fit")
    default = None if "train.updates" in changes else MINUTES
    data = _where(sources.train, None)
    base = RunConfig(recipe="fit", data=data, model=_described(model))
    chosen = suit_model(model, _facts(model, sources), default)
    others = {key: value for key, value in changes.items() if key not in read}
    return change(base.model_copy(update=dict(chosen)), others)


def _described(model: Model) -> ModelConfig:
    """What the settings say of a model that is given; its folder has all of it."""
    name = {"emulator": "processor", "baseline": "name"}.get(model.kind)
    return ModelConfig(
        name=str(model.config[name]) if name else model.kind,
        tokenizer=model.config.get("tokenizer", "csm"),
        patches=model.patches,
        context=model.context,
        size=f"{model.num_parameters:,} parameters",
    )


def _facts(model: Model, sources: _Sources) -> Facts:
    """What settings are chosen by; a dataset of windows counts as that many short trajectories."""
    train, valid = sources.train, sources.valid
    known = [isinstance(part, (WellFolder, ArrayWindows)) for part in (train, valid)]
    if all(known):
        return survey(train, valid)  # pyright: ignore[reportArgumentType]
    horizons = [len(part[0][1]) for part in (train, valid)]
    return Facts(
        model.domain,
        (model.context + min(horizons[0], UNROLL),) * len(train),
        model.context + horizons[1],
        "cuda" if torch.cuda.is_available() else "cpu",
        1,
    )


def _prepare(
    config: RunConfig,
    model: Model,
    sources: _Sources,
    folder: Path | None,
    console: Console,
    own: Ranks,
) -> Parts:
    """Model and data as the loop needs them."""
    steps = config.valid.rollout_steps
    data = _cut(sources.train, model.context, config.train.unroll, config)
    windows = _cut(sources.valid, model.context, 1, config)
    trajectories = _cut(sources.valid, model.context, steps, config) if steps else None
    told: dict[str, Any] = {"folder": folder, "own": own, "console": console}
    return assemble(config, model, data, windows, trajectories, **told)


def _cut(data: Items, context: int, horizon: int, config: RunConfig) -> Items:
    """The same data in windows of some length; a dataset of the user's own is as it is."""
    if isinstance(data, WellFolder):
        return data.again(context=context, horizon=horizon, keep=int(config.data.memory * 1e9))
    if isinstance(data, ArrayWindows):
        return data.again(context=context, horizon=horizon)
    window, target = data[0]
    if window.num_frames < context or len(target) < horizon:
        raise DataError(
            f"the items of the {type(data).__name__} have {window.num_frames} + {len(target)} "
            f"frames; context {context} and {horizon} target frames are needed. Let them be "
            "longer, or set train.unroll and valid.rollout_steps to fewer"
        )
    return data
