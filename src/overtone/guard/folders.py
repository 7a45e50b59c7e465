"""Whose folder it is: only what Overtone wrote, and lists as its own, is ever replaced or removed.

A folder of ours carries a marker, `.overtone.json`, with its kind and the names of the files that
we wrote or are about to write into it. Whatever else is in there belongs to somebody else:

- A file of that name that is not listed is never replaced (`Folder.file`).
- A folder in which there is anything else is never replaced as a whole (`replacing_owned`,
  `require_ours`), nor is an input of the same command, the working directory, a home or a root.
- What has been replaced goes when its successor is complete, file by file (`succeed`).
- Nothing is written through a link that leads out of the folder (`inside`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Any

from overtone.errors import OvertoneError
from overtone.files import (
    is_scratch,
    remove_folder,
    replacing,
    replacing_files,
    replacing_folder,
)
from overtone.guard.locks import LOCK
from overtone.guard.names import shown
from overtone.version import __version__

MARKER = ".overtone.json"
VERSION = 1
NAMED = 5
"""How many of somebody else's files an error names."""


@dataclass(frozen=True)
class Folder:
    """A folder of ours, as its marker describes it.

    Attributes:
        path: where it is.
        kind: what it holds, e.g. `"run"`.
        files: names of our files, relative to it, with `/` between their parts; a part may be a
            pattern such as `update-*`, and a last part `**` is all that is below.
        settings: what its content depends on, plain data, where that must not change.
        error: raised for what is not ours.
    """

    path: Path
    kind: str
    files: tuple[str, ...] = ()
    settings: Any = None
    error: type[OvertoneError] = OvertoneError

    def file(self, name: str) -> Path:
        """Where to write a file of that name: a new one, or one of ours; it is ours from now on.

        Args:
            name: relative to the folder, with `/` between its parts.
        """
        self.require_free(name)
        marker = _marker(self.path)
        listed = marker.files if marker else ()
        if not _matches(name, listed):
            # Listed before it is written, or a kill in between would make it somebody else's.
            mark(self.path, self.kind, (*listed, escape(name)), self.settings)
        return self.path / name

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """A temporary folder whose files move into this one, all together, if all goes well.

        If one of them would replace a file that is not ours, none is moved.
        """
        with replacing_files(self.path, self._places) as scratch:
            yield scratch

    def _places(self, names: Sequence[str]) -> list[Path]:
        self.require_free(*names)
        return [self.file(name) for name in names]

    def require_free(self, *names: str) -> None:
        """Refuse names of files that are there and are not ours, or lie outside; see `file`."""
        marker = _marker(self.path)
        for name in names:
            path = inside(self.path, name, error=self.error)
            ours = marker is not None and _matches(name, marker.files)
            if not ours and (path.exists() or path.is_symlink()):
                raise self.error(
                    f"'{path}' exists and is not a file that Overtone wrote there; it is left "
                    "alone. Move it away, or choose another folder"
                )


def claim(
    path: str | Path,
    kind: str,
    files: Sequence[str] = (),
    *,
    settings: Any = None,
    error: type[OvertoneError] = OvertoneError,
) -> Folder:
    """Make a folder ours, or go on with one that is, and leave alone whatever else is in it.

    Args:
        path: the folder; made, like its marker, when there is something to list.
        kind: what it holds.
        files: names that will be written; others are added by `Folder.file`.
        settings: what the content depends on; a folder of other settings is refused.
        error: the exception to raise.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise error(f"'{path}' is a file; expected a folder")
    require_same(path, kind, settings, error=error)
    found = _marker(path)
    folder = Folder(path, kind, settings=settings, error=error)
    for name in files:
        inside(path, name, error=error)
    listed = found.files if found else ()
    if not {*files} <= {*listed}:
        mark(path, kind, (*listed, *files), settings)
    return folder


def require_same(
    path: str | Path, kind: str, settings: Any, *, error: type[OvertoneError] = OvertoneError
) -> None:
    """Refuse a folder of ours that holds something else; one that is not ours passes.

    Args:
        path: may be absent.
        kind, settings: as for `claim`.
        error: the exception to raise.
    """
    found = _marker(Path(path))
    if found is not None and found.kind != kind:
        raise error(
            f"'{path}' is a folder of Overtone's of another kind ({shown(found.kind)}, not "
            f"{kind}); it is left alone. Choose another folder"
        )
    if found is not None and found.settings != settings:
        raise error(
            f"'{path}' was made with other settings: {_differences(found.settings, settings)}. "
            "Choose another folder, or remove that one first"
        )


def mark(path: Path, kind: str, files: Iterable[str], settings: Any = None) -> None:
    """Write a folder's marker."""
    content = {"kind": kind, "version": VERSION, "overtone": __version__}
    content |= {"settings": settings, "files": sorted({*files})}
    with replacing(path / MARKER) as scratch:
        scratch.write_text(json.dumps(content, indent=1) + "\n")


def is_ours(path: str | Path, kind: str) -> bool:
    """Whether a folder carries our marker for that kind."""
    found = _marker(Path(path))
    return found is not None and found.kind == kind


def strangers(path: Path) -> list[str]:
    """What is in a folder that we did not write, relative to it, sorted; all if it isn't marked.

    Empty folders and our temporary names don't count, and links are not followed: a link is a file
    of somebody's.
    """
    marker = _marker(path)
    listed = marker.files if marker else ()
    return [name for name in contents(path) if not _matches(name, listed)]


def require_ours(
    path: str | Path,
    kind: str,
    *,
    inputs: Iterable[str | Path] = (),
    error: type[OvertoneError] = OvertoneError,
) -> None:
    """Refuse to replace a folder that is not ours alone; one that is empty or absent is free.

    Args:
        path: what is to be replaced.
        kind: what it should hold.
        inputs: what the same command reads.
        error: the exception to raise.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise error(f"'{path}' is a file; it is left alone. Choose another name")
    _refuse_protected(path, inputs, error)
    held, others = [*contents(path)], strangers(path)
    if held and not is_ours(path, kind):
        marker = _marker(path)
        what = f"a {shown(marker.kind)} of Overtone's" if marker else "not one that Overtone marked"
        raise error(
            f"'{path}' exists and is {what}; expected a {kind} folder to replace. It is left alone "
            f"(it holds {_named(held)}). Choose another name, or remove it yourself"
        )
    if others:
        raise error(
            f"'{path}' holds what Overtone did not write: {_named(others)}. Nothing was touched. "
            "Move it away, or choose another folder"
        )


@contextmanager
def replacing_owned(
    path: str | Path,
    kind: str,
    *,
    inputs: Iterable[str | Path] = (),
    carry: bool = False,
    error: type[OvertoneError] = OvertoneError,
) -> Iterator[Path]:
    """A temporary folder that takes the place of `path` if all goes well; see `replacing_folder`.

    Files that appear in the old one meanwhile move to the new one.

    Args:
        path: the folder; empty, absent, or one of ours.
        kind: what it holds.
        inputs: what the same command reads.
        carry: take along whatever else the old folder holds, instead of refusing it.
        error: the exception to raise.
    """
    path = Path(path)
    if not carry or not is_ours(path, kind):
        require_ours(path, kind, inputs=inputs, error=error)
    with replacing_folder(path, remove=succeed) as scratch:
        yield scratch
        mark(scratch, kind, map(escape, contents(scratch)))


def succeed(old: Path, new: Path) -> None:
    """Remove our files of an old folder and move what is left to its successor.

    Args:
        old: replaced, or never finished; without a marker it is one that we were still filling.
        new: its successor.
    """
    if _marker(old) is None:
        remove_folder(old, new)
        return
    for name in strangers(old):
        target = new / name
        while target.exists() or target.is_symlink():
            target = target.with_name(target.name + ".kept")
        target.parent.mkdir(parents=True, exist_ok=True)
        (old / name).rename(target)
    remove(old)


def remove(path: Path, files: Iterable[str] | None = None) -> None:
    """Remove our files of a folder, then the folders that are empty.

    Args:
        path: a folder.
        files: names and patterns of our files; those that its marker lists if None.
    """
    marker = _marker(path)
    patterns = tuple(files) if files is not None else marker.files if marker else ()
    for name in [name for name in contents(path) if _matches(name, patterns)]:
        with suppress(FileNotFoundError):
            (path / name).unlink()
    _prune(path)
    for name in (MARKER, LOCK):  # last, so that a kill in between leaves a folder that is ours
        with suppress(FileNotFoundError):
            (path / name).unlink()
    _prune(path)


def _prune(path: Path) -> None:
    """Remove a folder's empty folders, and itself if nothing is left."""
    for folder, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):  # not empty
            Path(folder).rmdir()


def inside(
    folder: str | Path, name: str | Path, *, error: type[OvertoneError] = OvertoneError
) -> Path:
    """The path of a name in a folder, if that is where it leads once all links are resolved."""
    path = Path(folder) / name
    parent, root = path.parent.resolve(), Path(folder).resolve()
    if not parent.is_relative_to(root) or path.name in ("", "..", "."):
        raise error(
            f"'{shown(path)}' leads to '{shown(parent)}', outside of '{folder}'; nothing is "
            "written there. Remove the link, or choose another folder"
        )
    return path


def _refuse_protected(path: Path, inputs: Iterable[str | Path], error: type[OvertoneError]) -> None:
    """Refuse folders whose loss nobody can have meant, and those that hold them."""
    own = path.resolve()
    places = {"the working directory": Path.cwd(), "your home": Path.home()}
    places |= {f"'{given}', which this command reads": Path(given) for given in inputs}
    for what, place in places.items():
        if place.resolve().is_relative_to(own):
            raise error(f"'{path}' is or holds {what}; it can't be replaced. Choose another folder")


def _marker(path: Path) -> Folder | None:
    """What a folder's marker says; None if there is none that can be read, so it isn't ours."""
    try:
        content = json.loads((path / MARKER).read_text())
        files = tuple(content["files"])
        if content["version"] != VERSION or not all(isinstance(name, str) for name in files):
            return None
        return Folder(path, str(content["kind"]), files, content.get("settings"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def contents(path: Path) -> Iterator[str]:
    """All files and links in a folder but the marker and the lock, relative, in order."""
    for root, folders, names in os.walk(path):
        folders.sort()
        linked = [name for name in folders if (Path(root) / name).is_symlink()]
        for name in sorted([*names, *linked]):
            relative = (Path(root) / name).relative_to(path).as_posix()
            if relative not in (MARKER, LOCK):
                yield relative


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of ours: listed, or left behind under a temporary name."""
    parts = name.split("/")
    return any(map(is_scratch, parts)) or any(_fits(parts, p.split("/")) for p in patterns)


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if pattern[-1] == "**":
        pattern = pattern[:-1]
        parts = parts[: len(pattern)] if len(parts) > len(pattern) else []
    return len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"'{shown(name)}'" for name in names[:NAMED]) + more


def _differences(old: Any, new: Any) -> str:
    """In which settings two folders differ."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return f"{shown(old)} then, {shown(new)} now"
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    return "; ".join(f"{shown(k)}: {shown(old.get(k))} then, {shown(new.get(k))} now" for k in keys)
