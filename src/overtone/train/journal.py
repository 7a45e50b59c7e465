"""Numbers of a run: one JSON object a line, and whatever shows curves.

`metrics.jsonl` is always written. A resumed run drops lines behind its checkpoint first, so that
the file reads as if nothing had happened.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overtone.atomic import replacing
from overtone.config import LogConfig
from overtone.errors import ConfigError, DataError

METRICS = "metrics.jsonl"


class Journal:
    """Writes to `metrics.jsonl`, TensorBoard and Weights & Biases.

    Args:
        folder: of the run.
        config: which of them.
        update: where the run starts; later lines are dropped.
        name: of the run.
    """

    def __init__(self, folder: Path, config: LogConfig, *, update: int, name: str):
        self._path = folder / METRICS
        _cut(self._path, update)
        self._file = self._path.open("a")
        self._board = _tensorboard(folder, update) if config.tensorboard else None
        self._wandb = _wandb(folder, config, name) if config.wandb else None

    def write(self, kind: str, update: int, values: Mapping[str, Any]) -> None:
        """Add a line.

        Args:
            kind: `"train"` or `"valid"`.
            update: how many updates were made.
            values: numbers, texts, or mappings of them.
        """
        self._file.write(json.dumps(plain({"kind": kind, "update": update, **values})) + "\n")
        self._file.flush()
        numbers = {f"{kind}/{name}": x for name, x in _flat(values) if isinstance(x, (int, float))}
        if self._board is not None:
            for name, value in numbers.items():
                self._board.add_scalar(name, value, update)
        if self._wandb is not None:
            self._wandb.log(numbers, step=update)

    def close(self) -> None:
        """Flush everything."""
        self._file.close()
        if self._board is not None:
            self._board.close()
        if self._wandb is not None:
            self._wandb.finish()


def plain(value: Any) -> Any:
    """The same with None for numbers that are not finite, which JSON does not know."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_journal(path: Path, *, strict: bool = False) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; one that was cut off by a crash is left out.

    Args:
        path: the file; without `strict` there may be none yet.
        strict: of lines that are no JSON, forgive the last one only.
    """
    texts = path.read_text().splitlines() if strict or path.exists() else []
    lines = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError as error:
            if strict and number < len(texts):
                raise DataError(f"'{path}', line {number} is not JSON: {error}") from error
    return lines


def _cut(path: Path, update: int) -> None:
    if not path.exists():
        return
    kept = [line for line in read_journal(path) if line["update"] <= update]
    with replacing(path) as scratch:
        scratch.write_text("".join(json.dumps(line) + "\n" for line in kept))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Any:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield prefix + name, value


def _tensorboard(folder: Path, update: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None  # an extra: the curves are in metrics.jsonl all the same
    return SummaryWriter(str(folder / "tensorboard"), purge_step=update)


def _wandb(folder: Path, config: LogConfig, name: str) -> Any:
    try:
        import wandb  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError(
            "log.wandb is on, but wandb is not installed: pip install 'overtone[wandb]'"
        ) from error
    return wandb.init(project=config.project, name=name, dir=str(folder), resume="allow")
