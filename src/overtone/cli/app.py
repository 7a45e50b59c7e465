"""The command line: each command is a typed function.

A user's mistake is one message and exit code 2; `--debug` shows the traceback.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from overtone.cli.calibrate import calibrate
from overtone.cli.data import app as data_app
from overtone.cli.diagnose import diagnose
from overtone.cli.evaluate import evaluate, rollout, theory
from overtone.cli.export import export
from overtone.cli.plan import plan
from overtone.cli.report import report
from overtone.cli.share import push
from overtone.cli.train import train
from overtone.cli.view import view
from overtone.errors import INTERRUPTED, ConfigError, OvertoneError, refusal
from overtone.guard.folders import claim
from overtone.guard.names import shown_lines
from overtone.guard.streams import lasting_streams
from overtone.progress import Listing, Terminal
from overtone.version import __version__

app = typer.Typer(
    name="overtone",
    help="Transformer emulators of PDEs: one model for many patch sizes, clean long rollouts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app)
for group in (app, data_app):
    group.rich_markup_mode = None  # in a help text, overtone[slurm] is a name and no markup
for command in (
    train, calibrate, evaluate, report, rollout, plan, diagnose, theory, view, export, push
):  # fmt: skip
    app.command()(command)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"overtone {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of every command; main() reads --debug from the arguments."""


@app.command()
def info(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|MODEL]",
            help="Folder of a training run; or a model: a packaged one's name, a folder, or "
            "org/name[@revision] on the hub.",
        ),
    ] = None,
) -> None:
    """Show versions, devices and caches; or a training RUN, whose page it draws; or a MODEL."""
    if what is None:
        from overtone.version import gather

        rows = gather()
    elif _is_run(what):
        from overtone.train.journal import describe

        run = Path(what)
        rows = {**describe(run), "curves": _draw_curves(run), "report": _draw_page(run)}
    else:
        from overtone.models.card import describe as describe_model

        rows = describe_model(what)
    Terminal().print(Listing(list(rows.items())))


def _is_run(what: str) -> bool:
    """Whether a folder is there that holds no model itself: a run's, or nothing of ours."""
    from overtone.models.storage import WEIGHTS, pretrained_names

    return (
        Path(what).exists()
        and what not in pretrained_names()
        and not (Path(what) / WEIGHTS).exists()
    )


def _draw_curves(run: Path) -> str:
    """Where the picture is, or why there is none: a run that can't be drawn can be described."""
    from overtone.report.figures.curves import training_curves
    from overtone.report.style import NothingToDraw, save
    from overtone.train.folder import KIND

    try:
        with claim(run, KIND, error=ConfigError).replacing() as place:
            save(training_curves(run), place, "curves")
    except NothingToDraw:
        return "none yet"
    except OSError as error:  # the folder of somebody else, or a full disk
        return f"not drawn: {refusal(error)}"
    return str(run / "curves.png")


def _draw_page(run: Path) -> str:
    """Where the page of a run is, or why there is none."""
    from overtone.report.run import write_run_report

    try:
        return str(write_run_report(run))
    except (OSError, ConfigError) as error:
        return f"not drawn: {refusal(error) or error}"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Length of the rollouts.")] = 40,
    flows: Annotated[int, typer.Option(min=1, help="How many flows to simulate.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Of the flows.")] = 0,
) -> None:
    """Simulate shear flows and compare rollout schedules of the packaged models on them."""
    from overtone.cli.demo import run

    run(out, steps=steps, flows=flows, seed=seed)


def main(commands: typer.Typer | None = None) -> None:
    """Run a command line: a mistake is one message and a code, unless --debug asks for more."""
    debug = "--debug" in sys.argv
    with lasting_streams() as lost, warnings.catch_warnings():
        if not debug:
            warnings.showwarning = partial(_warn, set())
        code = _run(commands or app, debug)
        if code == 0 and (reason := lost()):
            code = _fail(f"error: the output is incomplete: {reason}. All else was done", 2)
    sys.exit(code)


def _run(commands: Callable[[], object], debug: bool) -> int:
    """The code to exit with."""
    try:
        commands()
    except SystemExit as stop:
        interrupt = _interrupt(stop)
        if interrupt is None:
            return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if debug:
            raise interrupt from None
        return _fail("interrupted", INTERRUPTED)
    except KeyboardInterrupt:
        if debug:
            raise
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OvertoneError):
            return _fail(f"error: {error}", 2)
        if explained := refusal(error):
            return _fail(f"error: {explained}", 2)
        hint = "(overtone --debug ... shows the traceback)"
        return _fail(f"error: {type(error).__name__}: {error} {hint}", 1)
    return 0


def _interrupt(stop: BaseException | None) -> KeyboardInterrupt | None:
    """The Ctrl-C that typer has turned into an exit, if there was one."""
    while stop is not None and not isinstance(stop, KeyboardInterrupt):
        stop = stop.__cause__ or stop.__context__
    return stop


def _fail(message: str, code: int) -> int:
    """Say why a command ends; names in it may come from files."""
    typer.echo(shown_lines(message), err=True)
    return code


def _warn(said: set[str], message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as one line, without the place in the code; what was said is not said again."""
    text = shown_lines(f"warning: {message}")
    if text not in said:
        said.add(text)
        typer.echo(text, err=True)
