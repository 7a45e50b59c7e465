"""The command line's `report`: draw an evaluation's figures and page again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from overtone.errors import DataError


def report(
    results_dir: Annotated[
        Path, typer.Argument(help="Folder of an evaluation, with results.json.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the report; the evaluation's by default.")
    ] = None,
    animate: Annotated[str, typer.Option(help="gif, mp4 or none.")] = "gif",
    curves: Annotated[
        list[Path] | None,
        typer.Option(help="A training run's folder or metrics.jsonl; may be given several times."),
    ] = None,
) -> None:
    """Draw the figures, the animation and report.html from an evaluation's results.json."""
    from overtone.report import write_report
    from overtone.results import Results
    from overtone.samples import Samples

    if not (results_dir / "results.json").is_file():
        raise DataError(
            f"'{results_dir}' has no results.json; give the folder that `overtone evaluate` wrote"
        )
    results = Results.load(results_dir / "results.json")
    frames = results_dir / "samples.safetensors"
    samples = Samples.load(frames) if frames.exists() else None
    runs = {run.parent.name if run.is_file() else run.name: run for run in curves or []}
    console = Console()
    if samples is None:
        console.print("no samples.safetensors: the report has no pictures of fields")
    page = write_report(results, samples, out or results_dir, curves=runs, animation=animate)
    console.print(f"wrote {page}", soft_wrap=True)
