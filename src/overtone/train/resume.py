"""Going on with a run: from which checkpoint, and what may be other than before.

A resumed run is the same run. What may differ is recorded in it; whatever would make another run of
it is refused, with both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from overtone.domain import Domain
from overtone.errors import CheckpointError, ConfigError
from overtone.models.storage import load_folder, load_weights
from overtone.train.checkpoint import Checkpoint, Checkpoints
from overtone.train.config import RunConfig
from overtone.train.loop import Parts
from overtone.train.state import require_state, state_forms

# What may differ when a run is resumed: how long it lasts, what is measured and where it runs. And
# the size of its steps, which is what to change where it diverged: the optimizer's moments hold on,
# and nothing that is drawn depends on the past. Whatever else makes another model or another aim.
FREE = ("train.updates", "train.max_", "train.device", "train.threads", "train.compile",
        "data.workers", "data.memory", "data.path", "data.given", "valid.", "save.", "log.",
        "parallel.", "train.accumulate", "train.checkpoint_activations",
        "optimizer.lr", "optimizer.schedule", "optimizer.warmup", "optimizer.final",
        "optimizer.clip", "optimizer.weight_decay", "train.batch")  # fmt: skip


def require_same(config: RunConfig, before: RunConfig, folder: Path) -> dict[str, Any]:
    """A resumed run must be the same run; what differs all the same: setting -> before and now."""
    changed = _differences(before, config)
    refused = [
        f"{key}: {values['before']} before, {values['now']} now"
        for key, values in changed.items()
        if not key.startswith(FREE)
    ]
    if refused:
        raise ConfigError(
            f"the run in '{folder}' was made with other settings ({'; '.join(refused)}); resume "
            "it with the same ones, or choose another --out"
        )
    return changed


def _differences(before: RunConfig, now: RunConfig) -> dict[str, Any]:
    old, new = (flat(config.model_dump(mode="json")) for config in (before, now))
    return {
        key: {"before": old.get(key), "now": new.get(key)}
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    }


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted keys and values of mappings in mappings."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, dict)
        found |= flat(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return found


def find_checkpoint(config: RunConfig, parts: Parts, console: Console) -> Checkpoint | None:
    """The newest checkpoint to go on from, its weights in the model; None if there is none yet.

    A run whose checkpoints are all damaged is not begun anew: what else it left would be lost.
    """
    assert parts.folder is not None
    checkpoints = Checkpoints(parts.folder, parts.ranks)
    checkpoint, notes = checkpoints.newest()
    while checkpoint is not None:
        try:
            _restore_model(config, parts, checkpoint)
            break
        except CheckpointError as error:
            notes.append(f"'{checkpoint.path.name}' can't be used and is left out: {error}")
            checkpoint, more = checkpoints.newest(below=checkpoint.update)
            notes += [note for note in more if note not in notes]
    if checkpoint is None and checkpoints.any_complete():
        raise CheckpointError(
            f"no checkpoint in '{checkpoints.folder}' can be used ({'; '.join(notes)}). Bring one "
            "back from a copy, or begin anew: --overwrite replaces the run, --out chooses another "
            "folder"
        )
    if parts.ranks.first:
        for note in notes:
            console.print(f"warning: {note}", soft_wrap=True, markup=False, highlight=False)
        where = f"update {checkpoint.update}" if checkpoint else "the start: no checkpoint yet"
        console.print(f"resuming from {where}", highlight=False)
    return checkpoint


def _restore_model(config: RunConfig, parts: Parts, checkpoint: Checkpoint) -> None:
    """Give the model a checkpoint's weights, if all else in it fits, too."""
    weights, saved = load_folder(checkpoint.path / "model")
    _require_fields(saved, parts.model.domain)
    require_state(checkpoint.state, [str(patch) for patch in parts.model.patches])
    checkpoint.require_tensors(state_forms(parts.model, config.optimizer))
    load_weights(parts.model, weights, checkpoint.path / "model")


def other_data(parts: Parts, checkpoint: Checkpoint, allowed: bool) -> dict[str, Any]:
    """Splits that are not those of the checkpoint, before and now; refused unless allowed."""
    before = checkpoint.state.get("data", {})
    changed = {
        f"{split} data": {"before": _said(before[split]), "now": _said(now)}
        for split, now in parts.source.items()
        if split in before and before[split].get("fingerprint") != now["fingerprint"]
    }
    if changed and not allowed:
        texts = [f"{name}: {v['before']} before, {v['now']} now" for name, v in changed.items()]
        raise ConfigError(
            f"the run in '{parts.folder}' was trained on other data ({'; '.join(texts)}). Resume "
            "it on the data that it began with, or add --allow-other-data"
        )
    return changed


def _said(split: Mapping[str, Any]) -> str:
    """A split in words."""
    return (
        f"{split.get('trajectories')} trajectories on {split.get('cells')} cells, fingerprint "
        f"{str(split.get('fingerprint'))[:12]}"
    )


def _require_fields(saved: dict[str, Any], domain: Domain) -> None:
    try:
        before = Domain(**saved.get("architecture", saved)["domain"])
    except (LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"its model has no domain: {error!r}") from error
    if before.fields != domain.fields or before.ndim != domain.ndim:
        raise ConfigError(
            f"the checkpoint was trained on the fields {before.fields} in {before.ndim}D, the data "
            f"has {domain.fields} in {domain.ndim}D; resume with the data that the run began with"
        )
