"""A run's folder: one process at a time starts a run in it, goes on with it or replaces it.

RUN/
config.json, config.yaml    the resolved configuration
metrics.jsonl, tensorboard/ curves
report.html, frames.safetensors    a page of the run, and the frames that it shows
checkpoints/                where it goes on after an interruption
best/, last/                model folders, each with a card: lowest validation error, and the end
summary.json                how it ended
.overtone.json, .overtone.lock    whose it is (`guard.folders`), and who is writing

Nothing is written before the new settings, data and model are known to work. A run that is replaced
is put aside under a hidden name and goes when its successor has finished.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from glob import escape
from pathlib import Path

from overtone.errors import ConfigError, OvertoneError
from overtone.files import remove_leftovers, replacing, restore_folder
from overtone.guard import folders
from overtone.guard.folders import MARKER, claim, is_ours, require_ours, strangers, succeed
from overtone.guard.locks import locked
from overtone.guard.names import shown
from overtone.hub import CALIBRATION, CARD, NEEDED
from overtone.train.checkpoint import FOLDER, NAMES, PREFIX
from overtone.train.config import RunConfig
from overtone.train.parallel import Ranks

KIND = "run"
CONFIG = "config.json"
KEPT = ("best", "last")
"""Model folders of a run."""
FILES = (
    CONFIG, "config.yaml", "metrics.jsonl", "summary.json", "curves.png", "curves.svg",
    "report.html", "frames.safetensors",
    "tensorboard/events.out.tfevents.*", "wandb/**", "slurm/**",
    *(f"{kept}/{name}" for kept in KEPT
      for name in (*NEEDED, CARD, CALIBRATION, MARKER)),
    *(f"{FOLDER}/{PREFIX}*/{name}" for name in NAMES), f"{FOLDER}/.{PREFIX}*/**",
)  # fmt: skip
"""All that a run writes, as `guard.folders` takes it."""


class RunFolder:
    """A folder with or without a run; those from `run_folder` may be written into.

    Args:
        path: the folder.
        stack: what ends with this process's turn, for those that have one.

    Attributes:
        path: as given.
        used: whether there is a run in it that was started.
    """

    def __init__(self, path: Path, stack: ExitStack | None = None):
        self.path, self._stack = path, stack or ExitStack()
        self.used = (is_ours(path, KIND) or _is_run(path)) and any(
            (path / name).exists() for name in (CONFIG, "metrics.jsonl", FOLDER, *KEPT)
        )

    def require_free(
        self, *, resume: bool, overwrite: bool = False, inputs: Sequence[str | Path] = ()
    ) -> None:
        """Refuse a folder in which no run may start or go on; nothing is changed.

        Args:
            resume: whether to go on with a run that is there.
            overwrite: whether to replace it.
            inputs: what the run reads.
        """
        if self.used and overwrite and not resume:
            require_ours(self.path, KIND, inputs=inputs, error=ConfigError)
        elif self.used and not resume:
            raise ConfigError(
                f"'{self.path}' holds a run already. --resume goes on with it, --overwrite "
                "replaces it, --out chooses another folder"
            )
        if not self.used and (others := strangers(self.path)):
            raise ConfigError(
                f"'{self.path}' exists and is not a run: it holds '{shown(others[0])}'; it is left "
                "alone. Choose another --out"
            )

    def begin(self, config: RunConfig, *, replace: bool) -> Path | None:
        """Make the folder this run's own, tidy it and write the configuration.

        Args:
            config: the resolved configuration.
            replace: put an earlier run aside first.

        Returns:
            Where the earlier run is kept until this one has finished.
        """
        aside = self._put_aside() if replace and self.used else None
        claim(self.path, KIND, FILES, error=ConfigError)
        for name in (MARKER, CONFIG, "config.yaml", "metrics.jsonl", "summary.json", *KEPT):
            restore_folder(self.path / name)
            remove_leftovers(self.path / name, remove=succeed, after=0)
        texts = {"config.yaml": config.to_yaml(), CONFIG: config.model_dump_json(indent=2) + "\n"}
        for name, text in texts.items():
            with replacing(self.path / name) as scratch:
                scratch.write_text(text)
        return aside

    def finish(self) -> None:
        """Remove the runs that this one replaced."""
        for path in _asides(self.path):
            if is_ours(path, KIND) or not any(folders.contents(path)):
                folders.remove(path)

    def _put_aside(self) -> Path:
        aside = self.path.parent / f".{self.path.name}-earlier-{secrets.token_hex(4)}"
        self.path.rename(aside)
        self._stack.enter_context(locked(self.path, error=ConfigError))
        return aside


@contextmanager
def run_folder(path: Path, own: Ranks) -> Iterator[RunFolder]:
    """A run's folder for as long as this process writes into it. All ranks must call it.

    Args:
        path: of the run; made if it is not there, and removed again if nothing came of it.
        own: this process among all; the first holds the lock.
    """
    with ExitStack() as stack:
        failure = ""
        if own.first:
            try:
                _restore(path)
                stack.enter_context(locked(path, error=ConfigError))
            except (OvertoneError, OSError) as error:
                failure = str(error)
        if failures := [text for text in own.gather(failure) if text]:
            raise ConfigError(failures[0])
        yield RunFolder(path, stack)


def _restore(path: Path) -> None:
    """Bring back a run that was put aside if its successor never came to be."""
    if path.exists() and not path.is_dir():
        raise ConfigError(f"'{path}' is a file; expected a folder for the run")
    asides = [] if path.exists() else [p for p in _asides(path) if is_ours(p, KIND)]
    if asides:
        asides[-1].rename(path)


def _asides(path: Path) -> list[Path]:
    """Earlier runs that are kept, the latest last."""
    path = path.absolute()
    found = path.parent.glob(f".{escape(path.name)}-earlier-{'[0-9a-f]' * 8}")
    return sorted(found, key=lambda aside: aside.stat().st_mtime)


def _is_run(path: Path) -> bool:
    """Whether a folder without our marker is a run all the same, of an older version."""
    try:
        content = json.loads((path / CONFIG).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"recipe", "train", "optimizer"} <= content.keys()
