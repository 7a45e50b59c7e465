"""What can go wrong by the user's hand, as named exceptions.

Each message says what was given, what was expected and what to do. The command line prints them
as one line and exits with code 2.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence

PARTIAL = 3
"""Exit code of a command that wrote what there was, which is less than it was asked for."""
INTERRUPTED = 130
"""Exit code of a command that was interrupted, as a shell has it for Ctrl-C."""


class OvertoneError(ValueError):
    """A mistake in what was given: an argument, a window, a file."""


class DomainError(OvertoneError):
    """A domain or window that contradicts itself or the model."""


class PatchError(OvertoneError):
    """A patch or shift that the model, the grid or the schedule can't take."""


class CheckpointError(OvertoneError):
    """A saved model that is missing, incomplete, altered or of the wrong kind."""


class DataError(OvertoneError):
    """A dataset, file or array that is missing, damaged, unsafe or not laid out as expected."""


class RolloutDiverged(OvertoneError):
    """A rollout produced a frame that is not finite or leaves its bound.

    Attributes:
        step: the rollout step, from 0, whose frame was refused.
        num_valid: how many frames were yielded before it (the valid prefix's length).
    """

    def __init__(self, message: str, *, step: int, num_valid: int):
        super().__init__(message)
        self.step = step
        self.num_valid = num_valid


class ExportError(OvertoneError):
    """A model that can't be exported, or whose exported program is not the model."""


class ConfigError(OvertoneError):
    """A training run's configuration is not what it should be."""


class TrainingDiverged(OvertoneError):
    """A loss or a gradient turned non-finite; the last good checkpoint is kept."""


class TrainingStopped(OvertoneError):
    """The system ended a run: memory, disk or a process was lost; the last checkpoint is kept."""


def require_one_of(
    value: object,
    known: Iterable[str],
    name: str,
    error: type[OvertoneError] = OvertoneError,
) -> None:
    """Refuse a value that is not a known one, with the nearest of those that are.

    Args:
        value: what was given.
        known: what there is to choose from.
        name: what the user calls it.
        error: the exception to raise.
    """
    known = list(known)
    if value not in known:
        hint = suggest(str(value), known)
        raise error(f"{name} is {value!r}; expected one of {', '.join(known)}{hint}")


def suggest(name: str, known: Sequence[str]) -> str:
    """` (did you mean 'x'?)` for a name that is close to a known one, else nothing."""
    lowered = {entry.lower(): entry for entry in known}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    return f" (did you mean '{lowered[close[0]]}'?)" if close else ""


ADVICE = {
    errno.ENOSPC: "make room there, or choose another folder",
    errno.EDQUOT: "make room there, or choose another folder",
    errno.EFBIG: "files may not be that large there; choose another folder, or see `ulimit -f`",
    errno.EROFS: "choose a folder that you may write to",
    errno.EACCES: "choose one that you may read and write",
    errno.EPERM: "choose one that you may read and write",
    errno.EISDIR: "expected a file",
    errno.ENOTDIR: "expected a folder",
    errno.ENOENT: "check the path",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "allow more with `ulimit -n 4096`",
    errno.ENFILE: "close other programs",
}
"""What to do when the system refuses, by its number."""
NO_MEMORY = ("allocate memory", "DefaultCPUAllocator", "out of memory")
"""How torch says that there is not enough memory, in the text of a RuntimeError."""
NO_SPACE = ("No space left on device", "StorageFull", "File too large", "Disk quota exceeded")
"""How libraries say that the disk is full, each with an exception of its own."""


def refusal(error: BaseException) -> str:
    """What the system refused, and what to do; empty for what is not its doing.

    Args:
        error: whatever was raised.
    """
    text = str(error).split("\n")[0]
    if isinstance(error, OSError):
        names = [f"'{name}'" for name in (error.filename, error.filename2) if name is not None]
        said = ": ".join([error.strerror or text, *names])
        advice = ADVICE.get(error.errno or 0)
        return f"{said}; {advice}" if advice else said
    if any(words in text for words in NO_SPACE):
        return f"{text}; {ADVICE[errno.ENOSPC]}"
    if isinstance(error, MemoryError) or any(words in text for words in NO_MEMORY):
        return (
            f"there is not enough memory{': ' if text else ''}{text}; ask for a smaller batch, "
            "grid or model, or for fewer frames"
        )
    if isinstance(error, RecursionError):
        return "a file or a setting is nested too deeply to be read; make it flatter"
    return ""
