"""The command `overtone plan`: the best schedule of a model for a budget."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overtone.cli.evaluate import Coarsen, Count, Data, Device, Start, Steps, Stride, load_models
from overtone.errors import PARTIAL, DataError
from overtone.files import typed
from overtone.guard.limits import require_writable_file
from overtone.progress import Listing, Terminal, one_bar

if TYPE_CHECKING:
    from overtone.assess.plan_file import Plan

LONGEST = 44
"""Characters of a schedule that a table shows; the file has all of it."""


def plan(
    model: Annotated[
        str,
        typer.Argument(
            help="A model's or a training run's folder, [NAME=]PATH, or the name of a packaged "
            "model."
        ),
    ],
    data: Data,
    steps: Steps = 40,
    tokens: Annotated[
        float | None, typer.Option(help="Tokens that a rollout may have, summed over its steps.")
    ] = None,
    flops: Annotated[float | None, typer.Option(help="FLOPs that a rollout may take.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Seconds that a rollout may take, on one core of a CPU.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="VRMSE over all steps that is good enough: the cheapest is chosen."),
    ] = None,
    split: Annotated[str, typer.Option(help="The split to plan on; never test.")] = "valid",
    start: Start = 0,
    starts: Annotated[
        int, typer.Option(min=1, help="Frames that each trajectory is started from, at most.")
    ] = 3,
    trajectories: Count = None,
    stride: Stride = None,
    coarsen: Coarsen = None,
    out: Annotated[Path, typer.Option(help="File of the plan; a picture goes beside it.")] = Path(
        "plan.json"
    ),
    seed: Annotated[int, typer.Option(help="Of the order of trajectories, and intervals.")] = 0,
    device: Device = "cpu",
) -> None:
    """Choose the schedule of the lowest error within a budget, or the cheapest within an error.

    Schedules are tried on the validation split. --schedule plan:FILE follows the plan. Where no
    schedule reaches the error, the best one is written, and the exit code is 3.
    """
    from overtone.assess.plan import plan as search

    _require_free(out)
    (candidate,), reading = load_models(
        (model,), data, split=split, stride=stride, coarsen=coarsen, allow_untrained=False
    )
    reading |= {"start": start, "trajectories": trajectories}
    asked = {"tokens": tokens, "flops": flops, "seconds": seconds, "error": error, **reading}
    asked |= {"steps": steps, "starts": starts, "seed": seed, "out": typed(out)}
    command = _command(model, data, asked)
    console = Terminal()
    with one_bar("reading", console) as tick:
        found = search(
            candidate, data, steps=steps, starts=starts, seed=seed, device=device,
            tokens=tokens, flops=flops, seconds=seconds, error=error,
            command=command, progress=tick, **reading,
        )  # fmt: skip
    picture = _write(found, out)
    _tell(found, console)
    following = shlex.join(
        ["overtone", "evaluate", model, data, "--schedule", f"plan:{out}", "--steps", str(steps)]
    )
    console.print(f"wrote {out} and {picture}; next: {following}", soft_wrap=True)
    if not found.fits:
        raise typer.Exit(PARTIAL)


def _write(found: Plan, out: Path) -> Path:
    """The plan's file, and its picture beside it."""
    from overtone.report.figures.plan import plan_figure
    from overtone.report.style import save_as

    found.save(out)
    picture = out.with_suffix(".png")
    save_as(plan_figure(found), picture)
    return picture


def _tell(found: Plan, console: Terminal) -> None:
    """The front as a table, notes, and the plan in a sentence."""
    console.print(_table(found))
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    console.print(str(found), soft_wrap=True)


def _require_free(out: Path) -> None:
    """Refuse to replace a file that is no plan, and places where none can be written."""
    from overtone.assess.plan_file import Plan

    for path in (out, out.with_suffix(".png")):
        require_writable_file(path)
    if not out.exists():
        return
    try:
        Plan.load(out)
    except DataError:
        raise DataError(
            f"'{out}' exists and is not from `overtone plan`; it is left alone. Choose another "
            "file with --out"
        ) from None


def _table(found: Plan) -> Listing:
    """The front, and what was chosen if it is not on it."""
    rows = [
        (
            "*" if option.schedule == found.schedule else "",
            _short(option.schedule),
            f"{option.error.value:.4f} [{option.error.low:.4f}, {option.error.high:.4f}]",
            f"{option.cost.tokens:,}",
            f"{option.cost.flops / 1e9:.3g}",
            f"{option.cost.seconds:.3g}",
        )
        for option in found.options
        if option.on_front or option.schedule == found.schedule
    ]
    return Listing(
        rows,
        ("", "schedule", "VRMSE", "tokens", "GFLOP", "seconds"),
        f"front of {found.tried} schedules over {found.steps} steps, "
        f"{found.data.trajectories} trajectories of {found.data.name} {found.data.split}",
        "* the plan; [95 % interval of the mean over trajectories]; cost of one trajectory",
        texts=(1,),
    )


def _short(schedule: str) -> str:
    if len(schedule) <= LONGEST:
        return schedule
    return f"{schedule[: LONGEST - 16]} … {schedule[-13:]}"


def _command(model: str, data: str, options: dict[str, object]) -> str:
    """What was asked for, as it can be pasted into a shell in the same folder."""
    words = ["overtone", "plan", model, typed(data) if Path(data).exists() else data]
    for name, value in options.items():
        text = "x".join(map(str, value)) if isinstance(value, tuple) else f"{value}"
        words += [] if value is None else [f"--{name}", text]
    return shlex.join(words)
