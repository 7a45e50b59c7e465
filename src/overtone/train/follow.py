"""The page of a run is kept up to date while it trains: seldom enough not to slow it down.

Whoever draws lies above training in the picture of imports, and is loaded by its name, as models of
other kinds are. Drawing takes at most a share of `SHARE` of the time, after the first page, and
once more when the run has ended. What goes wrong with it is said once, and never ends a training.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from overtone.errors import refusal
from overtone.train.validate import Glimpse

Draw = Callable[[Path, Glimpse | None, bool], object]
"""Draws the run of a folder, with the frames of its last validation; whether it goes on."""

SHARE = 0.02
"""Largest share of a run's time that goes into drawing."""


def draw_page(folder: Path, glimpse: Glimpse | None, running: bool) -> None:
    """Write the page; see `overtone.report.run.write_run_report`."""
    module = import_module("overtone.report.run")
    module.write_run_report(folder, glimpse, running=running)


class Follower:
    """Has a run drawn, on the first rank.

    Args:
        draw: what draws; None for nothing.
        folder: of the run.
        clock: seconds from some beginning.
    """

    def __init__(
        self,
        draw: Draw | None,
        folder: Path | None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._draw, self._folder, self._clock = draw, folder, clock
        self._next = -float("inf")
        self._glimpse: Glimpse | None = None
        self._failed = False

    def validated(self, glimpse: Glimpse | None) -> str:
        """Draw after a validation, unless it is too early; what to say if that went wrong."""
        self._glimpse = glimpse
        return self._drawn(running=True) if self._clock() >= self._next else ""

    def ended(self) -> str:
        """Draw what the run ended with; what to say if that went wrong."""
        return self._drawn(running=False)

    def _drawn(self, *, running: bool) -> str:
        if self._draw is None or self._folder is None:
            return ""
        began = self._clock()
        try:
            self._draw(self._folder, self._glimpse, running)
        except Exception as error:  # a picture is never worth a training
            said = "" if self._failed else _reason(error)
            self._failed = True
            return said
        finally:
            now = self._clock()
            self._next = now + (now - began) * (1 / SHARE - 1)
        return ""


def _reason(error: Exception) -> str:
    text = refusal(error) or f"{type(error).__name__}: {error}"
    return f"the page of the run was not drawn, and the run goes on without it: {text}"
