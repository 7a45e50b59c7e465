"""Commands that measure and predict: `evaluate`, `rollout` and `theory`.

Everything heavy is imported inside the commands, so that `overtone --help` stays quick.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from overtone.errors import PARTIAL, DataError, OvertoneError
from overtone.files import typed
from overtone.guard.folders import claim
from overtone.guard.limits import require_writable, require_writable_file
from overtone.guard.names import shown_lines
from overtone.progress import Listing, Terminal, one_bar

if TYPE_CHECKING:
    from overtone.evaluate import Candidate, Predictions, Reading
    from overtone.evaluate.results import Results
    from overtone.evaluate.samples import Samples

Model = Annotated[
    str,
    typer.Argument(
        help="A packaged model's name, a model's or a training run's folder, or a repository "
        "org/name[@revision] on the hub, each with NAME= before it; or persistence or "
        "extrapolation."
    ),
]
Data = Annotated[str, typer.Argument(help="A Well folder, a folder of HDF5 files or one file.")]
Steps = Annotated[int, typer.Option(min=1, help="Length of the rollouts.")]
Split = Annotated[str, typer.Option(help="The split to start from.")]
Start = Annotated[int, typer.Option(min=0, help="First frame of the longest context.")]
Batch = Annotated[int, typer.Option(min=1, help="Trajectories that are predicted at once.")]
Count = Annotated[int | None, typer.Option(min=1, help="Use no more trajectories than this.")]
Stride = Annotated[
    int | None,
    typer.Option(min=1, help="Stored frames between two frames; as it was trained by default."),
]
Coarsen = Annotated[
    str | None,
    typer.Option(help="Cells to average into one, e.g. 2 or 2x4; as it was trained by default."),
]
Device = Annotated[str, typer.Option(help="Where to compute, e.g. cuda.")]
Untrained = Annotated[
    bool,
    typer.Option("--allow-untrained", help="Also patches that a model was not trained for."),
]


def evaluate(
    model: Model,
    data: Data,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="A further model, as the first; repeatable.")
    ] = None,
    schedule: Annotated[
        list[str] | None, typer.Option(help="E.g. 16 or 4-8-16+shift; repeatable.")
    ] = None,
    steps: Steps = 40,
    split: Split = "test",
    start: Start = 0,
    batch: Batch = 4,
    trajectories: Count = None,
    stride: Stride = None,
    coarsen: Coarsen = None,
    windows: Annotated[int, typer.Option(min=1, help="Next-step predictions per patch.")] = 64,
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("evaluation"),
    seed: Annotated[int, typer.Option(help="Of the confidence intervals.")] = 0,
    device: Device = "cpu",
    allow_untrained: Untrained = False,
    report: Annotated[bool, typer.Option(help="Draw figures and write report.html.")] = True,
) -> None:
    """Measure models on a dataset: errors, spectra, grid artifacts, physics and cost."""
    texts, how = (model, *(models or [])), {"stride": stride, "coarsen": coarsen}
    candidates, reading = load_models(
        texts, data, split=split, allow_untrained=allow_untrained, **how
    )
    reading |= {"start": start, "trajectories": trajectories}
    told = {**reading, "steps": steps, "windows": windows, "seed": seed, "out": typed(out)}
    evaluate_into(
        out,
        candidates,
        data,
        console=Terminal(),
        report=report,
        schedules=schedule,
        steps=steps,
        batch=batch,
        windows=windows,
        seed=seed,
        device=device,
        command=_command(texts, data, schedule, told, allow_untrained),
        **reading,
    )


def evaluate_into(
    out: Path,
    candidates: Sequence[Candidate],
    data: str | Path,
    *,
    console: Console,
    report: bool = True,
    curves: Mapping[str, Path] | None = None,
    notes: bool = True,
    **options: Any,
) -> tuple[Results, Samples]:
    """Evaluate with a progress bar, save numbers and frames, print the table, write the report.

    An earlier evaluation stays whole until the new one, with its report, is complete. Where there
    is none, the numbers are in their place before anything is drawn.

    Args:
        out: folder; what an earlier evaluation wrote there is replaced, and nothing else.
        candidates: the models.
        data: as for `WellFolder`.
        console: where to print.
        report: draw figures and write report.html.
        curves: name of a model -> `metrics.jsonl` of its training, for the report.
        notes: say what is left out.
        options: as for `overtone.evaluate.evaluate`.
    """
    from overtone.evaluate import evaluate as measure
    from overtone.evaluate.results import KIND, RESULTS, require_results
    from overtone.evaluate.samples import SAMPLES
    from overtone.report.html import PAGE, fill_report
    from overtone.report.tables import results_table
    from overtone.report.verdict import verdict

    def note(text: str) -> None:
        if notes:
            console.print(Text(shown_lines(f"note: {text}")))

    written = [RESULTS, SAMPLES, *([PAGE] if report else [])]
    folder = claim(out, KIND, error=DataError)
    require_results(out / RESULTS)
    folder.require_free(*written)
    require_writable(out)
    with one_bar("reading", console) as tick:
        results, samples = measure(candidates, data, progress=tick, note=note, **options)
    for line in verdict(results):
        console.print(Text(shown_lines(line)), soft_wrap=True)
    console.print(results_table(results))
    first = not (out / RESULTS).exists()
    for drawn in [False, True] if first and report else [report]:
        with folder.replacing() as place:
            results.save(place / RESULTS)
            samples.save(place / SAMPLES)
            if drawn:
                with console.status("drawing the report", spinner="line"):
                    fill_report(place, results, samples, curves=curves)
    announce(console, out, written, "gif" if report else "none")
    return results, samples


def announce(console: Console, out: Path, written: Sequence[str], kind: str) -> None:
    """Say which files there are now, the animation of a kind among them."""
    from overtone.report.html import MOVING

    said = f"wrote {', '.join(str(out / name) for name in written)}"
    if (out / f"{MOVING}.{kind}").exists():
        said += f" and the animation {out / f'{MOVING}.{kind}'}, which is in the report, too"
    console.print(Text(shown_lines(said)), soft_wrap=True)


def rollout(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the new dataset.")],
    schedule: Annotated[str, typer.Option(help="E.g. 16 or 4-8-16+shift.")],
    steps: Steps = 40,
    split: Split = "test",
    start: Start = 0,
    batch: Batch = 4,
    trajectories: Count = None,
    stride: Stride = None,
    coarsen: Coarsen = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Tell the error of every frame, without truth.")
    ] = False,
    against: Annotated[
        str, typer.Option(help="What it is told by: patch, shift or a second schedule.")
    ] = "patch",
    device: Device = "cpu",
    allow_untrained: Untrained = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an older dataset of that name.")
    ] = False,
) -> None:
    """Predict trajectories and write them as a Well folder: the context, then the predictions.

    A trajectory that blows up ends with its last valid frame; the exit code is 3 then.
    """
    from overtone.evaluate import write_predictions
    from overtone.rollout import parse_rule

    chosen = parse_rule(schedule)
    require_writable(out.parent)
    how = {"split": split, "stride": stride, "coarsen": coarsen}
    (candidate,), reading = load_models((model,), data, allow_untrained=allow_untrained, **how)
    reading |= {"start": start, "trajectories": trajectories}
    console = Terminal()
    with one_bar(f"{candidate.name}: {chosen}", console) as tick:
        written = write_predictions(
            candidate,
            data,
            out,
            schedule=chosen,
            steps=steps,
            batch=batch,
            estimate=against if estimate else False,
            device=device,
            overwrite=overwrite,
            progress=tick,
            **reading,
        )
    if written.calibrated is not None:
        _show_band(written, console)
    for note in written.notes:
        console.print(f"note: {note}", soft_wrap=True)
    following = shlex.join(["overtone", "data", "check", str(out)])
    console.print(f"wrote {out}; next: {following}", soft_wrap=True)
    if not written.complete:
        raise typer.Exit(PARTIAL)


def _show_band(written: Predictions, console: Console) -> None:
    """The errors that the rollouts told of themselves, at some steps, and what was spent."""
    steps = [step for step in (1, 10, written.steps) if step <= written.steps]
    rows = []
    for log in written.logs:
        cells = []
        for step in dict.fromkeys(steps):
            if step > len(log["error"]):
                cells.append("lost")
                continue
            pair = log.get("interval 0.9")
            band = f" ({pair[0][step - 1]:.3g} to {pair[1][step - 1]:.3g})" if pair else ""
            cells.append(f"{log['error'][step - 1]:.3g}{band}")
        rows.append((str(log["trajectory"]), *cells, str(sum(log["tokens"]))))
    heads = [f"at step {step}" for step in dict.fromkeys(steps)]
    kind = "VRMSE, with 90 % intervals" if written.calibrated else "disagreement"
    console.print(
        Listing(rows, ("trajectory", *heads, "tokens"), f"estimated {kind}", "", texts=(0,))
    )
    if not written.calibrated:
        console.print(
            "note: the model is not calibrated for this, so these are disagreements and not "
            "errors; `overtone calibrate MODEL DATA` makes them errors with intervals",
            soft_wrap=True,
        )


def theory(
    schedule: Annotated[str, typer.Argument(help="E.g. 16 or 4-8-16+shift.")],
    steps: Steps = 96,
    shape: Annotated[str, typer.Option(help="The grid, e.g. 64x64.")] = "64x64",
    persistence: Annotated[
        float, typer.Option(min=0, max=1, help="How alike errors of consecutive steps are.")
    ] = 1.0,
    agreement: Annotated[
        float, typer.Option(min=0, max=1, help="How alike errors of different patches are.")
    ] = 1.0,
    out: Annotated[Path, typer.Option(help="File of the picture.")] = Path("theory.png"),
) -> None:
    """Say which patch harmonics a schedule excites, which stay coherent and how they grow."""
    from overtone.domain import Domain
    from overtone.report.figures.theory import draw, harmonics, verdict
    from overtone.rollout.controllers import parse_rule, require_schedule
    from overtone.theory import ErrorModel

    chosen = require_schedule(parse_rule(schedule), "the theory")
    require_writable_file(out)
    cells = _cells(shape, "shape")
    grid = (cells,) if isinstance(cells, int) else cells
    domain = Domain(grid, (1.0,) * len(grid), "periodic", ("any",))
    tokens = chosen.tokens(domain, steps)  # refuses patches that the grid can't hold
    model = ErrorModel(persistence=persistence, agreement=agreement)
    found = harmonics(chosen, steps, ndim=len(grid), model=model)
    rows = [
        (
            harmonic.label,
            harmonic.excited_by,
            str(harmonic.injections),
            f"{harmonic.coherence:.3f}",
            f"{harmonic.exponent:.2f}",
            f"{harmonic.peak:.4g}",
            harmonic.kind,
        )
        for harmonic in found
    ]
    table = Listing(
        rows,
        ("f", "excited by", "steps", "coherence", "exponent", "peak E|e|²", "growth"),
        f"{chosen}, {steps} steps on {shape}: {tokens} tokens",
        "E|e|² in units of what one step injects; f in cycles per cell",
        texts=(0, 1, 6),
    )
    console = Terminal()
    console.print(table)
    console.print(verdict(found))
    console.print(f"wrote {draw(found, chosen, out)}", soft_wrap=True)


def load_models(
    texts: Sequence[str],
    data: str,
    *,
    split: str,
    stride: int | None,
    coarsen: str | None,
    allow_untrained: bool,
) -> tuple[list[Candidate], Reading]:
    """Models from `path` or `name=path`, and how to read data for them.

    What needs no training is built for the domain of the first model, or else of the data.

    Args:
        texts: one for each model.
        data: as for `WellFolder`.
        split: of the data.
        stride, coarsen: as given; as the first model was trained if None.
        allow_untrained: whether they may be asked for other patches than they know.
    """
    from overtone.baselines.registry import create
    from overtone.baselines.untrained import YARDSTICKS
    from overtone.data import WellFolder
    from overtone.evaluate import Candidate, Reading, load_candidate

    wanted = [named(text) for text in texts]
    untrained = [path in YARDSTICKS and not Path(path).exists() for _, path in wanted]
    pairs = list(zip(wanted, untrained, strict=True))
    say = partial(Terminal().print, soft_wrap=True)
    trained = [
        load_candidate(path, name, allow_untrained=allow_untrained, note=say)
        for (name, path), bare in pairs
        if not bare
    ]
    how: dict[str, Any] = {"stride": stride or 1, "coarsen": _cells(coarsen or "1", "coarsen")}
    if trained:
        how["stride"] = trained[0].trained_on("stride") if stride is None else stride
        how["coarsen"] = trained[0].trained_on("coarsen") if coarsen is None else how["coarsen"]
        domain = trained[0].model.domain
    else:
        with closing(WellFolder(data, split, **how)) as folder:
            domain = folder.domain
    left = iter(trained)
    candidates = [
        Candidate(name or path, create(path, domain=domain, context=YARDSTICKS[path]))
        if bare
        else next(left)
        for (name, path), bare in pairs
    ]
    return candidates, Reading(split=split, **how)


def named(text: str) -> tuple[str | None, str]:
    """The name, if one is given, and the path of `path` or `name=path`."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return None, text
    if not name or not path:
        raise OvertoneError(f"model is {text!r}; expected PATH or NAME=PATH")
    return name, path


def _cells(text: str, name: str) -> int | tuple[int, ...]:
    """One number for all axes, or one for each with x between them."""
    try:
        sizes = tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise DataError(f"{name} is {text!r}; expected numbers such as 64 or 64x128") from None
    return sizes[0] if len(sizes) == 1 else sizes


def _command(
    models: Sequence[str],
    data: str,
    schedules: Sequence[str] | None,
    options: Mapping[str, object],
    allow_untrained: bool,
) -> str:
    """What was asked for, as it can be pasted into a shell in the same folder."""
    first, *others = (_pasted(text) for text in models)
    words = ["overtone", "evaluate", first, _pasted(data)]
    words += [word for text in others for word in ("--model", text)]
    words += [word for schedule in schedules or () for word in ("--schedule", schedule)]
    for name, value in options.items():
        text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words += [] if value is None else [f"--{name}", text]
    words += ["--allow-untrained"] * allow_untrained
    return shlex.join(words)


def _pasted(text: str) -> str:
    """A path, with a name before it or not, as it can be typed here; what is no path stays."""
    name, path = named(text)
    return (f"{name}=" if name else "") + (typed(path) if Path(path).exists() else path)
