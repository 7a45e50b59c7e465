"""The command line's `reproduce` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overtone.errors import INTERRUPTED


def reproduce(
    study: Annotated[str, typer.Argument(help="Name of a study; `list` shows them.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke run: little data, hardly any training.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for runs and reports; runs/reproduce by default.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder that gets a copy of the numbers.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Trainings and rollouts at once, one core each.")
    ] = 2,
) -> None:
    """Make data, train, evaluate and report, all of a study; run again to resume."""
    from overtone.reproduce import STUDIES, find_study
    from overtone.reproduce import reproduce as run

    if study == "list":
        for name, entry in STUDIES.items():
            typer.echo(f"{name:36} {entry.about}")
        return
    chosen = find_study(study)
    folder = out or Path("runs") / ("reproduce-quick" if quick else "reproduce")
    try:
        run(chosen.quick() if quick else chosen, folder, results=results, workers=jobs)
    except KeyboardInterrupt:
        typer.echo("interrupted; what is done is kept, and the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
