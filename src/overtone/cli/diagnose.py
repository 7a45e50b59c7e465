"""The command `overtone diagnose`: is there a grid artifact in what a model predicted?"""

from __future__ import annotations

from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overtone.errors import OvertoneError, PatchError
from overtone.guard.limits import require_writable, require_writable_file
from overtone.progress import Terminal, one_bar

if TYPE_CHECKING:
    from overtone.evaluate.diagnose import Case

Layout = Annotated[
    str,
    typer.Option(
        help="Axes of arrays: n samples, t frames, c channels, x y z cells; ntcxy by default."
    ),
]


def diagnose(
    pred: Annotated[
        str, typer.Argument(help="The prediction: Well folder or file, .npy, .npz, .zarr or .nc.")
    ],
    truth: Annotated[
        str, typer.Argument(help="The truth, of any of these kinds; none with --model.")
    ] = "",
    model: Annotated[
        str, typer.Option(help="A model that judges the prediction where there is no truth.")
    ] = "",
    patch: Annotated[
        str, typer.Option(help="Period to test: 16, 4x8 by axis, or auto to find it.")
    ] = "auto",
    field: Annotated[str, typer.Option(help="The one field to look at; all by default.")] = "",
    boundary: Annotated[
        str, typer.Option(help="periodic, open or wall for all axes, or e.g. periodic,wall.")
    ] = "",
    layout: Layout = "",
    truth_layout: Annotated[
        str, typer.Option(help="The same of the truth, if it differs from --layout.")
    ] = "",
    split: Annotated[
        str, typer.Option(help="Of Well folders; test, or the only one that there is, by default.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for diagnosis.png and diagnosis.svg.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="File for the result as JSON.")] = None,
    fail_on_artifact: Annotated[
        bool, typer.Option("--fail-on-artifact", help="Exit with code 1 if there is an artifact.")
    ] = False,
) -> None:
    """Say whether a prediction has a grid artifact, of which period and how strong."""
    if bool(truth) == bool(model):
        raise OvertoneError(
            "the prediction is compared with a TRUTH, or judged by a --model where there is none: "
            "give one of the two"
        )
    if model:
        _judge(model, pred, layout=layout, split=split, json=json)
        return
    period = _patch(patch)
    if json is not None:
        require_writable_file(json)
    if out is not None:
        require_writable(out)
    console = Terminal()
    layouts = layout, truth_layout or layout
    case = _compare((pred, truth), layouts, split, period, field, boundary, console)
    console.print(case.diagnosis.sentence, soft_wrap=True)
    for note in case.diagnosis.notes:
        console.print(f"note: {note}", soft_wrap=True)
    written = []
    if json is not None:
        case.diagnosis.save(json)
        written.append(json)
    if out is not None:
        from overtone.report.figures.diagnosis import draw

        written += draw(case, out)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True)
    if fail_on_artifact and case.diagnosis.found:
        raise typer.Exit(1)


def _compare(
    paths: tuple[str, str],
    layouts: tuple[str, str],
    split: str,
    patch: int | tuple[int, ...] | None,
    field: str,
    boundary: str,
    console: Terminal,
) -> Case:
    """The artifact in a prediction beside its truth.

    Args:
        paths: of the prediction and the truth.
        layouts: of their arrays.
        split: of Well folders; empty for the usual.
        patch: period to test; None to find it.
        field, boundary: as the command has them.
        console: where progress is shown.
    """
    from overtone.data.frames import choose_split, is_well, open_frames
    from overtone.domain import parse_boundaries
    from overtone.evaluate.diagnose import diagnose as run

    chosen = split or (choose_split(paths[0]) if is_well(paths[0]) else None)
    with ExitStack() as stack:
        predicted, true = (
            stack.enter_context(open_frames(path, layout=layout or None, split=chosen))
            for path, layout in zip(paths, layouts, strict=True)
        )
        tick = stack.enter_context(one_bar("comparing", console))
        return run(
            predicted,
            true,
            patch=patch,
            field=field or None,
            boundaries=parse_boundaries(boundary) if boundary else None,
            progress=tick,
        )


def _judge(model: str, pred: str, *, layout: str, split: str, json: Path | None) -> None:
    """Say how large the errors of a prediction are by what a model would have made of it."""
    from overtone.assess.predicted import judge
    from overtone.data.frames import choose_split, is_well, open_frames
    from overtone.evaluate.results import storable
    from overtone.files import replacing
    from overtone.models.storage import load_model

    loaded = load_model(model)
    if json is not None:
        require_writable_file(json)
    chosen = split or (choose_split(pred) if is_well(pred) else None)
    console = Terminal()
    with ExitStack() as stack:
        frames = stack.enter_context(open_frames(pred, layout=layout or None, split=chosen))
        tick = stack.enter_context(one_bar("judging", console))
        found = judge(loaded, frames, progress=tick)
    console.print(found.sentence, soft_wrap=True)
    console.print("note: what the model gets wrong at every patch alike is not seen this way")
    if not found.calibrated:
        console.print(
            "note: the model is not calibrated on this grid, so these are disagreements and not "
            "errors; run `overtone calibrate MODEL DATA`",
            soft_wrap=True,
        )
    if json is not None:
        bounds = {} if found.low is None or found.high is None else {
            "low": found.low.tolist(), "high": found.high.tolist()}  # fmt: skip
        content = {"error": found.value.tolist(), "local": found.local.tolist(), **bounds,
                   "calibrated": found.calibrated, "first": found.first}  # fmt: skip
        with replacing(json) as scratch:
            scratch.write_text(dumps(storable(content), indent=1, allow_nan=False) + "\n")
        console.print(f"wrote {json}", soft_wrap=True)


def _patch(text: str) -> int | tuple[int, ...] | None:
    if text == "auto":
        return None
    try:
        sizes = tuple(int(size) for size in text.split("x"))
    except ValueError:
        raise PatchError(
            f"patch is '{text}'; expected a number of cells such as 16, one for each axis such as "
            "4x8, or auto"
        ) from None
    return sizes[0] if len(sizes) == 1 else sizes
