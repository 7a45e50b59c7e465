"""The numbers of a run: written while it trains, and read again to say how far it got.

`metrics.jsonl` is always written, one JSON object a line; whatever shows curves may get the same
numbers. A resumed run drops lines behind its checkpoint first, so that the file reads as if nothing
had happened. What `overtone info RUN` prints is made of that file and the run's configuration.

JSON knows no infinity, so an error that blew up is null. So is the rollout of a run that makes
none, which `valid.rollout_steps` tells apart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overtone.errors import ConfigError, DataError
from overtone.files import replacing
from overtone.train.config import LogConfig, RunConfig, load_config
from overtone.train.console import duration

METRICS = "metrics.jsonl"
SUMMARY = "summary.json"


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
        line = plain({"kind": kind, "update": update, **values})
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
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
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
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
        scratch.write_text(
            "".join(json.dumps(plain(line), allow_nan=False) + "\n" for line in kept)
        )


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


def describe(folder: str | Path) -> dict[str, str]:
    """Names and values for `overtone info RUN`, in the order to print them."""
    folder = Path(folder)
    if not (folder / "config.json").is_file() or not (folder / METRICS).is_file():
        raise ConfigError(
            f"'{folder}' is not a run: it lacks config.json or {METRICS}. Expected the --out of "
            "`overtone train`"
        )
    config, lines = load_config(folder / "config.json"), read_journal(folder / METRICS)
    train = [line for line in lines if line["kind"] == "train"]
    valid = [line for line in lines if line["kind"] == "valid"]
    rows = {"recipe": config.recipe, **_setting(config), "status": _status(folder)}
    if train:
        last = train[-1]
        rows["progress"] = f"{last['update']:,} of {config.num_updates:,} updates"
        rows["time"] = duration(last["seconds"])
        rows["PFLOP"] = f"{last['flops'] / 1e15:.3g}"
        rows["loss"] = f"{train[0]['loss']:.4g} at first, {last['loss']:.4g} now"
    if valid:
        rolls = config.valid.rollout_steps > 0
        rows["validation VRMSE"] = _errors(valid[-1], rolls)
        best = min(valid, key=lambda line: _score(line, rolls))
        blew_up = math.isinf(_score(best, rolls))
        rows["best"] = "none: every validation blew up" if blew_up else _errors(best, rolls)
        rows["updates of each patch"] = _pairs(valid[-1]["patches"])
    rows["checkpoints"] = ", ".join(_checkpoints(folder)) or "none"
    return rows


def _setting(config: RunConfig) -> dict[str, str]:
    model, data = config.model, config.data
    patches = ", ".join(map(str, model.patches))
    source = data.path or f"generated {data.generate.system if data.generate else ''}"
    return {
        "model": f"{model.name}, {model.tokenizer}, {model.size}, patches {patches}, "
        f"{model.context} frames",
        "data": source,
        "batch": f"{config.train.batch} windows",
        "optimizer": f"{config.optimizer.kind}, lr {config.optimizer.lr:g}, "
        f"{config.optimizer.schedule}",
    }


def _status(folder: Path) -> str:
    try:
        return str(json.loads((folder / SUMMARY).read_text())["status"])
    except (OSError, json.JSONDecodeError, KeyError):
        return "running, or ended without notice"


def _checkpoints(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("checkpoints/*/COMPLETE"))


def _score(line: dict[str, Any], rolls: bool) -> float:
    """As `Validation.score`; infinite if a rollout was made and is null in the file."""
    if rolls or line["rollout"] is not None:
        return _number(line["rollout"])
    return sum(map(_number, line["vrmse"].values())) / len(line["vrmse"])


def _errors(line: dict[str, Any], rolls: bool) -> str:
    errors = {f"patch {patch}": error for patch, error in line["vrmse"].items()}
    if rolls or line["rollout"] is not None:
        errors["cycle"] = line["rollout"]
    said = _pairs({k: "blew up" if v is None else f"{v:.4f}" for k, v in errors.items()})
    return f"{said} at update {line['update']:,}"


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in values.items())
