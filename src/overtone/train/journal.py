"""The numbers of a run: written while it trains, and read again to say how far it got.

`metrics.jsonl` is always written, one JSON object a line; whatever shows curves may get the same
numbers. A resumed run drops lines behind its checkpoint first, so that the file reads as if nothing
had happened; where its settings or data differ from those before, it says so in a line of its own.
What `overtone info RUN` prints is made of that file and the run's configuration. A line that can't
be read is passed over with a warning, and stays where it is.

JSON knows no infinity, so an error that blew up is null. So is the rollout of a validation that
makes none, which `rollout_steps` of its line tells apart.
"""

from __future__ import annotations

import json
import math
import shlex
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from overtone.baselines.registry import BASELINES
from overtone.errors import ConfigError
from overtone.files import replacing
from overtone.train.budget import Budget
from overtone.train.config import LogConfig, RunConfig
from overtone.train.console import duration
from overtone.train.settings import load_config

Record = Mapping[str, Any]
"""Plain data by name."""
Log = Callable[[str, int, Record], None]
"""Takes the kind of a line, the number of updates so far and the numbers; see `Journal.write`."""

METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
RUNNING = "running, or ended without notice"
"""What is known of a run that has no summary."""
WHOLE = ["1"]
"""The patches of a model that has none: each cell is one."""
TABLES = ("losses", "vrmse", "patches")
"""Entries of a line that hold a number for each patch."""
NUMBERS = ("loss", "lr", "rollout", "rollout_steps", "seconds", "cpu_seconds", "flops")
"""Entries that are a number, or null."""
NEEDED = {"train": ("loss", "seconds", "flops"), "valid": ("vrmse", "rollout", "patches")}
"""Entries of lines by which a run is described."""


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
            kind: `"train"` or `"valid"`; `"resume"` where a run went on otherwise than before.
            update: how many updates were made.
            values: numbers, texts, or mappings of them.
        """
        line = plain({"kind": kind, "update": update, **values})
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()
        if kind == "resume":
            return
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


class History:
    """The numbers of a run in memory: lines as `metrics.jsonl` has them. It draws itself.

    Args:
        records: of an earlier part of the run.

    Attributes:
        records: one mapping for each line, each with `kind` and `update`.
        status: how the run ended, as soon as it has.
    """

    def __init__(self, records: Sequence[dict[str, Any]] = ()):
        self.records = list(records)
        self.status = ""
        self._logs: list[Log] = []

    def add(self, kind: str, update: int, values: Record) -> None:
        """Take in a line; see `Journal.write`."""
        self.records.append(plain({"kind": kind, "update": update, **values}))
        for log in self._logs:
            log(kind, update, values)

    def follow(self, log: Log) -> None:
        """Let something else have the lines to come, too."""
        self._logs.append(log)

    @property
    def train(self) -> list[dict[str, Any]]:
        """Losses and learning rates."""
        return [record for record in self.records if record["kind"] == "train"]

    @property
    def valid(self) -> list[dict[str, Any]]:
        """Validations."""
        return [record for record in self.records if record["kind"] == "valid"]

    def plot(self) -> Any:
        """The training curves, as a figure of matplotlib."""
        # Figures lie above training: they are loaded by their name, as models of other kinds are.
        return import_module("overtone.report.figures.curves").training_curves(self.records)

    def __repr__(self) -> str:
        """How far it got, in a line."""
        update = max((record["update"] for record in self.records), default=0)
        said = f"{self.status or 'running'}, {update:,} updates, {len(self.valid)} validations"
        scored = [r for r in self.valid if math.isfinite(_score(r, r["rollout_steps"]))]
        if scored:
            best = min(scored, key=lambda record: _score(record, record["rollout_steps"]))
            said += f", best {_score(best, best['rollout_steps']):.4f} at {best['update']:,}"
        return f"History({said})"

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows; nothing before the first number."""
        return self.plot()._repr_png_() if self.train or self.valid else None


def plain(value: Any) -> Any:
    """The same with None for numbers that are not finite, which JSON does not know."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_journal(
    path: Path, need: Mapping[str, Collection[str]] | None = None
) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`, each with at least `kind` and `update`.

    One that can't be read is left out, with a warning; the last one without, if a crash has cut it
    off or somebody is just writing it.

    Args:
        path: the file; there may be none yet.
        need: kind of a line -> entries that it must have.
    """
    lines, damaged = [], []
    texts = path.read_bytes().split(b"\n") if path.exists() else []
    for number, text in enumerate(texts, start=1):
        try:
            lines += [_parsed(text, need or {})] if text.strip() else []
        except (ValueError, RecursionError) as error:
            damaged += [f"line {number}: {error}"] if number < len(texts) else []
    if damaged:
        warnings.warn(
            f"'{path}': {len(damaged)} of {len(texts) - 1} lines can't be read and are left out "
            f"({damaged[0]})",
            stacklevel=2,
        )
    return lines


def _parsed(text: bytes, need: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """The content of a line; ValueError says what is wrong with it."""
    line = json.loads(text)
    if not isinstance(line, dict):
        raise ValueError(f"{type(line).__name__} instead of a mapping")
    kind, update = line.get("kind"), line.get("update")
    if not isinstance(kind, str) or type(update) is not int or update < 0:
        raise ValueError("it has no kind, or no number of an update")
    if missing := [name for name in need.get(kind, ()) if name not in line]:
        raise ValueError(f"it lacks {missing[0]}")
    numbers = {name: line[name] for name in NUMBERS if name in line}
    for table in (line[name] for name in TABLES if name in line):
        if not isinstance(table, dict) or not table:
            raise ValueError("it has no numbers of patches where they belong")
        numbers |= table
    for name, value in numbers.items():
        if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
            raise ValueError(f"{name} is no number")
    return line


def _cut(path: Path, update: int) -> None:
    """Drop lines of later updates, and what a crash has cut off; all others stay as they are."""
    read_journal(path)  # warns of those that can't be read
    if path.exists():
        *texts, _ = path.read_bytes().split(b"\n")
        with replacing(path) as scratch:
            kept = (text + b"\n" for text in texts if not _is_later(text, update))
            scratch.write_bytes(b"".join(kept))


def _is_later(text: bytes, update: int) -> bool:
    try:
        return _parsed(text, {})["update"] > update
    except (ValueError, RecursionError):
        return False


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


def require_loggers(config: LogConfig) -> None:
    """Refuse what can't be logged to, before anything is written."""
    if config.wandb and find_spec("wandb") is None:
        raise ConfigError(
            "log.wandb is on, but wandb is not installed: pip install 'overtone[wandb]'"
        )


def _wandb(folder: Path, config: LogConfig, name: str) -> Any:
    import wandb  # pyright: ignore[reportMissingImports]

    return wandb.init(project=config.project, name=name, dir=str(folder), resume="allow")


def history(path: Path) -> dict[str, list[float | None]]:
    """The validations of a run, from its `metrics.jsonl`: updates and scores, null for a blow-up.

    A score is that of `Validation.score`.
    """
    valid = [line for line in read_journal(path, NEEDED) if line["kind"] == "valid"]
    steps = int(any(line["rollout"] is not None for line in valid))
    scores = [plain(_score(line, steps)) for line in valid]
    return {"updates": [line["update"] for line in valid], "scores": scores}


def score_of(line: dict[str, Any]) -> float:
    """The score of a validation's line, infinite if it blew up; see `Validation.score`."""
    return _score(line, 0)


def longer_run(folder: Path) -> str:
    """The command that goes on with a run for as long again; empty if its settings can't be read.

    Args:
        folder: of the run, as the user would write it.
    """
    try:
        config = load_config(folder / "config.json")
    except ConfigError:  # of a model, not of a run
        return ""
    budget = {"updates": config.num_updates} | {
        name: value
        for name, value in config.train.model_dump().items()
        if name.startswith("max_") and value is not None
    }
    settings = [f"train.{name}={2 * value}" for name, value in budget.items()]
    files = ["--config", str(folder / "config.json"), "--out", str(folder), "--resume"]
    return shlex.join(["overtone", "train", config.recipe, *settings, *files])


def yardsticks_of(line: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """What a validation says of what needs no training: name -> `vrmse` and `rollout`.

    Lines of older versions have none, and what is no number is left out.
    """
    found = line.get("yardsticks")
    return {
        name: {key: _finite(errors.get(key)) for key in ("vrmse", "rollout")}
        for name, errors in (found.items() if isinstance(found, dict) else ())
        if isinstance(errors, dict) and _finite(errors.get("vrmse")) is not None
    }


def to_beat(yardsticks: Mapping[str, Mapping[str, float | None]]) -> str:
    """The same in words, e.g. `persistence: 0.0282, rollout 0.1623`."""
    return "; ".join(
        f"{name}: {_number(errors['vrmse']):.4f}"
        + ("" if errors["rollout"] is None else f", rollout {errors['rollout']:.4f}")
        for name, errors in yardsticks.items()
    )


def _finite(value: Any) -> float | None:
    known = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if known else None


def describe(folder: str | Path) -> dict[str, str]:
    """Names and values for `overtone info RUN`, in the order to print them."""
    folder = Path(folder)
    if not (folder / "config.json").is_file() or not (folder / METRICS).is_file():
        raise ConfigError(
            f"'{folder}' is not a run: it lacks config.json or {METRICS}. Expected the --out of "
            "`overtone train`"
        )
    config, lines = load_config(folder / "config.json"), read_journal(folder / METRICS, NEEDED)
    train = [line for line in lines if line["kind"] == "train"]
    valid = [line for line in lines if line["kind"] == "valid"]
    rows = {"recipe": config.recipe, **_setting(config), "status": _status(folder)}
    if train:
        last = train[-1]
        rows["progress"] = f"{last['update']:,} updates; the budget is {Budget(config)}"
        rows["time"] = duration(last["seconds"] or 0)
        rows["PFLOP"] = f"{(last['flops'] or 0) / 1e15:.3g}"
        rows["loss"] = f"{_number(train[0]['loss']):.4g} at first, {_number(last['loss']):.4g} now"
    if valid:
        steps = config.valid.rollout_steps
        rows["validation VRMSE"] = _errors(valid[-1], steps)
        best = min(valid, key=lambda line: _score(line, steps))
        blew_up = math.isinf(_score(best, steps))
        rows["best"] = "none: every validation blew up" if blew_up else _errors(best, steps)
        if bare := yardsticks_of(valid[-1]):
            rows["to beat"] = to_beat(bare)
        if list(valid[-1]["patches"]) != WHOLE:
            rows["updates of each patch"] = _pairs(valid[-1]["patches"])
    if resumed := [line for line in lines if line["kind"] == "resume"]:
        rows["resumed"] = "; ".join(_resumed(line) for line in resumed)
    rows["checkpoints"] = ", ".join(_checkpoints(folder)) or "none"
    return rows


def _resumed(line: dict[str, Any]) -> str:
    """What a resumed run changed."""
    changed = line.get("changed")
    names = ", ".join(map(str, changed)) if isinstance(changed, dict) else ""
    return f"at update {line['update']:,} with other {names or 'settings'}"


def _setting(config: RunConfig) -> dict[str, str]:
    model, data = config.model, config.data
    kind = f"{model.name}, {model.size}"
    if model.name not in BASELINES:
        patches = ", ".join(map(str, model.patches))
        kind = f"{model.name}, {model.tokenizer}, {model.size}, patches {patches}"
    source = data.path or data.given or f"generated {data.generate and data.generate.system}"
    return {
        "model": f"{kind}, {model.context} frames",
        "data": source,
        "batch": f"{config.train.batch} windows",
        "optimizer": f"{config.optimizer.kind}, lr {config.optimizer.lr:g}, "
        f"{config.optimizer.schedule}",
    }


def _status(folder: Path) -> str:
    try:
        return str(json.loads((folder / SUMMARY).read_text())["status"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return RUNNING


def _checkpoints(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("checkpoints/*/COMPLETE"))


def _score(line: dict[str, Any], steps: int) -> float:
    """As `Validation.score`; infinite if a rollout was made and is null in the file."""
    if _rolls(line, steps):
        return _number(line["rollout"])
    return sum(map(_number, line["vrmse"].values())) / len(line["vrmse"])


def _rolls(line: dict[str, Any], steps: int) -> bool:
    """Whether a validation made rollouts; lines of older versions don't say, the run's steps do."""
    return line["rollout"] is not None or bool(line.get("rollout_steps", steps))


def _errors(line: dict[str, Any], steps: int) -> str:
    step, rolled = "patch {}", "cycle"
    if list(line["vrmse"]) == WHOLE:
        step, rolled = "next step", "rollout"
    errors = {step.format(patch): error for patch, error in line["vrmse"].items()}
    if _rolls(line, steps):
        errors[rolled] = line["rollout"]
    said = _pairs({k: "blew up" if v is None else f"{v:.4f}" for k, v in errors.items()})
    return f"{said} at update {line['update']:,}"


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in values.items())
