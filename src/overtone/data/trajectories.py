"""Simulations of any origin on one domain, understood and not yet read.

`Trajectories` say what they are and where each fact comes from, can be indexed and trained on as
they are, and become a Well folder (`save`). Several files, or several arrays, are several runs of
one simulation: they must agree in fields, grid, dt, extent and boundaries, and may differ in their
number of frames.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, overload

import numpy as np

from overtone.data.facts import Fact, Given
from overtone.data.importing import blocks, write_folder
from overtone.data.layout import FieldSpec
from overtone.data.source import Source, understand
from overtone.data.variables import Arrays
from overtone.data.writer import Storage
from overtone.domain import SAME
from overtone.errors import DataError
from overtone.guard.names import shown
from overtone.progress import Tick

MAX_OPEN = 16
"""Files that are open at a time."""
Opener = Callable[[], AbstractContextManager[Arrays]]


@dataclass(frozen=True)
class Run:
    """One trajectory: which of the files it is in, which of that file's, and its frames."""

    file: int
    sample: int
    steps: int


class Trajectories(Sequence[np.ndarray]):
    """Simulations on one domain, read as they are asked for. Built by `from_files` and the like.

    As a sequence, these are arrays `(T, C, *S)` of float32, one for each trajectory.

    Args:
        name: of the dataset.
        openers: what opens each file.
        names: of the files, for errors.
        given: what the user says.
        paths: where the files are; empty for what is in memory.

    Attributes:
        domain: what they live on.
        fields: in The Well's order.
        axes: names of the spatial axes.
        facts: layout, dt, extent of each axis and boundaries, each with its origin.
        runs: where each trajectory is.
    """

    def __init__(
        self,
        name: str,
        openers: Sequence[Opener],
        names: Sequence[str],
        given: Given,
        paths: Sequence[Path] = (),
    ):
        self.name, self.names, self.paths = name, list(names), tuple(paths)
        self._openers, self._given = tuple(openers), given
        self._opened: OrderedDict[tuple[int, int], tuple[Source, ExitStack]] = OrderedDict()
        self._stamps = [_stamp(path) for path in self.paths]
        first = self._source(0)
        self.runs: list[Run] = []
        self.fields, self.axes, self.facts = first.fields, first.axes, first.facts
        self.left_out, self.dtypes = first.left_out, first.dtypes
        self.domain = first.domain
        for file in range(len(openers)):
            source = self._source(file)
            _require_same(source, first)
            self.runs += [Run(file, sample, source.steps) for sample in range(source.num)]

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process, which opens files itself."""
        return self.__dict__ | {"_opened": OrderedDict()}

    def __len__(self) -> int:
        return len(self.runs)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...

    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...

    def __getitem__(self, index: int | slice) -> np.ndarray | list[np.ndarray]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        # A copy in any case: what is trained on does not change with the user's arrays.
        return np.array(self.read(index, slice(None)), dtype=np.float32)

    def __repr__(self) -> str:
        rows = [f"  {what}: {value} ({origin})" for what, value, origin in self.understood()]
        return "\n".join([f"Trajectories '{shown(self.name)}'", *rows])

    def read(self, trajectory: int, steps: slice) -> np.ndarray:
        """Frames of a trajectory, `(T, C, *S)`, floating-point."""
        run = self.runs[trajectory]
        return self._source(run.file).read(run.sample, steps)

    def place(self, trajectory: int) -> str:
        """Which one a trajectory is, in words."""
        run = self.runs[trajectory]
        return f"trajectory {run.sample} of '{self.names[run.file]}'"

    def understood(self) -> list[tuple[str, str, str]]:
        """What was understood: what it is about, its value and where that comes from."""
        steps = sorted({run.steps for run in self.runs})
        files = f"{len(self.names)} files" if len(self.names) > 1 else f"'{self.names[0]}'"
        layout = self.facts["layout"]
        frames = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        rows = [
            ("trajectories", str(len(self.runs)), files),
            ("frames", frames, layout.origin),
            ("grid", " x ".join(map(str, self.domain.shape)), layout.origin),
            ("layout", layout.value, layout.origin),
            ("fields", ", ".join(self.domain.fields), "option" if self._given.fields else "file"),
            ("dt", f"{self.domain.dt:g}", self.facts["dt"].origin),
        ]
        for axis, length in zip(self.axes, self.domain.extent, strict=True):
            rows.append((f"extent {axis}", f"{length:g}", self.facts[f"extent {axis}"].origin))
        rows.append(("boundaries", self._sides(), self.facts["boundaries"].origin))
        rows.append(("values", f"{', '.join(self.dtypes)}, stored as float32", "file"))
        if self.left_out:
            rows.append(("left out", ", ".join(self.left_out), "no field: --dataset, --fields"))
        return [(what, shown(value), shown(origin)) for what, value, origin in rows]

    def _sides(self) -> str:
        return ", ".join(
            f"{axis} {sides[0] if sides[0] is sides[1] else '/'.join(sides)}"
            for axis, sides in zip(self.axes, self.domain.boundaries, strict=True)
        )

    def drop_nan(self, *, progress: Tick | None = None) -> list[str]:
        """Leave out trajectories with values that are NaN, infinite or missing; say which.

        All values are read for it.

        Args:
            progress: called with trajectories done, all of them, and what is going on.
        """
        places: list[str] = []
        kept: list[Run] = []
        tell = progress or _nothing
        for number, run in enumerate(self.runs):
            if all(np.isfinite(block).all() for _, block in blocks(self, [number])):
                kept.append(run)
            else:
                places.append(self.place(number))
            tell(number + 1, len(self.runs), "looking for NaN")
        if not kept:
            raise DataError(
                f"all {len(self)} trajectories have values that are NaN, infinite or missing; "
                "nothing is left. Mend the data first"
            )
        self.runs = kept
        return places

    def save(
        self,
        out: str | Path,
        *,
        splits: Sequence[float] = (0.8, 0.1, 0.1),
        per_file: int = 8,
        seed: int | None = 0,
        storage: Storage | None = None,
        progress: Tick | None = None,
    ) -> Path:
        """Write a Well folder with train, valid and test splits and statistics.

        Args:
            out: the folder; absent or empty. It appears when all of it is written. An interrupted
                import of files goes on where it was when it is asked for again.
            splits: fractions of train, valid and test, by trajectory.
            per_file: trajectories of a file, at most.
            seed: of the order in which trajectories are given to the splits; None keeps theirs.
            storage: how values are stored.
            progress: called with trajectories done, all of them, and what is going on.
        """
        return write_folder(
            self,
            Path(out),
            splits=splits,
            per_file=per_file,
            seed=seed,
            storage=storage or Storage(),
            progress=progress or _nothing,
        )

    def close(self) -> None:
        """Close all files; reading opens them again."""
        for _, stack in self._opened.values():
            stack.close()
        self._opened.clear()

    def stamp(self) -> list[Any]:
        """What tells these files from others, and from later versions of themselves."""
        found = [[str(path.absolute()), _stamp(path)] for path in self.paths]
        return [found, repr(self._given), self.domain.to_dict(), repr(self.runs)]

    def _source(self, file: int) -> Source:
        """An open file. Another process, such as a worker, opens its own."""
        key = (os.getpid(), file)
        if key in self._opened:
            self._opened.move_to_end(key)
            return self._opened[key][0]
        if self.paths and _stamp(self.paths[file]) != self._stamps[file]:
            raise DataError(f"'{self.paths[file]}' has changed since it was first read; try again")
        with ExitStack() as stack:
            arrays = stack.enter_context(self._openers[file]())
            source = understand(arrays, self.names[file], self._given)
            self._opened[key] = (source, stack.pop_all())
        own = [other for other in self._opened if other[0] == key[0]]
        if len(own) > MAX_OPEN:
            self._opened.pop(own[0])[1].close()
        return source


def _nothing(done: int, total: int, what: str) -> None:
    """A `Tick` for nobody."""


def _stamp(path: Path) -> list[int]:
    if path.is_dir():  # of a zarr store, what describes it
        files = [f for f in (path / "zarr.json", path / ".zgroup", path / ".zarray") if f.exists()]
        return [n for file in files for n in _stamp(file)]
    try:
        status = path.stat()
    except FileNotFoundError:
        return []  # an error when it is opened
    return [status.st_size, status.st_mtime_ns]


def _require_same(source: Source, first: Source) -> None:
    """Refuse a file that does not go with the first one."""
    for what in ("fields", "shape"):
        mine, others = getattr(source, what), getattr(first, what)
        if mine != others:
            name = "grid" if what == "shape" else what
            raise DataError(
                f"'{source.name}' has {name} {_plain(mine)}, '{first.name}' has {_plain(others)}; "
                f"one dataset has one {name}. Import them apart, or leave some of them out"
            )
    for what, fact in source.facts.items():
        other = first.facts[what]
        if what == "layout" or _alike(fact, other):
            continue
        option = what.partition(" ")[0]
        raise DataError(
            f"'{source.name}' has {what} {_plain(fact.value)} ({fact.origin}), '{first.name}' has "
            f"{_plain(other.value)} ({other.origin}); one dataset has one {option}. Import them "
            f"apart, or give --{option} if that is what all of them have"
        )


def _alike(one: Fact, other: Fact) -> bool:
    if isinstance(one.value, float):
        return abs(one.value - other.value) <= SAME * abs(other.value)
    return one.value == other.value


def _plain(value: Any) -> str:
    if not isinstance(value, tuple):
        return f"{value:g}"
    entries = cast("tuple[Any, ...]", value)
    if entries and isinstance(entries[0], FieldSpec):
        return ", ".join(f"{spec.name}:{spec.order}" for spec in entries)
    if entries and isinstance(entries[0], tuple):
        return ", ".join("/".join(map(str, sides)) for sides in entries)
    return "x".join(map(str, entries))


__all__ = ["Trajectories"]
