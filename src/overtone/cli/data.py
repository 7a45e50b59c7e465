"""The command line's `data` part: each command is a typed function.

Everything that needs h5py is imported inside the commands, so that `overtone --help` stays quick.
What comes from files and users is printed as `Text`, in which rich looks for no markup, and
escaped, so that a terminal obeys none of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from overtone.errors import DataError
from overtone.guard.names import shown
from overtone.progress import Listing, Terminal, one_bar

if TYPE_CHECKING:
    from rich.console import Console

    from overtone.data import Trajectories
    from overtone.data.layout import Layout
    from overtone.domain import Sides

ORDERS = ("scalar", "vector", "tensor")
MAX_VARIANTS = 10_000
"""Most combinations of settings in one command."""

app = typer.Typer(
    name="data",
    help="Datasets in The Well's format: check, describe, show, import and generate them.",
    no_args_is_help=True,
)

Folder = Annotated[str, typer.Argument(help="A Well folder, a folder of HDF5 files or one file.")]
Out = Annotated[Path, typer.Option(help="Folder of the new dataset.")]
PerFile = Annotated[int, typer.Option(min=1, help="Trajectories of a file, at most.")]
Splits = Annotated[str, typer.Option(help="Fractions of train, valid and test.")]
Compress = Annotated[bool, typer.Option("--compress", help="Compress values (gzip).")]
Checksum = Annotated[bool, typer.Option("--checksum", help="Store a checksum for each chunk.")]


@app.command()
def check(path: Folder) -> None:
    """Read every file in full and list what is wrong; exit code 1 if there are errors."""
    from overtone.data import check as run

    console = Terminal()
    with one_bar("checking", console) as tick:
        findings = run(path, progress=tick)
    for finding in findings:
        colour = "red" if finding.severity == "error" else "yellow"
        about = f"  {shown(finding.file)}\n    {shown(finding.message)}"
        console.print(Text.assemble((finding.severity, colour), about), soft_wrap=True)
    errors = sum(finding.severity == "error" for finding in findings)
    console.print(f"{errors} errors, {len(findings) - errors} warnings")
    if errors:
        raise typer.Exit(1)


@app.command()
def stats(
    path: Folder,
    split: Annotated[str, typer.Option(help="The split to describe.")] = "train",
) -> None:
    """Compute stats.yaml in one pass over the training split."""
    from overtone.data import write_stats

    with one_bar("reading", Terminal()) as tick:
        target = write_stats(path, split, progress=tick)
    _say(f"wrote {target}")


@app.command()
def show(
    path: Folder,
    out: Annotated[Path, typer.Option(help="The picture's file.")] = Path("frames.png"),
    split: Annotated[str, typer.Option(help="The split to draw.")] = "train",
    trajectory: Annotated[int, typer.Option(min=0, help="The trajectory to draw.")] = 0,
    frames: Annotated[int, typer.Option(min=1, help="How many of its frames.")] = 4,
) -> None:
    """Print what a dataset is and draw a few frames of it."""
    from overtone.report.figures.data import picture

    console = Terminal()
    for table in tables(path):
        console.print(table)
        console.print()
    picture(path, out, split=split, trajectory=trajectory, frames=frames)
    _say(f"wrote {out}")


@app.command(name="import")
def import_(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Files (.npy, .npz, .zarr, .nc, .hdf5, .h5) or folders of runs."),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of the new dataset.")] = None,
    fields: Annotated[
        str, typer.Option(help="The channels, e.g. density,velocity:1 or velocity:1=u+v.")
    ] = "",
    dataset: Annotated[
        list[str] | None, typer.Option(help="An array to use, e.g. /tensor; may be repeated.")
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            help="Axes: n trajectories, t frames, c channels, x y z cells, e.g. ntxyc; or pdebench."
        ),
    ] = "",
    dt: Annotated[float | None, typer.Option(help="Time between frames; the file's or 1.")] = None,
    boundaries: Annotated[
        str,
        typer.Option(help="periodic, wall or open for all axes, or e.g. periodic,wall/open."),
    ] = "",
    extent: Annotated[str, typer.Option(help="Length of each axis, e.g. 1x2.")] = "",
    name: Annotated[str, typer.Option(help="Of the dataset; the file's by default.")] = "",
    splits: Splits = "0.8,0.1,0.1",
    per_file: PerFile = 8,
    seed: Annotated[int, typer.Option(help="Of the split; -1 keeps the order.")] = 0,
    compress: Compress = False,
    checksum: Checksum = False,
    drop_nan_trajectories: Annotated[
        bool, typer.Option("--drop-nan-trajectories", help="Leave out those with NaN.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="The picture's file; OUT-frames.png by default.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say and draw what would be imported, no more.")
    ] = False,
) -> None:
    """Turn simulations of your own into a Well folder; continues an interrupted import."""
    from overtone.data import Storage, from_files
    from overtone.domain import parse_boundaries

    if out is None and not dry_run:
        raise DataError("there is no --out; expected the folder of the new dataset, or --dry-run")
    data = from_files(
        sources,
        fields=fields or None,
        dataset=dataset or (),
        layout=layout or None,
        dt=dt,
        extent=_numbers(extent, "x", "extent") if extent else None,
        boundaries=parse_boundaries(boundaries) if boundaries else None,
        name=name or None,
    )
    console, target = Terminal(), out or Path(sources[0].stem)
    shot = picture or target.with_name(f"{target.name}-frames.png")
    _show_understood(data, sources[0], shot, console)
    if out is None or dry_run:
        _say("nothing else is written (--dry-run)")
        return
    shares = _numbers(splits, ",", "splits")
    if drop_nan_trajectories:
        with one_bar("looking for NaN", console) as tick:
            dropped = data.drop_nan(progress=tick)
        _say(f"left out {len(dropped)} trajectories with NaN: {_listed(dropped) or 'none'}")
    try:
        with one_bar("importing", console) as tick:
            data.save(
                out,
                splits=shares,
                per_file=per_file,
                seed=None if seed < 0 else seed,
                storage=Storage(compression="gzip" if compress else None, fletcher32=checksum),
                progress=tick,
            )
    except KeyboardInterrupt:
        _say("the same command, run again, goes on from here")
        raise
    _say(f"wrote {out}; next: overtone data check {out}")


def _show_understood(data: Trajectories, source: Path, shot: Path, console: Console) -> None:
    """Print and draw what is about to be imported."""
    from overtone.report.figures.data import draw

    header = ("what", "value", "from")
    console.print(Listing(data.understood(), header, f"{source}", texts=(0, 1, 2)))
    draw(data, shot)
    _say(f"wrote {shot}")


@app.command()
def generate(
    system: Annotated[str, typer.Argument(help="Name of a built-in system, e.g. shear_flow.")],
    out: Out,
    grid: Annotated[str, typer.Option(help="Cells along each axis, e.g. 64x128.")] = "",
    trajectories: Annotated[int, typer.Option(min=1, help="Over all splits.")] = 24,
    steps: Annotated[int, typer.Option(min=1, help="Frames of each trajectory.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the initial conditions.")] = 0,
    per_file: PerFile = 8,
    splits: Splits = "0.8,0.1,0.1",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting, e.g. reynolds=1e4; several values (1e4,1e5) make variants."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to solve, e.g. cuda.")] = "cpu",
    compress: Compress = False,
    checksum: Checksum = False,
) -> None:
    """Simulate a built-in system and write a Well folder; continues an interrupted run."""
    from overtone.data import Storage
    from overtone.solvers.datasets import build_system
    from overtone.solvers.datasets import generate as run

    shape = _numbers(grid, "x", "grid") if grid else None
    chosen = _settings(settings or [])
    if (variants := math.prod(map(len, chosen.values()))) > MAX_VARIANTS:
        raise DataError(f"--set makes {variants} variants; expected at most {MAX_VARIANTS}")
    systems = [
        build_system(system, grid=shape, **dict(zip(chosen, values, strict=True)))
        for values in product(*chosen.values())
    ]
    with one_bar("simulating", Terminal()) as tick:
        run(
            systems,
            out,
            trajectories=trajectories,
            steps=steps,
            seed=seed,
            per_file=per_file,
            splits=_numbers(splits, ",", "splits"),
            storage=Storage(compression="gzip" if compress else None, fletcher32=checksum),
            device=device,
            progress=tick,
        )
    _say(f"wrote {out}; next: overtone data show {out}")


def _say(text: str) -> None:
    Terminal().print(shown(text), soft_wrap=True)


def _numbers(text: str, separator: str, name: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(separator)]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise DataError(f"{name} is {text!r}; expected numbers with '{separator}' between them")
    return numbers


def _settings(entries: list[str]) -> dict[str, list[float]]:
    """Settings and their values, from `name=value` or `name=value,value`."""
    settings = {}
    for entry in entries:
        name, equals, values = entry.partition("=")
        if not equals or not name:
            raise DataError(f"--set is {entry!r}; expected name=value, e.g. reynolds=1e4")
        settings[name.strip()] = _numbers(values, ",", name.strip())
    return settings


def tables(path: str | Path) -> tuple[Listing, Listing]:
    """A table of what the dataset is, and one of its splits; only metadata are read."""
    from overtone.data.location import Location, find_files, find_splits, find_stats, hdf5_files
    from overtone.guard.limits import readable

    place = Location(str(path))
    splits = find_splits(place) if place.is_folder() and not hdf5_files(place) else {}
    groups = {name: hdf5_files(folder) for name, folder in splits.items()}
    if not any(groups.values()):
        groups = {"(no splits)": find_files(path, "train")}
    layouts = {name: [file.layout() for file in files] for name, files in groups.items()}
    first = next(layout for found in layouts.values() for layout in found)
    facts = _facts(first, [x for found in layouts.values() for x in found])
    facts["statistics"] = "stats.yaml" if find_stats(path) else "none"
    rows = [
        (
            name,
            str(len(found)),
            str(sum(layout.num_trajectories for layout in found)),
            " or ".join(map(str, sorted({layout.num_steps for layout in found}))),
            readable(sum(map(_num_bytes, found))),
        )
        for name, found in layouts.items()
    ]
    header = ("split", "files", "trajectories", "frames each", "values")
    about = Listing(list(facts.items()), title=first.dataset_name)
    return about, Listing(rows, header, "splits", texts=(0,))


def _facts(first: Layout, layouts: Sequence[Layout]) -> dict[str, str]:
    parameters = {
        name: sorted({x.parameters[name] for x in layouts if name in x.parameters}, key=_rank)
        for name in first.parameters
    }
    return {
        "fields": ", ".join(f"{spec.name} ({ORDERS[spec.order]})" for spec in first.fields),
        "channels": f"{len(first.channels)}: {', '.join(first.channels)}",
        "grid": " x ".join(map(str, first.shape)) + f" ({first.grid_type})",
        "extent": ", ".join(dict.fromkeys(_size(layout) for layout in layouts)),
        "boundaries": ", ".join(
            f"{axis}: {_side_names(sides)}"
            for axis, sides in zip(first.axes, first.boundaries, strict=True)
        ),
        "dt": _listed(sorted({layout.dt for layout in layouts})),
        "parameters": "; ".join(f"{k}: {_listed(v)}" for k, v in parameters.items()) or "none",
        "scalars": ", ".join(spec.name for spec in first.scalars) or "none",
    }


def _size(layout: Layout) -> str:
    return " x ".join(f"{length:g}" for length in layout.extent)


def _rank(value: float | str) -> tuple[bool, Any]:
    """Numbers by size, then texts."""
    return isinstance(value, str), value


def _listed(values: Sequence[Any]) -> str:
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return (
        ", ".join(texts) if len(texts) <= 4 else f"{texts[0]} … {texts[-1]} ({len(texts)} values)"
    )


def _side_names(sides: Sides) -> str:
    return str(sides[0]) if sides[0] is sides[1] else f"{sides[0]} below, {sides[1]} above"


def _num_bytes(layout: Layout) -> int:
    size = layout.num_trajectories, layout.num_steps, layout.shape
    return sum(4 * math.prod(spec.stored_shape(*size)) for spec in layout.fields)
