"""From trajectories of any origin to a Well folder.

Trajectories are dealt out to train, valid and test, some of them to a file. A few frames of those
are in memory at a time, whatever their length.

Files are written into a hidden folder beside the new one, whose name follows from what is imported
and how. It takes the new one's name when it is complete; so there is all of a dataset or nothing.
If the process is killed or interrupted, the same command finds the hidden folder and goes on. What
is wrong with the data, on the other hand, would be wrong again: then it is removed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from overtone.data.header import Header
from overtone.data.layout import DEFAULTS
from overtone.data.location import DATASET, SPLITS, STATS, split_counts
from overtone.data.stats import write_stats
from overtone.data.writer import Storage, WellWriter, writing
from overtone.errors import DataError
from overtone.files import put_in_place, remove_folder, remove_leftovers, restore_folder
from overtone.guard.folders import contents, mark, require_ours, succeed
from overtone.guard.limits import require_disk, require_memory
from overtone.guard.locks import locked
from overtone.guard.names import file_name
from overtone.progress import Tick

if TYPE_CHECKING:
    from overtone.data.trajectories import Trajectories

BLOCK_BYTES = 1 << 27
"""Size of the frames that are read at a time, in float64."""


@dataclass(frozen=True)
class OutputFile:
    """A file to write: its name below the folder, and the trajectories that go into it."""

    name: str
    trajectories: tuple[int, ...]


def deal(lengths: Sequence[int], splits: Sequence[float], seed: int | None) -> dict[str, list[int]]:
    """Deal trajectories out to the splits; within one they are in order of length, then number.

    Args:
        lengths: frames of each trajectory.
        splits: fractions of train, valid and test.
        seed: of the order in which trajectories are dealt; None keeps theirs.
    """
    counts, first = split_counts(len(lengths), splits), 0
    order = np.arange(len(lengths))
    if seed is not None:
        np.random.default_rng(seed).shuffle(order)
    dealt = {}
    for split in SPLITS:
        chosen = order[first : first + counts[split]].tolist()
        first += counts[split]
        dealt[split] = sorted(chosen, key=lambda i: (lengths[i], i))
    return dealt


def write_folder(
    data: Trajectories,
    out: Path,
    *,
    splits: Sequence[float],
    per_file: int,
    seed: int | None,
    storage: Storage,
    progress: Tick,
) -> Path:
    """Write trajectories as a Well folder; see `Trajectories.save`."""
    if per_file < 1:
        raise DataError(f"per_file is {per_file}; expected at least 1")
    if out.is_dir() and any(out.iterdir()):
        raise DataError(f"'{out}' is not empty; it is left alone. Choose another folder")
    name = file_name(data.name, "the dataset's name (name)", error=DataError)
    require_ours(out, DATASET, inputs=data.paths, error=DataError)
    _require_room(data, out, per_file, storage)
    header = _header(data, name)
    dealt = deal([run.steps for run in data.runs], splits, seed)
    files = [
        file
        for split, numbers in dealt.items()
        for file in _plan(data, split, numbers, per_file, name)
    ]
    scratch = _scratch(data, out, [header, storage, files])
    restore_folder(out)
    if scratch.exists():
        os.utime(scratch)  # left by an interrupted import, and wanted now
    remove_leftovers(out, remove=succeed)
    with writing(out), locked(scratch, error=DataError) as lock:
        try:
            _fill(scratch, data, files, header, storage, progress)
        except Exception as error:
            remove_folder(scratch, out)
            if isinstance(error, DataError):  # of files by the names that they would have had
                raise DataError(str(error).replace(str(scratch), str(out))) from error
            raise
        except BaseException:  # somebody ends the process: what is complete is kept for the next
            if not data.paths or not any(scratch.rglob("*.hdf5")):
                remove_folder(scratch, out)
            raise
        mark(scratch, DATASET, map(escape, contents(scratch)))
        put_in_place(scratch, out, remove=succeed)
        lock.folder = out
    return out


def _scratch(data: Trajectories, out: Path, settings: list[object]) -> Path:
    """Where files are until all are complete: the same place for the same import."""
    out = out.resolve()
    key = secrets.token_hex(4)
    if data.paths:
        content = json.dumps([data.stamp(), *map(repr, settings)], default=str)
        key = hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:8]
    return out.parent / f".{out.name}-{key}.tmp"


def _header(data: Trajectories, name: str) -> Header:
    domain = data.domain
    guessed = [what for what, fact in data.facts.items() if fact.origin.startswith("default")]
    return Header(
        name=name,
        shape=domain.shape,
        extent=domain.extent,
        boundaries=domain.boundaries,
        dt=domain.dt,
        axes=data.axes,
        attributes={DEFAULTS: ",".join(guessed)} if guessed else {},
    )


def _require_room(data: Trajectories, out: Path, per_file: int, storage: Storage) -> None:
    frame = len(data.domain.fields) * math.prod(data.domain.shape)
    num = min(per_file, len(data))
    # Twice: they are stacked, and compared with what is finite.
    require_memory(
        2 * 8 * num * frame,
        f"one frame of {num} trajectories",
        "put fewer into a file (per_file)",
    )
    size = sum(run.steps for run in data.runs) * frame * np.dtype(storage.dtype).itemsize
    require_disk(0 if storage.compression else size, out, f"a dataset of '{data.name}'")


def _plan(
    data: Trajectories, split: str, numbers: Sequence[int], per_file: int, name: str
) -> Iterator[OutputFile]:
    """The files of a split; trajectories of one file have the same number of frames."""
    groups: list[list[int]] = []
    for number in numbers:
        same = groups and data.runs[groups[-1][0]].steps == data.runs[number].steps
        if same and len(groups[-1]) < per_file:
            groups[-1].append(number)
        else:
            groups.append([number])
    for index, group in enumerate(groups):
        yield OutputFile(f"data/{split}/{name}_{index:03d}.hdf5", tuple(group))


def _fill(
    folder: Path,
    data: Trajectories,
    files: Sequence[OutputFile],
    header: Header,
    storage: Storage,
    progress: Tick,
) -> None:
    """Write the files that are not there yet, and the statistics."""
    done, total = 0, sum(len(file.trajectories) for file in files)
    for file in files:
        if not (folder / file.name).exists():
            _write(folder / file.name, data, file.trajectories, header, storage)
        done += len(file.trajectories)
        progress(done, total, file.name)
    if any(file.name.startswith("data/train/") for file in files):
        progress(total, total, STATS)
        write_stats(folder)


def _write(
    path: Path, data: Trajectories, chosen: Sequence[int], header: Header, storage: Storage
) -> None:
    """Write some trajectories of equal length as one file."""
    largest = np.float64(np.finfo(storage.dtype).max)
    with WellWriter(path, header, data.fields, len(chosen), storage=storage) as writer:
        for start, block in blocks(data, chosen):
            _require_finite(block, largest, data, chosen, start)
            for frame in block:
                writer.append(frame)


def blocks(data: Trajectories, chosen: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Consecutive frames of some trajectories, `(T, n, C, *S)`, and which one is their first."""
    steps = data.runs[chosen[0]].steps
    frame = 8 * len(chosen) * len(data.domain.fields) * math.prod(data.domain.shape)
    length = max(1, BLOCK_BYTES // frame)
    for start in range(0, steps, length):
        part = slice(start, min(steps, start + length))
        yield start, np.stack([data.read(number, part) for number in chosen], axis=1)


def _require_finite(
    block: np.ndarray, largest: np.float64, data: Trajectories, chosen: Sequence[int], start: int
) -> None:
    good = np.abs(block) <= largest  # also no NaN
    if good.all():
        return
    step, row, channel, *cell = (int(i) for i in np.argwhere(~good)[0])
    value = block[step, row, channel][tuple(cell)]
    place = (
        f"{data.place(chosen[row])} has {{}} at step {start + step}, field "
        f"'{data.domain.fields[channel]}', cell {tuple(cell)}; nothing is written. "
    )
    if np.isfinite(value):
        raise DataError(
            place.format(f"the value {value:.4g}, which float32 can't hold,")
            + "Use another unit for this field"
        )
    raise DataError(
        place.format(f"a value that is {'NaN or missing' if np.isnan(value) else 'infinite'}")
        + "Mend the data, or leave out the trajectories that have such values with "
        "--drop-nan-trajectories (drop_nan in Python)"
    )


__all__ = ["OutputFile", "blocks", "deal", "write_folder"]
