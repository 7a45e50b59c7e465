"""The command line's `report`: figures and a page from what evaluations left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from overtone.cli.evaluate import announce, named
from overtone.errors import DataError
from overtone.guard.limits import require_writable
from overtone.guard.names import shown_lines
from overtone.progress import Terminal

if TYPE_CHECKING:
    from overtone.report.combine import Part


def report(
    evaluations: Annotated[
        list[str],
        typer.Argument(
            help="Folder of an evaluation, with results.json, [NAME=]FOLDER; several of the same "
            "data are put side by side."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the report; the evaluation's by default, `comparison` of several."
        ),
    ] = None,
    animate: Annotated[str, typer.Option(help="gif, mp4 or none.")] = "gif",
    curves: Annotated[
        list[Path] | None,
        typer.Option(help="A training run's folder or metrics.jsonl; may be given several times."),
    ] = None,
) -> None:
    """Draw figures, animation and report.html of an evaluation, or of several side by side."""
    from overtone.report import write_report
    from overtone.report.combine import side_by_side
    from overtone.report.verdict import verdict

    folders = [Path(path) for _, path in map(named, evaluations)]
    for folder in folders:
        if not (folder / "results.json").is_file():
            raise DataError(
                f"'{folder}' has no results.json; give a folder that `overtone evaluate` wrote"
            )
    place = out or (folders[0] if len(folders) == 1 else Path("comparison"))
    if len(folders) > 1 and place.resolve() in [folder.resolve() for folder in folders]:
        raise DataError(
            f"'{place}' is one of the evaluations, which a report of several would replace; choose "
            "another folder with --out"
        )
    require_writable(place)
    console = Terminal()
    results, samples = side_by_side(_parts(evaluations, folders, console))
    runs = {run.parent.name if run.is_file() else run.name: run for run in curves or []}
    page = write_report(results, samples, place, curves=runs, animation=animate)
    for line in verdict(results):
        console.print(Text(shown_lines(line)), soft_wrap=True)
    announce(console, page.parent, [page.name], animate)


def _parts(texts: Sequence[str], folders: Sequence[Path], console: Console) -> list[Part]:
    """The evaluations in some folders, each with the name that is given or can be found for it."""
    from overtone.evaluate.results import RESULTS, Results
    from overtone.evaluate.samples import SAMPLES, Samples
    from overtone.report.combine import Part, part_names

    parts = []
    for text, folder, name in zip(texts, folders, part_names(folders), strict=True):
        frames = folder / SAMPLES
        if not frames.exists():
            of = f" in '{folder}'" if len(folders) > 1 else ""
            said = f"no {SAMPLES}{of}: the report has no pictures of its fields"
            console.print(Text(shown_lines(said)), soft_wrap=True)
        samples = Samples.load(frames) if frames.exists() else None
        parts.append(Part(named(text)[0] or name, Results.load(folder / RESULTS), samples))
    return parts
