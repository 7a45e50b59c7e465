"""The command line's `train` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overtone.errors import INTERRUPTED, ConfigError


def train(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe; `list` shows them.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings, e.g. train.batch=8 model.size=7m.")
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
    from overtone.train.config import change, parse_pairs, read_file
    from overtone.train.recipes import RECIPES
    from overtone.train.recipes import recipe as find

    if recipe == "list":
        typer.echo("\n".join(RECIPES))
        return
    changes = read_file(config) if config else {}
    resolved = change(find(recipe), changes | parse_pairs(settings or []))
    if show:
        typer.echo(resolved.to_yaml().rstrip())
        return
    folder = out or Path("runs") / recipe
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
