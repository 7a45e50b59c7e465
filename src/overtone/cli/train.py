"""The command line's `train` command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overtone.errors import INTERRUPTED, ConfigError

if TYPE_CHECKING:
    from overtone.train.config import RunConfig


def train(
    recipe: Annotated[
        str, typer.Argument(help="Name of a recipe; `mine` suits any --data, `list` shows others.")
    ],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings, e.g. train.batch=8 model.size=7m.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Well folder to train on; the same as data.path=FOLDER.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Budget of training; the same as train.max_minutes. 15 for `mine`."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file with settings; pairs override it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/RECIPE if not given.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest complete checkpoint.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove an earlier run of that folder.")
    ] = False,
    allow_other_data: Annotated[
        bool, typer.Option("--allow-other-data", help="Resume on other data than before.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the resolved configuration and stop.")
    ] = False,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Submit it as a SLURM job (needs overtone[slurm]).")
    ] = False,
) -> None:
    """Train a model by a recipe; Ctrl-C saves, --resume goes on."""
    from overtone.train.recipes import MINE, RECIPES
    from overtone.train.settings import parse_pairs, read_file

    if recipe == "list":
        typer.echo("\n".join([*RECIPES, MINE]))
        return
    folder = out or Path("runs") / recipe
    named = {"data.path": data, "train.max_minutes": minutes}
    changes = read_file(config) if config else {}
    changes |= {key: value for key, value in named.items() if value is not None}
    changes |= parse_pairs(settings or [])
    resolved = _resolve(recipe, changes, folder if resume else None, aside=show)
    if show:
        typer.echo(resolved.to_yaml().rstrip())
        return
    if slurm:
        from overtone.train.slurm import submit

        typer.echo(f"submitted job {submit(resolved, folder)}; it writes to {folder}")
        return
    from overtone.train.run import train as run

    if allow_other_data and not resume:
        raise ConfigError("--allow-other-data is for a run that goes on; add --resume")
    outcome = run(
        resolved, folder, resume=resume, overwrite=overwrite, allow_other_data=allow_other_data
    )
    if outcome.status == "interrupted":
        typer.echo(f"interrupted; the same command with --resume goes on from {folder}", err=True)
        raise typer.Exit(INTERRUPTED)


def _resolve(
    recipe: str, changes: Mapping[str, Any], earlier: Path | None, *, aside: bool
) -> RunConfig:
    """The settings of a recipe with changes; what was chosen by the data is explained.

    Args:
        recipe: its name.
        changes: dotted key -> value.
        earlier: folder of a run that goes on, if there is one.
        aside: explain it on the stream of errors, since the output is to be a file of settings.
    """
    from overtone.train.recipes import MINE, for_data
    from overtone.train.recipes import recipe as find
    from overtone.train.settings import change, load_config
    from overtone.train.suit import MINUTES, explain, survey_folder

    if recipe != MINE:
        return change(find(recipe), changes)
    if earlier is not None and (earlier / "config.json").is_file():
        # What was chosen by another machine, or by data that has grown since, stays as it was.
        return change(load_config(earlier / "config.json"), changes)
    folder = changes.get("data.path")
    if folder is None:
        return find(recipe)  # which says what is missing
    if "train.updates_per_patch" in changes:
        changes = {"train.updates": None, **changes}
    minutes = None if "train.updates" in changes else MINUTES
    resolved = change(for_data(folder, minutes=minutes), changes)
    if os.environ.get("RANK", "0") == "0":
        typer.echo("\n".join(explain(resolved, survey_folder(folder))), err=aside)
    return resolved
