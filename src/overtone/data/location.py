"""Where the files of a dataset are: a Well folder, a folder of files or one file; local or remote.

A path with a scheme (`hf://`, `s3://`, `https://`, `memory://`) goes through fsspec, which is
imported only then. A `Location` is plain data, so that a dataset can be sent to worker processes;
every process opens its own files. Files lie in a folder for each split; `split_counts` says how
many trajectories each gets when a dataset is made.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO

import h5py

from overtone.data import remote
from overtone.data.layout import Layout, read_layout
from overtone.data.safety import inspect
from overtone.errors import DataError, suggest
from overtone.guard.names import shown

SUFFIXES = (".hdf5", ".h5")
SPLITS = ("train", "valid", "test")
STATS = "stats.yaml"
DATASET = "dataset"
"""What the marker of a folder says that we made; see `guard.folders`."""
MAX_STATS_BYTES = 16_000_000
VERSIONS = ("size", "ETag", "mtime", "LastModified", "Last-Modified", "last_modified", "created")
"""What file systems of fsspec tell about the version of a file, each some of them."""
SIGNATURE = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class Location:
    """A file or folder, local or remote.

    Args:
        path: a path, or a URL for fsspec.
    """

    path: str

    @property
    def is_remote(self) -> bool:
        """Whether fsspec is needed."""
        return "://" in self.path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    def child(self, *parts: str) -> Location:
        """A location below this one."""
        if self.is_remote:
            return Location("/".join((self.path.rstrip("/"), *parts)))
        return Location(str(Path(self.path, *parts)))

    def parent(self) -> Location:
        """The folder that this is in."""
        if self.is_remote:
            return Location(self.path.rstrip("/").rpartition("/")[0])
        return Location(str(Path(self.path).absolute().parent))

    def is_file(self) -> bool:
        """Whether there is a file here."""
        if not self.is_remote:
            return Path(self.path).is_file()
        return remote.is_file(self.path)

    def is_folder(self) -> bool:
        """Whether there is a folder here."""
        if self.is_remote:
            return bool(remote.ask(self.path, "isdir"))
        return Path(self.path).is_dir()

    def entries(self) -> list[str]:
        """Sorted names of what is in this folder."""
        if self.is_remote:
            found = remote.ask(self.path, "ls", detail=False)
            return sorted(PurePosixPath(entry.rstrip("/")).name for entry in found)
        return sorted(entry.name for entry in Path(self.path).iterdir())

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes of the file's beginning."""
        with self.stream() as stream:
            return stream.read(limit)

    def stream(self) -> IO[bytes]:
        """The file's bytes; the caller closes it."""
        if self.is_remote:
            return remote.RemoteFile(self.path)
        return Path(self.path).open("rb")

    def open(self) -> h5py.File:
        """Open the HDF5 file for reading and refuse what is unsafe."""
        try:
            if self.is_remote:
                file = h5py.File(self.stream(), "r")
            else:
                # Finished files never change, and many network file systems can't lock.
                file = h5py.File(self.path, "r", locking=False)
        except OSError as error:
            raise DataError(self._unreadable(error)) from error
        try:
            inspect(file, self.path)
        except DataError:
            file.close()
            raise
        except (OSError, RuntimeError, KeyError) as error:
            file.close()
            raise DataError(self._unreadable(error)) from error
        return file

    def stamp(self, file: h5py.File) -> tuple[int | str, ...]:
        """Size and modification time of an open file, here or as its server tells them."""
        if not self.is_remote:
            return local_stamp(file.id.get_vfd_handle())
        info = remote.ask(self.path, "info")
        return tuple(str(info[key]) for key in VERSIONS if info.get(key) is not None)

    def layout(self) -> Layout:
        """The verified metadata of the HDF5 file."""
        with self.open() as file:
            try:
                return replace(read_layout(file, self.path), stamp=self.stamp(file))
            except DataError:
                raise
            except (OSError, RuntimeError, KeyError) as error:
                raise DataError(self._unreadable(error)) from error
            except (ValueError, TypeError, OverflowError, MemoryError) as error:
                raise DataError(
                    f"'{self.path}' is not laid out as The Well's files are: {shown(error)!r}"
                ) from error

    def _unreadable(self, error: Exception) -> str:
        if not self.is_file():
            return f"'{self.path}' does not exist or is not a file"
        try:
            start = self.read(64)
        except OSError:
            return f"'{self.path}' can't be read: {error}"
        if not start:
            return f"'{self.path}' is an empty file; copy or download it again"
        if not start.startswith(SIGNATURE):
            looks = start[:24].decode("ascii", errors="replace").strip()
            return (
                f"'{self.path}' is not an HDF5 file: it begins with {looks!r}. It may be a failed "
                "download; get it again"
            )
        return f"'{self.path}' is truncated or damaged: {error}. Copy or download it again"


def local_stamp(descriptor: int) -> tuple[int, int]:
    """Size and modification time of an open local file."""
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def find_files(path: str | Path, split: str) -> list[Location]:
    """The HDF5 files of a split, in order of their names.

    Args:
        path: a Well folder (`data/train/*.hdf5` below it), a folder of HDF5 files or one file. For
            the last two the split means nothing.
        split: e.g. `"train"`.
    """
    place = Location(str(path))
    if place.is_file():
        return [place]
    if not place.is_folder():
        raise DataError(
            f"'{path}' does not exist; expected a folder with data/{split}/*.hdf5, a folder of "
            "HDF5 files or one such file"
        )
    if files := hdf5_files(place):
        return files
    splits = find_splits(place)
    if split not in splits:
        raise DataError(f"'{path}' has no split '{split}'{_hint(split, list(splits))}")
    if not (files := hdf5_files(splits[split])):
        raise DataError(
            f"split '{split}' of '{path}' is empty: no *.hdf5 in '{splits[split].path}'"
        )
    return files


def find_splits(place: Location) -> dict[str, Location]:
    """The folders of the splits of a Well folder, train, valid and test first."""
    data = place.child("data")
    if not data.is_folder():
        return {}
    names = [name for name in data.entries() if data.child(name).is_folder()]
    names.sort(key=lambda name: (SPLITS.index(name) if name in SPLITS else len(SPLITS), name))
    return {name: data.child(name) for name in names}


def find_stats(path: str | Path) -> Location | None:
    """The `stats.yaml` of a Well folder, also from a split's folder or a file inside it."""
    place = Location(str(path))
    candidates = [place, place.parent()] if place.name.endswith(SUFFIXES) else [place]
    for _ in range(3):
        if place.name == "data":
            candidates.append(place.parent())
            break
        place = place.parent()
    found = (folder.child(STATS) for folder in candidates)
    return next((stats for stats in found if stats.is_file()), None)


def hdf5_files(place: Location) -> list[Location]:
    """The HDF5 files of a folder, in order of their names; hidden ones are unfinished writes."""
    return [
        place.child(name)
        for name in place.entries()
        if name.endswith(SUFFIXES) and not name.startswith(".")
    ]


def split_counts(num: int, fractions: Sequence[float]) -> dict[str, int]:
    """Numbers of trajectories that add up to `num`.

    Every split with a fraction above zero gets at least one while there are enough; the rest are
    shared by largest remainder.

    Args:
        num: trajectories in all.
        fractions: of train, valid and test; they add up to 1.
    """
    honest = len(fractions) == len(SPLITS) and all(0 <= fraction <= 1 for fraction in fractions)
    if not honest or abs(sum(fractions) - 1) > 1e-6:
        raise DataError(
            f"splits are {tuple(fractions)}; expected three fractions for {', '.join(SPLITS)}, "
            "from 0 to 1, that add up to 1"
        )
    wanted = [i for i, fraction in enumerate(fractions) if fraction > 0]
    if num < len(wanted):
        raise DataError(
            f"{num} trajectories can't fill {len(wanted)} splits; use more, or give a split the "
            "fraction 0, e.g. --splits 1,0,0 to train on all of them"
        )
    counts = [max(int(fraction > 0), math.floor(num * fraction)) for fraction in fractions]
    while sum(counts) > num:
        counts[counts.index(max(counts))] -= 1
    while sum(counts) < num:
        short = [num * fraction - n for fraction, n in zip(fractions, counts, strict=True)]
        counts[short.index(max(short))] += 1
    return dict(zip(SPLITS, counts, strict=True))


def _hint(split: str, splits: list[str]) -> str:
    if not splits:
        return f"; expected HDF5 files in it or in its data/{split}"
    return f"; it has {', '.join(splits)}" + suggest(split, splits)
