"""The command `overtone export`: from a model to programs that need no Overtone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overtone.errors import ExportError, PatchError
from overtone.progress import Listing, Terminal, one_bar


def export(
    model: Annotated[str, typer.Argument(help="Folder of a model or run, or a packaged name.")],
    out: Annotated[Path, typer.Option(help="Folder for the programs.")],
    patch: Annotated[
        list[str] | None,
        typer.Option(help="8, or 4x8 by axis; several times for several. All trained by default."),
    ] = None,
    format: Annotated[
        list[str] | None,
        typer.Option(help="onnx (by default), pt2 or aoti; several times, or with commas."),
    ] = None,
    grid: Annotated[
        str, typer.Option(help="Number of cells, 128 or 128x256; the model's own by default.")
    ] = "",
    unit: Annotated[
        list[str] | None, typer.Option(help="Unit of a field for the manifest, pressure=Pa.")
    ] = None,
    allow_untrained: Annotated[
        bool, typer.Option("--allow-untrained", help="Try patches that were not trained for.")
    ] = False,
) -> None:
    """Write a model as programs: ONNX, torch.export or AOTInductor, one for each patch."""
    from overtone.export import export as run
    from overtone.export.formats import require_format

    formats = [name for text in format or ["onnx"] for name in text.split(",")]
    for name in formats:
        require_format(name)
    patches = [_sizes(text, "patch") for text in patch] if patch else None
    units = dict(_unit(text) for text in unit or [])
    console = Terminal()
    with one_bar("exporting", console) as tick:
        found = run(
            model,
            out,
            patches=patches,
            formats=formats,
            grid=_sizes(grid, "grid") if grid else None,
            units=units,
            allow_untrained=allow_untrained,
            progress=tick,
        )
    rows = [
        (str(out / program["file"]), f"{program['difference']:.1e}")
        for program in found["programs"]
    ]
    console.print(Listing(rows, header=("program", "difference from the model")))
    console.print(f"wrote {out}; its README.md says how to run them", soft_wrap=True)


def _sizes(text: str, name: str) -> int | tuple[int, ...]:
    """One number for all axes, or one for each with x between them."""
    try:
        sizes = tuple(int(size) for size in text.split("x"))
    except ValueError:
        raise PatchError(f"{name} is '{text}'; expected numbers such as 8, or 4x8") from None
    return sizes[0] if len(sizes) == 1 else sizes


def _unit(text: str) -> tuple[str, str]:
    field, equals, unit = text.partition("=")
    if not equals or not field or not unit:
        raise ExportError(f"unit is '{text}'; expected FIELD=UNIT, such as pressure=Pa")
    return field, unit
