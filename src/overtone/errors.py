"""What can go wrong by the user's hand, as named exceptions.

Each message says what was given, what was expected and what to do. The command line prints them
as one line and exits with code 2.
"""

from __future__ import annotations

import difflib
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


class ConfigError(OvertoneError):
    """A training run's configuration is not what it should be."""


class TrainingDiverged(OvertoneError):
    """A loss or a gradient turned non-finite; the last good checkpoint is kept."""


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
