"""The studies' command line: `python -m studies run NAME | list | assess | page | package`.

`make reproduce STUDY=NAME` and `make page` call it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from overtone.cli.app import main
from overtone.errors import INTERRUPTED

app = typer.Typer(
    name="studies",
    help="What is trained and compared for the pages of results, and the pages made of it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Results = Annotated[Path, typer.Option(help="Folder with a STUDY.json for each study.")]


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Options of every command; main() reads --debug from the arguments."""


@app.command(name="list")
def list_() -> None:
    """List the studies."""
    from studies.catalogue import STUDIES

    for name, entry in STUDIES.items():
        typer.echo(f"{name:36} {entry.about}")


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="Name of a study; `list` shows them.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke run: little data, hardly any training.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for runs and reports; runs/reproduce by default.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder that gets the numbers, as STUDY.json.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Trainings and rollouts at once, one core each.")
    ] = 2,
) -> None:
    """Make data, train, evaluate and report, all of a study; run again to resume."""
    from studies.catalogue import find_study
    from studies.reproduce import reproduce

    chosen = find_study(study)
    folder = out or Path("runs") / ("reproduce-quick" if quick else "reproduce")
    try:
        reproduce(chosen.quick() if quick else chosen, folder, results=results, workers=jobs)
    except KeyboardInterrupt:
        typer.echo("interrupted; what is done is kept, and the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def assess(
    systems: Annotated[list[str], typer.Argument(help="E.g. shear-flow-mini.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="A trained model's folder or name, one for each seed; repeatable."),
    ] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option(help="A further one, or plan:FILE for the model of that plan; repeatable."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke run: few and short rollouts.")
    ] = False,
    tried: Annotated[
        bool, typer.Option("--tried", help="Controllers alone, on a set for trying things out.")
    ] = False,
    results: Results = Path("results"),
) -> None:
    """Measure how well models know their errors, and what controllers make of it.

    Models are those of one system; without --model, the packaged CSM of each is taken. The file
    assess.json gets the numbers of the systems that were measured, and keeps the others.
    """
    from studies import assess as study

    size = study.QUICK if quick else None
    for name in systems:
        if tried:
            study.tried(name, results, size=size, tell=typer.echo)
            continue
        study.run(name, model or (), results, size=size, schedules=schedule or (),
            tell=typer.echo)  # fmt: skip


@app.command()
def residuals(results: Results = Path("results")) -> None:
    """Measure how far packaged models are from the laws of shear flow, by all readings of them."""
    from studies.residuals import run

    typer.echo(f"wrote {run(results)}")


@app.command()
def cost(results: Results = Path("results")) -> None:
    """Count tokens and FLOPs of models of the paper's sizes on its grids."""
    from studies.cost import run

    typer.echo(f"wrote {run(results)}")


@app.command()
def calibrate(
    names: Annotated[
        list[str] | None, typer.Argument(help="Packaged models; all of several patches if none.")
    ] = None,
) -> None:
    """Calibrate packaged models on the validation split of their own data, in their folders."""
    from studies.package import calibrate_packaged

    for name, path in calibrate_packaged(names or ()):
        typer.echo(f"{name}: wrote {path}")


@app.command()
def page(
    pages: Annotated[list[Path], typer.Argument(help="Markdown files with marked blocks.")],
    results: Results = Path("results"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a block is stale.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Folder that gets the page's pictures.")
    ] = None,
) -> None:
    """Render the marked tables and numbers of PAGES from results."""
    from studies.page.render import update_page

    stale = 0
    for path in pages:
        made = update_page(path, results, write=not check)
        for block in made.stale if check else ():
            typer.echo(f"{path}:{block.line}: '{block}' is stale")
        said = "stale" if check else "changed"
        typer.echo(
            f"{path}: {made.blocks} blocks, {len(made.stale)} {said}, {len(made.waiting)} not run "
            "yet"
        )
        stale += len(made.stale)
    if figures is not None and not check:
        from studies.page.figures import draw_pictures

        for picture in draw_pictures(results, figures):
            typer.echo(f"wrote {picture}")
    if check and stale:
        raise typer.Exit(1)


@app.command()
def package(
    runs: Annotated[Path, typer.Option(help="Folder of the studies' runs.")] = Path(
        "runs/reproduce"
    ),
    results: Results = Path("results"),
    study: Annotated[list[str] | None, typer.Option(help="Only models of this study.")] = None,
) -> None:
    """Take trained models into the package, with cards, logs and proofs (results/models.json)."""
    from overtone.models.storage import PACKAGED
    from overtone.version import machine
    from studies.archive import Archive
    from studies.package import MODELS
    from studies.package import package as take

    table = results / "models.json"
    proofs = json.loads(table.read_text())["models"] if table.exists() else {}
    for study_name, kinds in MODELS.items():
        if study and study_name not in study:
            continue
        numbers = results / f"{study_name}.json"
        if not numbers.exists():
            typer.echo(f"{study_name} is not packaged: first make reproduce STUDY={study_name}")
            continue
        found = Archive.load(numbers).comparisons[study_name]
        for kind in kinds:
            name = f"{study_name}-{kind}"
            proofs[name] = take(runs / "runs" / name, found, kind, name, PACKAGED)
            typer.echo(f"{name} {proofs[name]['vrmse']}")
    content = {"command": "python -m studies package", "machine": machine(), "models": proofs}
    table.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")


if __name__ == "__main__":
    main(app)
