"""Does a model know its error? Estimates as an instrument, and controllers against schedules.

`python -m studies assess SYSTEM` takes trained models, calibrates them on the validation split, and
measures

- *estimates* on the test split, on parameters that training never saw, and on corrupted input, by
  the calibration up to step `HORIZON`, and on the test split beyond it; and whether a first step
  tells that its input is strange,
- *controllers* of several tolerances beside constants, cycles, bursts, random schedules and the
  plan that the model gets for the cycle's tokens: error over 10 and over all steps, the worst
  trajectory, and tokens with all comparisons, on the test split and on a set of mixed difficulty.

What is found goes into `results/assess.json`, system by system. With several models, of one seed
each, pages show means over them and the range.

`--tried` compares controllers alone, those of `candidates` among them, on a mixed set of other
starts that is for trying things out, with the calibration that the packaged model has.

A model is calibrated once, over all steps, by the cycle and the coarsest patch, between which
controllers move; what knows fewer steps is that calibration cut short.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from overtone.assess.plan import plan
from overtone.data import WellFolder
from overtone.domain import Window
from overtone.errors import ConfigError, OvertoneError, suggest
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.results import storable
from overtone.evaluate.run import one_core
from overtone.files import cache_dir, replacing
from overtone.guard.locks import locked
from overtone.metrics import vrmse
from overtone.models.base import Model
from overtone.models.calibration import Band, Calibration
from overtone.models.storage import load_model, load_with_config
from overtone.rollout import ErrorEstimate, rollout
from overtone.rollout.calibrate import calibrate
from overtone.rollout.estimates import Accumulator, distance
from overtone.schedules import parse_schedule
from overtone.solvers.datasets import build_system, generate
from overtone.train.recipes import DEVELOPED, recipe
from overtone.train.run import data_folder
from overtone.version import machine
from studies.candidates import CANDIDATES, signals
from studies.control import Control, Set, further_rules, usual_rules
from studies.instrument import detection, map_likeness, quality

Tell = Callable[[str], None]
"""Takes a line for whoever waits."""

CONTEXT = 8
HORIZON, STEPS = 20, 40
"""Steps that estimates are calibrated for, and that are made."""
WINDOWS = 40
"""Rollouts of each schedule in the calibration."""
STARTS = 3
"""Starts of each validation trajectory that a plan is made with, at most."""
EACH = 4
"""Trajectories of each variant in the set of mixed difficulty."""
PARTS = ("systems", "tried", "signals")
"""Of the file; each has an entry for each system."""
TRYING = 1234
"""Seed of the mixed set for trying things out; the other one has 77."""
NOISE = (0.02, 0.1)
"""Noise on the input, in standard deviations of each field."""


@dataclass(frozen=True)
class System:
    """What differs between systems.

    Attributes:
        start: first frame of a rollout's context.
        parameter: what changes the difficulty.
        others: values of it that training never saw.
    """

    start: int
    parameter: str
    others: tuple[float, ...]


SYSTEMS = {
    "shear-flow-mini": System(DEVELOPED - CONTEXT, "reynolds", (1e3, 2e4)),
    "rayleigh-benard-mini": System(12, "rayleigh", (2e5, 2e6)),
    "turbulent-radiative-layer-2d-mini": System(12, "t_cool", (0.1, 1.0)),
}


@dataclass(frozen=True)
class Size:
    """How much is measured; less in a smoke run."""

    steps: int = STEPS
    horizon: int = HORIZON
    windows: int = WINDOWS
    trajectories: int | None = None
    each: int = EACH
    starts: int = STARTS


QUICK = Size(steps=4, horizon=2, windows=4, trajectories=2, each=1, starts=1)


def run(
    name: str,
    models: Sequence[str],
    out: Path,
    *,
    size: Size | None = None,
    schedules: Sequence[str] = (),
    tell: Tell = print,
) -> dict[str, Any]:
    """Measure models of one system, and add them to the file of results.

    Args:
        name: of the system, a key of `SYSTEMS`.
        models: folders or packaged names, one for each seed; the packaged CSM if empty.
        out: folder that gets `assess.json`.
        size: how much is measured; all by default.
        schedules: further ones beside the usual. A `plan:FILE` is followed by the model that it was
            made for, so several seeds need one each.
        tell: told how far it is.

    Returns:
        What the file holds now.
    """
    size, system = size or Size(), _system(name)
    loaded = {path: load_with_config(path) for path in models or (f"{name}-csm",)}
    for path, (model, _) in loaded.items():
        _require(model, path)
    followed = further_rules(schedules, {path: model for path, (model, _) in loaded.items()})
    data, mixed = data_folder(recipe(name).data), mixed_folder(name, system, size)
    found = []
    with one_core():
        for path, (model, config) in loaded.items():
            tell(f"{name}: {path}")
            bench = Bench(model, name, system, size, Path(data), mixed, tell)
            measured = bench.measure(followed[path])
            seed = dict(config.get("training") or {}).get("seed")
            found.append({"model": Path(path).name, "seed": seed, **measured})
    return _save(out / "assess.json", "systems", name, found)


def tried(name: str, out: Path, *, size: Size | None = None, tell: Tell = print) -> dict[str, Any]:
    """Compare controllers on a set that is neither the test split nor its mixed set.

    Arguments are those of `run`; the model is the packaged CSM.
    """
    size, system = size or Size(), _system(name)
    model = load_model(f"{name}-csm")
    mixed = mixed_folder(name, system, size, seed=TRYING)
    bench = Bench(model, name, system, size, mixed, mixed, tell)
    own, _ = bench._read(mixed, "test", system.start)
    with one_core():
        rows = Control(model, own, tell).run({**usual_rules(model), **CANDIDATES})
        coarse, fine = (rows[rule]["errors"] for rule in (bench.second, bench.cycle))
        told = signals(model, own, coarse, fine)
    _save(out / "assess.json", "signals", name, told)
    return _save(out / "assess.json", "tried", name, rows)


def _system(name: str) -> System:
    if name not in SYSTEMS:
        known = ", ".join(SYSTEMS)
        raise ConfigError(f"there is no system '{name}'{suggest(name, list(SYSTEMS))}; {known}")
    return SYSTEMS[name]


def _require(model: Model, path: str) -> None:
    if not model.patched or len(model.patches) < 2:
        raise OvertoneError(f"'{path}' has one patch; this study needs models of several")


def _save(path: Path, part: str, name: str, found: Any) -> dict[str, Any]:
    """Add what was found to the file; commands that run side by side wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent, wait=lambda _: None):
        before = json.loads(path.read_text()) if path.exists() else {}
        content = {
            "command": "python -m studies assess SYSTEM",
            "machine": machine(),
            "horizon": HORIZON,
            **{key: before.get(key, {}) for key in PARTS},
        }
        content[part] |= {name: found}
        with replacing(path) as scratch:
            scratch.write_text(_packed(storable(content, digits=4)))
    return content


def _packed(content: Any) -> str:
    """JSON with a line for each model: half the size of one for each number."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace('{"model":', '\n{"model":') + "\n"


def mixed_folder(name: str, system: System, size: Size, seed: int = 77) -> Path:
    """A test set of mixed difficulty: the training's own parameter, and others, in one folder."""
    made = recipe(name).data.generate
    assert made is not None
    settings = [made.settings, *(made.settings | {system.parameter: v} for v in system.others)]
    frames = system.start + CONTEXT + size.steps
    folder = cache_dir() / "data" / f"assess-{name}-{size.each}x{frames}-{seed}"
    variants = [build_system(made.system, grid=made.grid, **own) for own in settings]
    return generate(
        variants, folder, trajectories=size.each, steps=frames, seed=seed, splits=(0.0, 0.0, 1.0),
        wait=True,
    )  # fmt: skip


class Bench:
    """All measurements of one model."""

    def __init__(
        self,
        model: Model,
        name: str,
        system: System,
        size: Size,
        data: Path,
        mixed: Path,
        tell: Tell,
    ):
        self.model, self.size, self.tell, self.system = model, size, tell, system
        made = recipe(name).data
        self.how: dict[str, Any] = {"stride": made.stride, "coarsen": made.coarsen}
        self.data, self.mixed = data, mixed
        self.cycle = "-".join(map(str, model.patches)) + "+shift"
        self.second = f"{model.patches[-1]}+shift"

    def measure(self, further: Mapping[str, str]) -> dict[str, Any]:
        """Estimates, detection and controllers, with further rules by name."""
        test, _ = self._read(self.data, "test", self.system.start)
        mixed, values = self._read(self.mixed, "test", self.system.start)
        other = mixed.only(self._unseen(values))
        whole = self._calibrated()
        self.model.calibration = shortened(whole, self.size.horizon)
        sets = {"other parameters": other, **self._corrupted(test)}
        near = {what: own.until(self.size.horizon) for what, own in sets.items()}
        instrument, scores = {}, {}
        for what, own in {"test": test, **near}.items():
            self.tell(f"  estimates: {what}")
            instrument[what], scores[what] = self._estimates(own)
        usual = scores.pop("test")
        self.model.calibration = whole
        planned = self._planned(test.window)
        rules = usual_rules(self.model) | {"plan": planned["schedule"]} | dict(further)
        controls = {what: Control(self.model, own, self.tell)
                    for what, own in (("test", test), ("mixed", mixed))}  # fmt: skip
        return {
            "cycle": self.cycle,
            "plan": planned,
            "instrument": instrument,
            "detection": {what: detection(usual, found) for what, found in scores.items()},
            "control": {what: control.run(rules) for what, control in controls.items()},
            "example": {what: control.example for what, control in controls.items()},
        }

    def _calibrated(self) -> Calibration:
        """What disagreements are worth, over all steps."""
        folder = WellFolder(
            self.data, "valid", self.model.context, self.size.steps,
            fields=self.model.domain.fields, **self.how,
        )  # fmt: skip
        with closing(folder):
            return calibrate(
                self.model, folder, windows=self.size.windows, against=["patch", self.second],
                schedules=[self.cycle, self.second],
                progress=lambda done, total, what: self.tell(f"  {done}/{total} {what}"),
            )  # fmt: skip

    def _planned(self, window: Window) -> dict[str, Any]:
        """The plan for the cycle's tokens, made on the validation split."""
        steps = self.size.steps
        tokens = parse_schedule(self.cycle).tokens(window.domain, steps)
        self.tell(f"  plan for {tokens} tokens")
        found = plan(
            Candidate("model", self.model), self.data, steps=steps, tokens=tokens,
            starts=self.size.starts, split="valid", start=self.system.start, **self.how,
        )  # fmt: skip
        return {"schedule": found.schedule, "tokens": tokens, "expected": found.error.value}

    def _unseen(self, values: Sequence[float]) -> list[int]:
        """Trajectories of a mixed set whose parameter training never saw, in whatever order."""
        others = self.system.others
        return [row for row, own in enumerate(values)
                if any(math.isclose(own, other) for other in others)]  # fmt: skip

    def _read(self, path: Path, split: str, start: int) -> tuple[Set, list[float]]:
        """From each trajectory one rollout, and the value of its parameter."""
        context, steps = self.model.context, self.size.steps
        folder = WellFolder(path, split, context, 1, fields=self.model.domain.fields, **self.how)
        with closing(folder):
            count = folder.num_trajectories
            count = count if self.size.trajectories is None else min(count, 3 * self.size.each)
            first = start + CONTEXT - context
            frames = [folder.frames(row, first, context + steps) for row in range(count)]
            facts = [folder.parameters(folder.first_item(row)) for row in range(count)]
        fields = torch.stack([found.fields for found in frames])
        values = [float(own[self.system.parameter]) for own in facts]
        return Set(Window(fields[:, :context], frames[0].domain), fields[:, context:]), values

    def _corrupted(self, test: Set) -> dict[str, Set]:
        """The test split with noise on its input, and with two fields exchanged."""
        fields, domain = test.window.fields, test.window.domain
        space = (1, *range(3, fields.dim()))
        random = torch.Generator().manual_seed(0)
        noise = torch.randn(fields.shape, generator=random) * fields.std(dim=space, keepdim=True)
        found = {f"noise {share:g}": Set(Window(fields + share * noise, domain), test.truth)
                 for share in NOISE}  # fmt: skip
        if len(domain.fields) > 1:
            order = [*range(len(domain.fields))]
            order[-2:] = order[:-3:-1]
            found["fields exchanged"] = Set(Window(fields[:, :, order], domain), test.truth)
        return found

    def _estimates(self, own: Set) -> tuple[dict[str, Any], list[float]]:
        """Quality of both estimates, within the horizon and beyond; and scores of first steps."""
        errors: list[Tensor] = []
        alike: dict[str, list[float]] = {"patch": [], self.second: []}
        told: dict[str, list[list[ErrorEstimate]]] = {"patch": [], self.second: []}
        for window, truth in own.batches():
            error, estimates, likeness = self._fly(window, truth)
            errors.append(error)
            for against, steps in estimates.items():
                told[against].append(steps)
                alike[against].append(likeness[against])
        error, found, horizon = torch.cat(errors), {}, self.size.horizon
        for against, parts in told.items():
            values, bounds = _gathered(parts)
            for part, steps in (("within", slice(horizon)), ("beyond", slice(horizon, None))):
                if not error[:, steps].numel():
                    continue
                cut = {level: (low[:, steps], high[:, steps])
                       for level, (low, high) in bounds.items()}  # fmt: skip
                found[f"{against}, {part}"] = quality(error[:, steps], values[:, steps], cut)
            found[f"{against}, within"]["maps"] = sum(alike[against]) / len(alike[against])
        return found, torch.cat([steps[0].local for steps in told["patch"]]).tolist()

    def _fly(
        self, window: Window, truth: Tensor
    ) -> tuple[Tensor, dict[str, list[ErrorEstimate]], dict[str, float]]:
        """True errors `(B, S)`, estimates of all steps by what they are compared with, and maps.

        One rollout serves both comparisons: what the second one tells is gathered here as
        `rollout(..., estimate=SCHEDULE)` would, frame by frame.
        """
        steps, domain = truth.shape[1], window.domain
        frames = rollout(self.model, window, steps=steps, schedule=self.cycle, estimate="patch",
                         on_blow_up="hold")  # fmt: skip
        beside = rollout(self.model, window, steps=steps, schedule=self.second, on_blow_up="hold")
        rule = parse_schedule(self.second)
        judge = Accumulator(self.cycle, rule, domain, self.model.calibration, len(truth))
        told: dict[str, list[ErrorEstimate]] = {"patch": [], self.second: []}
        errors, alike = [], {}
        for step, (frame, other, true) in enumerate(
            zip(frames, beside, truth.unbind(dim=1), strict=True), start=1
        ):
            assert frames.estimate is not None
            errors.append(vrmse(frame, true, ndim=domain.ndim).mean(dim=1).double())
            rows = frames.alive.nonzero()[:, 0]
            apart = distance(other[rows], frame[rows], domain.ndim)
            told["patch"].append(frames.estimate)
            told[self.second].append(
                judge.add(step, rows, apart, other[rows] - frame[rows], tokens=0.0)
            )
            if step == max(self.size.horizon // 2, 1):
                alike = {against: map_likeness(own[-1].map, (frame - true).abs())
                         for against, own in told.items()}  # fmt: skip
        return torch.stack(errors, dim=1), told, alike


def shortened(calibration: Calibration, steps: int) -> Calibration:
    """What a calibration would be that knows fewer steps of the same rollouts."""

    def cut(band: Band) -> Band:
        bounds = {level: (low[:steps], high[:steps]) for level, (low, high) in band.bounds.items()}
        return Band(band.factor[:steps], band.fields[:steps], bounds, band.count)

    return replace(calibration, bands={key: cut(band) for key, band in calibration.bands.items()})


def _gathered(
    estimates: Sequence[Sequence[ErrorEstimate]],
) -> tuple[Tensor, dict[float, tuple[Tensor, Tensor]]]:
    """Values `(N, S)` and bounds of several batches of estimates."""
    values = torch.cat([torch.stack([e.value for e in steps], dim=1) for steps in estimates])
    bounds = {}
    for level in estimates[0][0].bounds:
        pair = [torch.cat([torch.stack([e.bounds[level][side] for e in steps], dim=1)
                           for steps in estimates]) for side in (0, 1)]  # fmt: skip
        bounds[level] = (pair[0], pair[1])
    return values, bounds
