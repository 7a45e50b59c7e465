"""`overtone demo`: simulate, train briefly, and compare rollout schedules of the one model.

The model is tiny and trained for a minute or two on a few simulated flows. It runs the real code
from end to end; its numbers show what the parts do, not how good the method is.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from overtone.cache import cache_dir
from overtone.domain import Domain, Window
from overtone.emulator import Emulator, build
from overtone.info import machine
from overtone.metrics import vrmse
from overtone.progress import bars
from overtone.rollout import rollout
from overtone.schedules import parse_schedule
from overtone.solvers import ShearFlow

PATCHES = (4, 8, 16)
CONTEXT = 4
BATCH = 4
LEARNING_RATE = 1.5e-3
STEPS = 40
START = 16
SCHEDULES = ("16", "16+shift", "4-8-16", "4-8-16+shift", "4")
SYSTEM = ShearFlow(shape=(128, 128), reynolds=5e3)
COARSEN = 2
NUM_FRAMES = START + STEPS + CONTEXT


@dataclass(frozen=True)
class Outcome:
    """How one schedule did.

    Attributes:
        schedule: its string form.
        errors: VRMSE after each step, averaged over flows and fields.
        tokens: of all steps.
        seconds: of all steps and flows.
        frame: the last prediction, `(B, C, *space)`.
    """

    schedule: str
    errors: list[float]
    tokens: int
    seconds: float
    frame: Tensor

    def mean_error(self, steps: int) -> float:
        """VRMSE averaged over the first steps."""
        return sum(self.errors[:steps]) / steps


def run(out: Path, *, updates: int, seed: int) -> None:
    """Run the demo and write `rollout.png`, `results.json` and the model into a folder."""
    console = Console()
    torch.manual_seed(seed)
    with bars(console) as progress:
        train_flows = simulate(
            progress, "simulating 12 flows to train on", num=12, seed=2 * seed + 1
        )
        test_flows = simulate(progress, "simulating 4 flows to test on", num=4, seed=2 * seed + 2)
        model = build("vit", tokenizer="csm", patches=PATCHES, domain=domain(), context=CONTEXT)
        train(model, train_flows, updates, seed, progress)
        outcomes = [evaluate(model, test_flows, name, progress) for name in SCHEDULES]
    out.mkdir(parents=True, exist_ok=True)
    model.save(out / "model")
    _write_results(out / "results.json", outcomes, updates, seed)
    _draw(out / "rollout.png", outcomes, test_flows[:, START + STEPS - 1])
    _tell(console, outcomes, out, updates)


def domain() -> Domain:
    """What the averaged flows live on."""
    shape = tuple(n // COARSEN for n in SYSTEM.shape)
    return Domain(shape, SYSTEM.extent, SYSTEM.boundaries, SYSTEM.channels, SYSTEM.dt)


def simulate(progress: Progress, title: str, *, num: int, seed: int) -> Tensor:
    """Frames of shear flows, averaged down, `(num, T, C, *space)`; kept in the cache."""
    from safetensors.torch import load_file, save_file

    # The initial states are cheap and tell whether the solver is still the one that was cached.
    state = torch.view_as_real(SYSTEM.initial(num, seed=seed)).numpy().tobytes()
    recipe = hashlib.sha256(f"{SYSTEM} {NUM_FRAMES} {COARSEN}".encode() + state).hexdigest()
    path = cache_dir() / f"demo-n{num}-s{seed}-{recipe[:16]}.safetensors"
    if path.exists():
        return load_file(path)["fields"]
    frames = progress.track(
        SYSTEM.trajectory(num, NUM_FRAMES, seed=seed), total=NUM_FRAMES, description=title
    )
    fields = torch.stack([F.avg_pool2d(frame, COARSEN) for frame in frames], dim=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    save_file({"fields": fields}, scratch)
    scratch.replace(path)
    return fields


def train(model: Emulator, flows: Tensor, updates: int, seed: int, progress: Progress) -> None:
    """Train for a few updates, with a random patch and a random shift of the grid at each."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=max(updates, 2)
    )

    def draw(limit: int, count: int) -> list[int]:
        return torch.randint(limit, (count,), generator=random).tolist()

    model.train()
    for _ in progress.track(range(updates), description=f"training {updates} updates"):
        starts = zip(draw(len(flows), BATCH), draw(flows.shape[1] - CONTEXT, BATCH), strict=True)
        frames = torch.stack([flows[n, t : t + CONTEXT + 1] for n, t in starts])
        (patch,) = (PATCHES[i] for i in draw(len(PATCHES), 1))
        window = Window(frames[:, :-1], model.domain)
        change, stats = model.predict_change(window, patch, draw(patch, model.domain.ndim))
        target = stats.change_between(frames[:, :-1], frames[:, 1:])
        # The first frame has no change behind it to measure its own in.
        loss = (change - target)[:, 1:].square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


def evaluate(model: Emulator, flows: Tensor, name: str, progress: Progress) -> Outcome:
    """Roll out under one schedule and compare with the truth, flows `(num, T, C, *space)`."""
    schedule = parse_schedule(name)
    window = Window(flows[:, START - CONTEXT : START], model.domain)
    frames = rollout(model, window, steps=STEPS, schedule=schedule)
    errors, frame, began = [], window.fields[:, -1], time.perf_counter()
    for frame in progress.track(frames, total=STEPS, description=f"rolling out {name}"):
        truth = flows[:, START + len(errors)]
        errors.append(vrmse(frame, truth, ndim=model.domain.ndim).mean().item())
    seconds = time.perf_counter() - began
    return Outcome(name, errors, schedule.tokens(model.domain, STEPS), seconds, frame)


def _write_results(path: Path, outcomes: list[Outcome], updates: int, seed: int) -> None:
    rows = [
        {
            "schedule": o.schedule,
            "vrmse": o.errors,
            "vrmse_10": o.mean_error(10),
            "vrmse_all": o.mean_error(STEPS),
            "tokens": o.tokens,
            "seconds": o.seconds,
        }
        for o in outcomes
    ]
    content = {"updates": updates, "seed": seed, "steps": STEPS, "machine": machine(), "runs": rows}
    path.write_text(json.dumps(content, indent=2) + "\n")


def _tell(console: Console, outcomes: list[Outcome], out: Path, updates: int) -> None:
    table = Table(title=f"One model, {STEPS} rollout steps, five schedules")
    for name in ("schedule", "VRMSE, 10 steps", f"VRMSE, {STEPS} steps", "tokens", "seconds"):
        table.add_column(name, justify="left" if name == "schedule" else "right")
    for o in outcomes:
        numbers = f"{o.mean_error(10):.3f}", f"{o.mean_error(STEPS):.3f}"
        table.add_row(o.schedule, *numbers, f"{o.tokens:,}", f"{o.seconds:.1f}")
    console.print(table)
    console.print(
        f"The model was trained for {updates} updates only: it shows the code at work, not the "
        f"method's accuracy.\nLook at {out / 'rollout.png'}: the error of each schedule over the "
        "rollout, and the residuals.\nNext: examples/first_rollout.py, or `overtone demo --updates "
        "3000` for a better model.",
        soft_wrap=True,
    )


def _draw(path: Path, outcomes: list[Outcome], truth: Tensor) -> None:
    """Error curves, and the truth's and the schedules' last tracer fields with residuals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(13, 7.5), layout="constrained")
    subfigures: Any = figure.subfigures(1, 2, width_ratios=(1, 1.6))
    left, right = subfigures
    _draw_errors(left.subplots(), outcomes)
    _draw_fields(right, (outcomes[0], outcomes[2], outcomes[3]), truth[0, 0])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_errors(axes: Any, outcomes: list[Outcome]) -> None:
    colours = {"16": "#D55E00", "4-8-16": "#0072B2", "4": "#555555"}
    for outcome in outcomes:
        base, shifted, _ = outcome.schedule.partition("+shift")
        style = {"color": colours[base], "linestyle": "--" if shifted else "-"}
        axes.plot(range(1, STEPS + 1), outcome.errors, label=outcome.schedule, **style)
    axes.set(xlabel="rollout step", ylabel="VRMSE (1 = predicting the mean)", yscale="log")
    axes.set_title("Error of the same model under five schedules", fontsize=10)
    axes.legend(title="schedule")


def _draw_fields(figure: Any, outcomes: Sequence[Outcome], truth: Tensor) -> None:
    """The true tracer `(*space)` and the predicted ones above their residuals."""
    grid = figure.subplots(2, len(outcomes) + 1)
    length, height = SYSTEM.extent
    look = {"origin": "lower", "extent": (0, length, -height / 2, height / 2)}
    residuals = [outcome.frame[0, 0] - truth for outcome in outcomes]
    limit = max(residual.abs().max().item() for residual in residuals)
    names = ["truth", *(outcome.schedule for outcome in outcomes)]
    fields = [truth, *(outcome.frame[0, 0] for outcome in outcomes)]
    for axes, name, field in zip(grid[0], names, fields, strict=True):
        axes.imshow(field.T.numpy(), vmin=-0.5, vmax=0.5, **look)
        axes.set_title(name, fontsize=10)
    for axes, name, residual in zip(grid[1, 1:], names[1:], residuals, strict=True):
        axes.imshow(residual.T.numpy(), vmin=-limit, vmax=limit, cmap="RdBu_r", **look)
        axes.set_title(f"{name}: residual", fontsize=9)
    figure.colorbar(grid[0, 0].images[0], ax=grid[0], label="tracer")
    figure.colorbar(grid[1, 1].images[0], ax=grid[1], label="predicted − true")
    grid[1, 0].axis("off")
    for axes in grid.flat:
        axes.set(xlabel="x", ylabel="z")
        axes.label_outer()
    grid[1, 1].tick_params(labelleft=True)  # the panel to its left is empty
    grid[1, 1].set_ylabel("z")
    figure.suptitle(f"Tracer of one test flow at rollout step {STEPS}", fontsize=10)
