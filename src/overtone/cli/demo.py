"""`overtone demo`: one flexible model against a fixed one, on flows that neither has seen.

The models come with the package, trained by the recipe `shear-flow-mini`. The flows are simulated
on the spot with the recipe's settings and another seed. The rest is what `overtone evaluate` does.

OUT/report.html, results.json, samples.safetensors, figures/, rollout.gif    as for any evaluation
OUT/rollout.png                                                              all in one picture
OUT/view.html                                                                the rollouts in motion
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import torch
from rich.console import Console

from overtone.cli.evaluate import evaluate_into
from overtone.errors import CheckpointError, DataError
from overtone.evaluate import Candidate, Reading, load_candidate
from overtone.evaluate.results import KIND, RESULTS, Results
from overtone.evaluate.samples import Samples
from overtone.guard.folders import claim
from overtone.guard.limits import require_writable
from overtone.models.storage import pretrained_folder, pretrained_names
from overtone.progress import Terminal
from overtone.report import overview
from overtone.report.html import PAGE
from overtone.report.style import save_as
from overtone.train.config import DataConfig
from overtone.train.recipes import DEVELOPED, recipe
from overtone.train.run import data_folder
from overtone.train.settings import change
from overtone.viewer.record import write_view
from overtone.viewer.stage import Stage

RECIPE = "shear-flow-mini"
MODELS = ("fixed16", "csm")
"""Packaged models, without the recipe's name in front."""
SCHEDULES = ("16", "16+shift", "8+shift", "4", "4-8-16", "4-8-16+shift")
"""Each model follows those that it can."""
SHOWN = (("fixed16", "16"), ("csm", "16"), ("csm", "4-8-16"), ("csm", "8+shift"))
"""Model and schedule of what is drawn side by side."""
FIELD = "velocity_z"
"""The field that is drawn: a smooth one, in whose residual blocks are easy to see."""
WINDOWS = 32
"""Next-step predictions for each patch."""
PICTURE = "rollout.png"
VIEW = "view.html"
DPI = 160
"""Dots per inch of the picture, which is to be shown at half its size."""


def run(out: Path, *, steps: int, flows: int, seed: int) -> None:
    """Compare the packaged models and write report and picture.

    Args:
        out: folder; what an earlier demo wrote there is replaced, and nothing else.
        steps: length of the rollouts.
        flows: how many to simulate and predict.
        seed: of the flows; never that of the flows that were trained on.
    """
    console = Terminal()
    # A second thread saves little with fields this small, and costs much on a busy machine.
    torch.set_num_threads(1)
    folder = claim(out, KIND, error=DataError)
    folder.require_free(RESULTS, PAGE, PICTURE, VIEW)
    require_writable(out)
    candidates = [packaged(name) for name in MODELS]
    context = max(candidate.model.context for candidate in candidates)
    start = DEVELOPED - context
    wanted = unseen_data(flows=flows, frames=DEVELOPED + steps, seed=seed)
    data = data_folder(wanted, console=console)
    command = f"overtone demo --steps {steps} --flows {flows} --seed {seed}"
    results, samples = evaluate_into(
        out,
        candidates,
        data,
        console=console,
        notes=False,  # each model follows those schedules that it can
        schedules=SCHEDULES,
        steps=steps,
        start=start,
        stride=candidates[0].trained_on("stride"),
        coarsen=candidates[0].trained_on("coarsen"),
        windows=WINDOWS,
        command=command,
    )
    _draw(results, samples, folder.file(PICTURE))
    _record(folder.file(VIEW), candidates, data, start=start, steps=steps)
    _tell(console, out, f"{shlex.quote(str(data))} --start {start} --steps {steps}")


def packaged(name: str) -> Candidate:
    """A model of the recipe that comes with the package."""
    full = f"{RECIPE}-{name}"
    folder = pretrained_folder(full)
    if folder is None:
        there = ", ".join(pretrained_names()) or "none"
        raise CheckpointError(
            f"the model '{full}' does not come with this installation, which has: {there}. Install "
            f"Overtone again, or train the model with `make reproduce STUDY={RECIPE}`"
        )
    return load_candidate(folder, name)


def unseen_data(*, flows: int, frames: int, seed: int, name: str = RECIPE) -> DataConfig:
    """A recipe's data with other initial states, all in the test split.

    Args:
        flows: how many.
        frames: of each.
        seed: 0 or more.
        name: of the recipe, which must generate its data.
    """
    trained = recipe(name)
    assert trained.data.generate is not None
    changes = {
        "trajectories": flows,
        "steps": frames,
        "splits": (0.0, 0.0, 1.0),
        "seed": trained.data.generate.seed + 1 + seed,
    }
    return change(trained, {f"data.generate.{k}": v for k, v in changes.items()}).data


def _draw(results: Results, samples: Samples, path: Path) -> None:
    save_as(overview(results, samples, SHOWN, FIELD), path, DPI)


def _record(
    path: Path, candidates: Sequence[Candidate], data: str | Path, *, start: int, steps: int
) -> None:
    """What is drawn side by side, as a page that plays it."""
    names = [candidate.name for candidate in candidates]
    tracks = [(names.index(name), schedule) for name, schedule in SHOWN]
    reading: Reading = {
        "start": start,
        "stride": candidates[0].trained_on("stride"),
        "coarsen": candidates[0].trained_on("coarsen"),
    }
    with closing(Stage(candidates, data, reading)) as stage:
        fields = stage.domain(0).fields
        lanes = [{"model": tracks[n][0], "schedule": tracks[n][1]} for n in (0, -1)]
        settings = {"lanes": lanes, "field": fields.index(FIELD)}
        write_view(path, stage, tracks, steps=steps, settings=settings)


def _tell(console: Console, out: Path, data: str) -> None:
    console.print(
        f"Look in {out / PICTURE} and {out / PAGE} at how fast the error grows, and at the blocks "
        "in the residuals of a constant patch 16: seams at the last step and, as worst, what all "
        "steps left at the worst place for a grid of 16 cells. Cycling the patches weakens them, a "
        "grid that moves keeps them from adding up; all rows of csm are one model.\n"
        "Try a schedule of your own next, it needs no training: "
        f"overtone evaluate {RECIPE}-csm {data} --schedule bursts:16:4:5+shift\n"
        f"{out / VIEW} plays these rollouts in a browser. To run the model live there, and change "
        "its patches while it runs: overtone view",
        soft_wrap=True,
    )
