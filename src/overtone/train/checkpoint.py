"""Checkpoints that are complete or absent.

    checkpoints/update-00000500/
        model/        what `from_pretrained` reads: weights and configuration
        state/        moments of the optimizer and the averaged weights, as safetensors
        state.json    everything else, and the SHA-256 of all these files
        COMPLETE      written last: the SHA-256 of state.json; empty in older versions

A checkpoint is written under a hidden name, marked, then renamed; older ones are removed only then.
Under FSDP every rank writes its own part of `state/` with torch's distributed checkpoint, in its
safetensors form, and any number of ranks can read it again. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed.checkpoint as dcp
from torch import Tensor

from overtone.errors import CheckpointError
from overtone.files import put_in_place, sha256
from overtone.guard import folders
from overtone.models.storage import CONFIG, WEIGHTS
from overtone.train.parallel import Ranks

FOLDER = "checkpoints"
MARKER = "COMPLETE"
STATE = "state.json"
PREFIX = "update-"
NAMES = (
    MARKER,
    "state.json",
    "state/*",
    *(f"model/{n}" for n in (CONFIG, WEIGHTS, folders.MARKER)),
)
"""All that a checkpoint holds, as `guard.folders` takes it."""


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on disk.

    Attributes:
        path: its folder.
        state: the content of `state.json`.
    """

    path: Path
    state: Mapping[str, Any]

    @property
    def update(self) -> int:
        """How many updates were made."""
        return int(self.state["update"])

    def require_tensors(self, expected: Mapping[str, Tensor]) -> None:
        """Refuse a checkpoint that lacks one of these tensors, or has it in another form."""
        try:
            found = dcp.HuggingFaceStorageReader(str(self.path / "state")).read_metadata()
        except Exception as error:  # each reader of the format has its own kinds
            raise CheckpointError(f"state/ can't be read: {error}") from error
        forms: Any = found.state_dict_metadata
        for name, tensor in expected.items():
            if name not in forms:
                raise CheckpointError(f"state/ lacks {name}")
            shape, dtype = tuple(forms[name].size), forms[name].properties.dtype
            if (shape, dtype) != (tuple(tensor.shape), tensor.dtype):
                raise CheckpointError(
                    f"{name} in state/ is {shape}, {dtype}; expected {tuple(tensor.shape)}, "
                    f"{tensor.dtype}"
                )

    def load_tensors(self, templates: dict[str, Tensor], *, sharded: bool) -> None:
        """Fill tensors of the same names in place; under FSDP all ranks must call it."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is", category=UserWarning)
            reader = dcp.HuggingFaceStorageReader(str(self.path / "state"))
            dcp.load(templates, storage_reader=reader, no_dist=not sharded)


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: of the run.
        ranks: this process among all; the first one writes what is not spread.
        keep: how many to keep.
    """

    def __init__(self, folder: Path, ranks: Ranks, *, keep: int = 2):
        self.folder, self.ranks, self.keep = folder / FOLDER, ranks, keep

    def save(
        self,
        update: int,
        save_model: Callable[[Path], None],
        tensors: dict[str, Tensor],
        state: Mapping[str, Any],
        *,
        sharded: bool,
    ) -> None:
        """Write a checkpoint and remove those that are no longer kept. All ranks must call it.

        Args:
            update: how many updates were made.
            save_model: writes the model's folder; called on the first rank.
            tensors: of the optimizer and the like.
            state: plain data, for JSON.
            sharded: whether the tensors are spread over the ranks.
        """
        final = self.folder / f"{PREFIX}{update:08d}"
        scratch = self.folder / f".{final.name}.part"
        failure = ""
        try:
            if self.ranks.first:
                shutil.rmtree(scratch, ignore_errors=True)
                (scratch / "state").mkdir(parents=True)
            self.ranks.wait()
            self._save_tensors(scratch / "state", tensors, sharded)
            if self.ranks.first:
                save_model(scratch / "model")
                _finish(scratch, final, {"update": update, **state})
                self._prune(final)
        except Exception as error:  # safetensors and torch have their own kinds for a full disk
            failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            shutil.rmtree(scratch, ignore_errors=True)
        self._agree(failure, update)

    def newest(self, *, below: int | None = None) -> tuple[Checkpoint | None, list[str]]:
        """The newest complete checkpoint, and warnings about what was passed over.

        Args:
            below: of those before this update; of all if None.
        """
        notes = [
            f"'{path.name}' was not finished and is left out"
            for path in sorted(self.folder.glob(f".{PREFIX}*.part"))
        ]
        limit = None if below is None else f"{PREFIX}{below:08d}"
        for path in sorted(self.folder.glob(f"{PREFIX}*"), reverse=True):
            if limit is not None and path.name >= limit:
                continue
            if not (path / MARKER).exists():
                notes.append(f"'{path.name}' has no {MARKER} marker and is left out")
                continue
            try:
                return Checkpoint(path, _verified_state(path)), notes
            except CheckpointError as error:
                notes.append(f"'{path.name}' is damaged and is left out: {error}")
        return None, notes

    def any_complete(self) -> bool:
        """Whether there is a checkpoint that was finished, damaged or not."""
        return any(self.folder.glob(f"{PREFIX}*/{MARKER}"))

    def _save_tensors(self, folder: Path, tensors: dict[str, Tensor], sharded: bool) -> None:
        if sharded:
            writer = dcp.HuggingFaceStorageWriter(str(folder), save_distributed=True)
            dcp.save(tensors, storage_writer=writer)
        elif self.ranks.first:
            from safetensors.torch import save_file

            plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(plain, folder / "state.safetensors")

    def _prune(self, newest: Path) -> None:
        complete = sorted(p for p in self.folder.glob(f"{PREFIX}*") if (p / MARKER).exists())
        for path in complete[: -self.keep]:
            if path != newest:
                (path / MARKER).unlink()  # a half-removed one must not look complete
                folders.remove(path, NAMES)
        for path in self.folder.glob(f".{PREFIX}*"):  # what was not finished, or put aside
            shutil.rmtree(path, ignore_errors=True)

    def _agree(self, failure: str, update: int) -> None:
        """Raise on all ranks if any failed."""
        if not self.ranks.largest([float(bool(failure))])[0]:
            return
        reasons = "; ".join(sorted({text for text in self.ranks.gather(failure) if text}))
        found, _ = self.newest()
        kept = f"'{found.path.name}' is intact" if found else "there is none before it"
        raise CheckpointError(
            f"the checkpoint at update {update} can't be written: {reasons}. The last complete "
            f"checkpoint: {kept}. Make room (or choose a larger save.every), then use --resume"
        )


def _finish(scratch: Path, final: Path, state: Mapping[str, Any]) -> None:
    """Describe, mark and rename what was written."""
    files = sorted(file for file in scratch.rglob("*") if file.is_file())
    digests = {file.relative_to(scratch).as_posix(): sha256(file) for file in files}
    content = {**state, "sha256": digests}
    (scratch / STATE).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
    (scratch / MARKER).write_text(sha256(scratch / STATE) + "\n")
    put_in_place(scratch, final)


def _verified_state(path: Path) -> dict[str, Any]:
    """The content of state.json, if every file of the checkpoint is as it was saved."""
    try:
        seal, text = (path / MARKER).read_bytes().strip(), (path / STATE).read_bytes()
        if seal not in (b"", hashlib.sha256(text).hexdigest().encode()):
            raise CheckpointError(f"{STATE} or {MARKER} is not the file that was saved")
        state = json.loads(text)
        update, digests = state["update"], dict(state["sha256"])
        if type(update) is not int or path.name != f"{PREFIX}{update:08d}":
            raise CheckpointError(f"{STATE} is of update {update!r}")
        _require_files(path, digests)
    except CheckpointError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{STATE} or what it names can't be read: {error!r}") from error
    return state


def _require_files(path: Path, digests: Mapping[str, str]) -> None:
    """Every file that is read has a checksum, and every checksum its file."""
    there = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    for name in there - digests.keys() - {STATE}:
        if name.endswith((".json", ".safetensors")):
            raise CheckpointError(f"{name} has no checksum in {STATE}")
    for name, digest in digests.items():
        if name not in there:
            raise CheckpointError(f"{name} is missing")
        if sha256(path / name) != digest:
            raise CheckpointError(f"{name} is not the file that was saved")
