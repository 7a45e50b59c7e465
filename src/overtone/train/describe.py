"""What a run is and how far it got, from its folder alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from overtone.config import RunConfig, load_config
from overtone.errors import ConfigError
from overtone.train.console import duration
from overtone.train.journal import METRICS, read_journal
from overtone.train.run import SUMMARY


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
        rows["validation VRMSE"] = f"{_errors(valid[-1])} at update {valid[-1]['update']:,}"
        best = min(valid, key=_score)
        rows["best"] = f"{_errors(best)} at update {best['update']:,}"
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


def _score(line: dict[str, Any]) -> float:
    """As `Validation.score`; a blow-up is null in the file."""
    if line["rollout"] is not None:
        return line["rollout"]
    errors = [float("inf") if x is None else x for x in line["vrmse"].values()]
    return sum(errors) / len(errors)


def _errors(line: dict[str, Any]) -> str:
    errors = {f"patch {patch}": error for patch, error in line["vrmse"].items()}
    cycle = {} if line["rollout"] is None else {"cycle": line["rollout"]}
    return _pairs({k: "blew up" if v is None else f"{v:.4f}" for k, v in (errors | cycle).items()})


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in values.items())
