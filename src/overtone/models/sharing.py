"""A model's way to the hub: a folder of what belongs there, and one commit of it.

A card tells of certain weights. So the card, the calibration and the log of a training go along
only if the model still has the weights of the folder that they lie in; weights that were changed
since get a card that claims nothing of them. Nothing that names a folder of this machine is sent.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from overtone.errors import CheckpointError, OvertoneError
from overtone.guard.names import shown
from overtone.hub import CALIBRATION, CARD, LOG, NEEDED, parse, upload
from overtone.models.base import Model
from overtone.models.card import model_card, readdressed
from overtone.models.storage import load_folder

TOLD = ("train", "valid")
"""Kinds of lines of a log that go along; others may name folders."""


def push(
    model: Model,
    name: str,
    *,
    revision: str | None = None,
    private: bool | None = None,
    license: str | None = None,
    card: str | None = None,
    message: str | None = None,
    token: str | None = None,
) -> str:
    """Write a model to a repository; see `Model.push_to_hub`."""
    repository = parse(name, revision)
    if repository is None:
        raise CheckpointError(
            f"'{shown(name)[:120]}' names no repository; expected org/name: the account's name, a "
            "slash, and the model's"
        )
    origin = _origin(model)
    with TemporaryDirectory(prefix="overtone-") as scratch:
        folder = Path(scratch) / "model"
        if origin is None:
            model.save(folder)
        else:
            folder.mkdir()
            _copy(origin, folder)
            if model.calibration is not None:
                (folder / CALIBRATION).write_text(model.calibration.to_json())
        own = folder / CARD
        if card is None:
            card = own.read_text() if own.is_file() else model_card(model, repository.name)
        own.write_text(readdressed(card, repository.name, license))
        done = upload(folder, repository, private=private, token=token, message=message)
    return f"{repository.name}@{done.commit}"


def _origin(model: Model) -> Path | None:
    """The folder that a model was read from, if it still has the weights that are there."""
    if model.source is None:
        return None
    try:
        stored, _ = load_folder(model.source)
    except OvertoneError:  # it is gone, or another one is there now
        return None
    own = model.state_dict()
    same = stored.keys() == own.keys() and all(
        own[name].shape == tensor.shape and torch.equal(own[name].cpu(), tensor.to(own[name].dtype))
        for name, tensor in stored.items()
    )
    return model.source if same else None


def _copy(origin: Path, folder: Path) -> None:
    """Take along what tells of the weights: configuration, card, and the log of a run."""
    for name in (*NEEDED, CARD):
        if (origin / name).is_file():
            shutil.copyfile(origin / name, folder / name)
    run = origin.parent if origin.name in ("best", "last") else origin
    if (run / LOG).is_file():
        _copy_log(run / LOG, folder / LOG)


def _copy_log(log: Path, target: Path) -> None:
    """A training's numbers, without lines that say more than numbers."""
    kept: list[str] = []
    for line in log.read_text(errors="replace").splitlines():
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and content.get("kind") in TOLD:
            kept.append(line)
    target.write_text("".join(f"{line}\n" for line in kept))
