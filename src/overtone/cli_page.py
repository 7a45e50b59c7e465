"""The command line's `page`: tables and numbers of Markdown pages, from results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def page(
    pages: Annotated[list[Path], typer.Argument(help="Markdown files with marked blocks.")],
    results: Annotated[
        Path, typer.Option(help="Folder with the COMPARISON.json of `overtone reproduce`.")
    ] = Path("results"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a block is stale.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Folder that gets the page's pictures.")
    ] = None,
) -> None:
    """Render the marked tables and numbers of PAGES from results."""
    from overtone.page.render import update_page

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
        from overtone.page.figures import draw_pictures

        for picture in draw_pictures(results, figures):
            typer.echo(f"wrote {picture}")
    if check and stale:
        raise typer.Exit(1)
