"""`overtone view`: a page in the browser in which models run, or a file that shows them running."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import closing, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from overtone.cli.evaluate import Coarsen, Device, Split, Stride, Untrained, load_models
from overtone.errors import DataError, require_one_of
from overtone.guard.limits import require_writable_file
from overtone.progress import Terminal, one_bar

if TYPE_CHECKING:
    from overtone.evaluate import Candidate
    from overtone.viewer.stage import Stage

MODEL = "shear-flow-mini-csm"
"""What is shown where nothing is named."""
FLOWS = 2
"""Simulations where the data is generated, unless the demo has made some."""
PORT = 8765


def view(
    model: Annotated[
        str,
        typer.Argument(
            help="A model's or a training run's folder, [NAME=]PATH, the name of a packaged model, "
            "or persistence or extrapolation."
        ),
    ] = MODEL,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A Well folder, a folder of HDF5 files or one file; generated if it is left out "
            "and the model was trained on generated data."
        ),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="A further model, as the first; repeatable.")
    ] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            help="What to begin with, e.g. 16; a second one runs beside it. With --export, all "
            "that are recorded."
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="A file of `overtone plan`, for a button on the page.")
    ] = None,
    field: Annotated[str | None, typer.Option(help="The field to begin with.")] = None,
    split: Split = "test",
    start: Annotated[
        int | None, typer.Option(min=0, help="First frame of the context to begin with.")
    ] = None,
    trajectory: Annotated[int, typer.Option(min=0, help="The trajectory to begin with.")] = 0,
    stride: Stride = None,
    coarsen: Coarsen = None,
    device: Device = "cpu",
    allow_untrained: Untrained = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")] = PORT,
    host: Annotated[
        str,
        typer.Option(
            help="An address of this machine at which others may watch, with a token that is "
            "printed; by default nobody else can."
        ),
    ] = "127.0.0.1",
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    export: Annotated[
        Path | None,
        typer.Option(help="Write recorded rollouts as one HTML file, and serve nothing."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of a recording.")] = 40,
) -> None:
    """Watch models run in the browser: change patches, schedules and fields while they do."""
    import torch

    console = Terminal()
    torch.set_num_threads(1)  # a second one saves little with small fields, and costs much
    if export is not None:
        require_writable_file(export)
    stage = _stage(
        (model, *(models or [])), data, console, start,
        split=split, stride=stride, coarsen=coarsen, device=device, allow_untrained=allow_untrained,
    )  # fmt: skip
    with closing(stage):
        stage.require_start(trajectory, stage.start)
        settings = begin(stage, schedule, field=field, trajectory=trajectory)
        if plan is not None:
            settings["plan"] = _planned(stage, plan)
        if export is not None:
            shown = tracks(stage.candidates, schedule, all_of_them=True)
            record(export, stage, shown, console, steps=steps, settings=settings)
            return
        _serve(stage, console, host=host, port=port, settings=settings, open_page=open_page)


def _stage(
    texts: Sequence[str],
    data: str | None,
    console: Console,
    start: int | None,
    *,
    device: str,
    **how: Any,
) -> Stage:
    """Models and data, which is generated if none is named."""
    from overtone.viewer.stage import Stage

    generated = None
    if data is None:
        data, generated = _generated(texts, console)
        how["split"] = "test"
    candidates, reading = load_models(texts, data, **how)
    longest = max(candidate.model.context for candidate in candidates)
    if start is None:
        start = max(0, generated - longest) if generated else 0
    reading["start"] = start
    return Stage(candidates, data, reading, device=device)


def _generated(texts: Sequence[str], console: Console) -> tuple[str, int | None]:
    """Fresh data of the first model's recipe, and the frame at which it gets interesting."""
    from overtone.cli import demo
    from overtone.cli.evaluate import named
    from overtone.evaluate import load_candidate
    from overtone.train.recipes import DEVELOPED, MINIATURES
    from overtone.train.run import data_folder

    first = load_candidate(named(texts[0])[1])
    name = str(first.training.get("recipe"))
    if name.removesuffix("-mini") not in MINIATURES:
        raise DataError(
            f"no data was given, and '{texts[0]}' was not trained on data that can be generated; "
            "name a Well folder behind the model"
        )
    if name == demo.RECIPE:  # those of the demo, with its defaults
        wanted = demo.unseen_data(flows=4, frames=DEVELOPED + 40, seed=0)
        return str(data_folder(wanted, console=console)), DEVELOPED
    frames = MINIATURES[name.removesuffix("-mini")].steps
    wanted = demo.unseen_data(flows=FLOWS, frames=frames, seed=0, name=name)
    return str(data_folder(wanted, console=console)), None


def tracks(
    candidates: Sequence[Candidate],
    schedules: Sequence[str] | None,
    *,
    all_of_them: bool = False,
) -> list[tuple[int, str]]:
    """Number of a model and its schedule for each lane.

    Given schedules go to the models in turn where there is one for each, else all to the first.
    Without any, the first model's coarsest patch stands beside its cycle with shifts; or two models
    stand beside each other.

    Args:
        candidates: the models.
        schedules: as given.
        all_of_them: without schedules, all that `evaluate` would try with the first model.
    """
    from overtone.evaluate.candidates import usual_schedules
    from overtone.rollout import parse_rule

    if schedules:
        apart = 1 < len(candidates) == len(schedules)
        # As it is written out: a page takes no name of a file.
        texts = [str(parse_rule(text)) for text in schedules]
        return [(place if apart else 0, text) for place, text in enumerate(texts)]
    usual = [usual_schedules(candidate) for candidate in candidates]
    if all_of_them:
        others = [(place, str(own[-1])) for place, own in enumerate(usual)][1:]
        return [(0, str(schedule)) for schedule in usual[0]] + others
    if len(candidates) > 1:
        return [(place, str(own[-1])) for place, own in enumerate(usual)]
    coarsest = usual[0][len(candidates[0].model.patches) - 1]
    chosen = [coarsest, usual[0][-1]] if len(usual[0]) > 1 else [coarsest]
    return [(0, str(schedule)) for schedule in chosen]


def begin(
    stage: Stage, schedules: Sequence[str] | None, *, field: str | None, trajectory: int
) -> dict[str, Any]:
    """What a page starts with, plain data."""
    from overtone.cli.demo import FIELD

    fields = stage.domain(0).fields
    if field is None:
        field = FIELD if FIELD in fields else fields[0]
    require_one_of(field, fields, "field", DataError)
    shown = tracks(stage.candidates, schedules)[:2]
    lanes = [{"model": model, "schedule": text} for model, text in shown]
    return {"lanes": lanes, "field": fields.index(field), "trajectory": trajectory}


def _planned(stage: Stage, plan: Path) -> str:
    """The schedule that a plan has chosen, which the first model must be able to follow."""
    from overtone.rollout import parse_rule
    from overtone.viewer.lane import Lane

    chosen, first = parse_rule(f"plan:{plan}"), stage.candidates[0]
    Lane(first, stage.window(first, 0, stage.start), chosen, memory=0)
    return str(chosen)


def record(
    path: Path,
    stage: Stage,
    shown: Sequence[tuple[int, str]],
    console: Console,
    *,
    steps: int,
    settings: dict[str, Any],
) -> None:
    """Write recorded rollouts as one file, with a progress bar."""
    from overtone.viewer.record import write_view

    with one_bar("recording", console, transient=True) as tick:
        write_view(
            path,
            stage,
            shown,
            trajectory=settings["trajectory"],
            steps=steps,
            settings=settings,
            progress=lambda done, total: tick(done, total, "recording"),
        )
    console.print(
        f"wrote {path}, {path.stat().st_size / 1e6:.1f} MB, which opens in any browser",
        soft_wrap=True,
    )


def _serve(
    stage: Stage,
    console: Console,
    *,
    host: str,
    port: int,
    settings: dict[str, Any],
    open_page: bool,
) -> None:
    from overtone.viewer.server import listen, new_token, serve

    token, bound = new_token(host), listen(host, port)
    address = f"http://{_reachable(host)}:{bound.getsockname()[1]}/"
    address += f"?token={token}" if token else ""

    def ready() -> None:
        console.print(f"{address}  (Ctrl-C ends it)", soft_wrap=True)
        if token:
            console.print("whoever has this address can watch and use this machine's processor")
        if open_page and _has_screen():
            webbrowser.open(address)

    serve(stage, bound, settings=settings, token=token, ready=ready)
    console.print("ended")


def _reachable(host: str) -> str:
    """A host as others type it; all addresses of a machine are none, but it has a name."""
    with suppress(ValueError):
        if ip_address(host).is_unspecified:
            return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _has_screen() -> bool:
    """Whether a browser has somewhere to open; a text browser would take over the terminal."""
    return sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
