"""From a solver to a Well folder.

The trajectories of a run are divided into splits and files. Each file has its own seed, derived
from the run's seed, the split, the variant of the system and the file's number, so that initial
conditions differ between splits and a file comes out the same whether the others are made or not.
A file records its recipe. Running again skips files whose recipe is the same and makes the rest.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

from overtone.data.header import Header
from overtone.data.layout import FieldSpec
from overtone.data.location import DATASET, SPLITS, STATS, Location, split_counts
from overtone.data.stats import write_stats
from overtone.data.writer import Storage, WellWriter
from overtone.errors import DataError, OvertoneError, suggest
from overtone.files import is_scratch, remove_leftovers
from overtone.guard.folders import claim, contents, inside, is_ours, require_same
from overtone.guard.limits import require_disk, require_memory
from overtone.guard.locks import locked
from overtone.guard.names import file_name, shown
from overtone.progress import Tick
from overtone.solvers import SYSTEMS, System

RECIPE = "overtone_recipe"
"""Attribute of a file that says how it was made."""
MAX_COUNT = 10**12
"""Most trajectories or frames that can be asked for; what fits is a matter of the disk."""
MAX_FILES = 100_000
"""Most files of a dataset: each is looked for, and listed whenever the dataset is read."""
MAX_COMPRESSION = 20
"""How many times smaller compressed files may come out, where room for them is looked for."""


@dataclass(frozen=True)
class DatasetFile:
    """One file to make.

    Attributes:
        path: where.
        system: what to solve.
        num: trajectories.
        steps: frames of each.
        seed: of the initial conditions.
    """

    path: Path
    system: System
    num: int
    steps: int
    seed: int

    @property
    def recipe(self) -> str:
        """All that the file's values depend on, as JSON."""
        content = {
            **_describe(self.system),
            "trajectories": self.num,
            "steps": self.steps,
            "seed": self.seed,
        }
        return json.dumps(content, sort_keys=True, default=str)


def _describe(system: System) -> dict[str, Any]:
    """A system and its settings."""
    settings = dataclasses.asdict(system)  # pyright: ignore[reportArgumentType]
    return {"system": system.name, "settings": settings}


def generate(
    system: System | Sequence[System],
    out: str | Path,
    *,
    trajectories: int = 24,
    steps: int = 200,
    seed: int = 0,
    per_file: int = 8,
    splits: Sequence[float] = (0.8, 0.1, 0.1),
    storage: Storage | None = None,
    device: str = "cpu",
    progress: Tick | None = None,
    wait: bool = False,
) -> Path:
    """Simulate trajectories and write them as a Well folder with statistics.

    Args:
        system: what to solve; or several variants of it with other parameters, each of which gets
            its own files and the same number of trajectories.
        out: the folder. An interrupted run is continued there; one that holds anything else, or
            was made with other settings, is refused.
        trajectories: of each variant, over all splits.
        steps: frames of each trajectory.
        seed: of all initial conditions.
        per_file: trajectories that are solved together and share a file, at most.
        splits: fractions of train, valid and test.
        storage: how values are stored.
        device: where to solve, e.g. `"cuda"`.
        progress: called after every frame, with frames done and frames in all.
        wait: if another process is making the folder, wait for it instead of refusing.
    """
    variants = (system,) if isinstance(system, System) else tuple(system)
    if not 1 <= steps <= MAX_COUNT or per_file < 1 or seed < 0 or not variants:
        raise DataError(
            f"steps is {steps}, per_file {per_file}, seed {seed}, systems {len(variants)}; "
            f"expected positive numbers, at most {MAX_COUNT} steps, and a seed of 0 or more"
        )
    _require_room(variants, Path(out), trajectories, steps, per_file, storage or Storage())
    _require_device(device)
    counts = split_counts(trajectories, splits)
    files = [*_plan(variants, Path(out), counts, steps, seed, per_file)]
    if len({file.path for file in files}) < len(files):
        raise DataError("two of the systems have the same parameters; each must be given once")
    out, settings = Path(out), _settings(variants, steps, seed, per_file, splits)
    _require_nothing_else(out, files, settings)
    if (counts["train"] and not (out / STATS).exists()) or not all(map(_is_done, files)):
        tell: Tick = progress or (lambda done, total, what: None)
        waiting: Callable[[str], None] | None = (lambda who: tell(0, 1, who)) if wait else None
        with locked(out, wait=waiting, error=DataError):
            names = list(map(escape, _names(out, files)))
            claim(out, DATASET, names, settings=settings, error=DataError)
            _make(out, files, storage, device, tell)
    return out


def _settings(variants: Sequence[System], *numbers: Any) -> dict[str, Any]:
    """What all files of a folder have in common, plain data; another folder has other settings."""
    # Not the number of trajectories: there may be more later, next to the files there are.
    names = "steps", "seed", "per_file", "splits"
    described = [_describe(system) for system in variants]
    content = {"systems": described, **dict(zip(names, numbers, strict=True))}
    return json.loads(json.dumps(content, default=str))


def _require_nothing_else(
    out: Path, files: Sequence[DatasetFile], settings: dict[str, Any]
) -> None:
    """Refuse a folder of somebody else's, or with another dataset in it."""
    require_same(out, DATASET, settings, error=DataError)
    names, ours = {*_names(out, files)}, is_ours(out, DATASET)
    found = [name for name in contents(out) if name not in names]
    if ours:  # what else a user keeps beside the data does not matter
        found = [name for name in found if name.startswith("data/")]
    others = [name for name in found if not is_scratch(Path(name).name)]
    if others:
        raise DataError(
            f"'{out}' holds files that are not of this dataset, e.g. '{shown(others[0])}'; they "
            "are left alone. Choose another folder"
        )


def _names(out: Path, files: Sequence[DatasetFile]) -> list[str]:
    return [file.path.relative_to(out).as_posix() for file in files] + [STATS]


def _make(
    out: Path, files: Sequence[DatasetFile], storage: Storage | None, device: str, tell: Tick
) -> None:
    """Make the files that are not there yet, and the statistics."""
    unfinished = [file for file in files if not _is_done(file)]
    steps = files[0].steps
    total, done = len(files) * steps, (len(files) - len(unfinished)) * steps
    for file in unfinished:
        inside(out, file.path.relative_to(out), error=DataError)
        remove_leftovers(file.path, after=0)
        for _ in _run(file, storage, device):
            done += 1
            tell(done, total, f"{file.path.parent.name}/{file.path.name}")
    if any(file.path.parent.name == "train" for file in files):
        tell(total, total, STATS)
        write_stats(out)


def _require_room(
    variants: Sequence[System], out: Path, trajectories: int, steps: int, per_file: int, to: Storage
) -> None:
    """Refuse what this machine can't hold, by the numbers alone: nothing is planned yet."""
    if trajectories > min(MAX_COUNT, MAX_FILES * per_file // len(variants)):
        raise DataError(
            f"{trajectories} trajectories of {len(variants)} systems, {per_file} in a file, are "
            f"more than {MAX_FILES} files; ask for fewer, or put more into a file (per_file)"
        )
    # As floats: the cells of an absurd grid may be too many for any other kind of number.
    values = [math.prod(map(float, v.shape)) * len(v.channels) for v in variants]
    largest = variants[values.index(max(values))]
    together = min(per_file, trajectories)
    require_memory(
        # The states before and after a step, in float64.
        2 * 8 * together * max(values),
        f"solving {together} trajectories on {'x'.join(map(str, largest.shape))} cells together",
        "choose a coarser grid, or fewer trajectories of a file (per_file)",
    )
    needed = trajectories * steps * sum(values) * np.dtype(to.dtype).itemsize
    present = sum(path.stat().st_size for path in out.glob("data/*/*.hdf5"))
    require_disk(
        needed / (MAX_COMPRESSION if to.compression else 1) - present,
        out,
        f"a dataset of {trajectories} trajectories of {steps} frames",
    )


def _require_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise DataError(
            f"device {device!r} can't be used here: {error}. `overtone info` lists what there is"
        ) from error


def build_system(name: str, *, grid: Sequence[float] | None = None, **settings: float) -> System:
    """A built-in system by its name, with some of its settings changed.

    Args:
        name: as in `overtone.solvers.SYSTEMS`, in any case.
        grid: cells along each axis, whole numbers; the system's own if None.
        settings: parameters of the system's class; whole numbers where its own are.
    """
    known = {key.lower(): kind for key, kind in SYSTEMS.items()}
    if name.lower() not in known:
        names = ", ".join(SYSTEMS)
        raise DataError(f"no system '{name}'; there are {names}{suggest(name, list(SYSTEMS))}")
    kind: Any = known[name.lower()]
    entries = {entry.name: entry for entry in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in entries or key == "shape":
            options = [entry for entry in entries if entry != "shape"]
            raise DataError(
                f"{name} has no setting '{key}'; it has {', '.join(options)}{suggest(key, options)}"
            )
        whole = isinstance(entries[key].default, int) and not isinstance(entries[key].default, bool)
        values[key] = _whole(value, key) if whole else value
    if grid is not None:
        axes = kind.axes
        if len(grid) != len(axes):
            raise DataError(f"grid is {tuple(grid)}; {name} has the axes {', '.join(axes)}")
        values["shape"] = tuple(_whole(n, "grid") for n in grid)
    return kind(**values)


def _whole(value: float, name: str) -> int:
    if not float(value).is_integer():
        raise DataError(f"{name} is {value}; expected a whole number")
    return int(value)


def _plan(
    variants: Sequence[System],
    out: Path,
    counts: dict[str, int],
    steps: int,
    seed: int,
    per_file: int,
) -> Iterator[DatasetFile]:
    for variant, system in enumerate(variants):
        described = [f"{key}_{getattr(system, key):g}" for key in system.parameters]
        name = file_name(system.name, "the system's name", error=DataError)
        stem = "_".join((name, *described))
        for number, split in enumerate(SPLITS):
            for index, first in enumerate(range(0, counts[split], per_file)):
                state = np.random.SeedSequence([seed, number, variant, index]).generate_state(1)
                yield DatasetFile(
                    path=out / "data" / split / f"{stem}_{index:03d}.hdf5",
                    system=system,
                    num=min(per_file, counts[split] - first),
                    steps=steps,
                    seed=int(state[0]),
                )


def _is_done(file: DatasetFile) -> bool:
    """Whether the file is there and readable; another run's file is an error."""
    if not file.path.exists():
        return False
    try:
        with Location(str(file.path)).open() as opened:
            recipe = opened.attrs.get(RECIPE)
    except DataError:
        return False  # damaged since it was written: it is made again
    if recipe != file.recipe:
        raise DataError(
            f"'{file.path}' exists and was made with other settings: {recipe}. Choose another "
            "folder, or remove that file"
        )
    return True


def _run(file: DatasetFile, storage: Storage | None, device: str) -> Iterator[None]:
    """Make one file, a frame at a time."""
    system = file.system
    domain = system.domain
    header = Header(
        name=system.name,
        shape=domain.shape,
        extent=domain.extent,
        boundaries=domain.boundaries,
        dt=domain.dt,
        axes=system.axes,
        coordinates=system.coordinates,
        parameters={key: float(getattr(system, key)) for key in system.parameters},
        attributes={RECIPE: file.recipe},
    )
    fields = [FieldSpec(entry.name, entry.order) for entry in system.fields]
    try:
        with WellWriter(file.path, header, fields, file.num, storage=storage) as writer:
            for frame in system.trajectory(file.num, file.steps, seed=file.seed, device=device):
                writer.append(frame)
                yield
    except DataError:
        raise  # of the writer, which names the file
    except OvertoneError as error:
        raise OvertoneError(f"'{file.path}' is not written: {error}") from error


__all__ = ["RECIPE", "DatasetFile", "build_system", "generate"]
