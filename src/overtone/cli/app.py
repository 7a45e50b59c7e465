"""The command line: each command is a typed function.

A user's mistake is one message and exit code 2; `--debug` shows the traceback.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from overtone.cli.data import app as data_app
from overtone.cli.diagnose import diagnose
from overtone.cli.evaluate import evaluate, report, rollout, theory
from overtone.cli.train import train
from overtone.errors import ConfigError, OvertoneError
from overtone.guard.folders import claim
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
for command in (train, evaluate, report, rollout, diagnose, theory):
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
    run: Annotated[Path | None, typer.Argument(help="Folder of a training run.")] = None,
) -> None:
    """Show versions, devices and caches; or what a training RUN is, with its curves."""
    if run is None:
        from overtone.version import gather

        rows = gather()
    else:
        from overtone.report.figures.curves import training_curves
        from overtone.report.style import save
        from overtone.train.folder import KIND
        from overtone.train.journal import describe

        rows = describe(run)
        with claim(run, KIND, error=ConfigError).replacing() as place:
            save(training_curves(run), place, "curves")
        rows["curves"] = str(run / "curves.png")
    Terminal().print(Listing(list(rows.items())))


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
    try:
        (commands or app)()
    except OvertoneError as error:
        _fail(error, debug, code=2)
    except Exception as error:
        _fail(error, debug, code=1)


def _fail(error: Exception, debug: bool, code: int) -> None:
    if debug:
        raise error
    kind = "" if isinstance(error, OvertoneError) else f"{type(error).__name__}: "
    hint = "" if isinstance(error, OvertoneError) else " (overtone --debug ... shows the traceback)"
    typer.echo(f"error: {kind}{error}{hint}", err=True)
    sys.exit(code)
