"""Trained models as part of the package: short weights, with card, log and a proof.

The proof is an error on data that takes seconds to make, so that anyone can see that the model
that he has does what its card says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from overtone.data import WellFolder
from overtone.errors import OvertoneError
from overtone.evaluate import evaluate, load_candidate
from overtone.evaluate.results import Results
from overtone.evaluate.run import one_core
from overtone.files import fingerprint
from overtone.guard.folders import claim
from overtone.models.storage import KIND, find_model, load_model, save_calibration
from overtone.rollout.calibrate import calibrate
from overtone.train.config import GenerateConfig, RunConfig
from overtone.train.journal import METRICS
from overtone.train.recipes import recipe
from overtone.train.run import data_folder
from overtone.train.settings import load_config
from studies.card import card
from studies.catalogue import FIXED

PROOF = {"trajectories": 2, "steps": 24, "splits": (0.0, 0.0, 1.0), "seed": 1000}
"""The proof's data: like the training data, but for these."""
MODELS = {
    "shear-flow-mini": ("csm", "ckm", *FIXED),
    "rayleigh-benard-mini": ("csm",),
    "turbulent-radiative-layer-2d-mini": ("csm",),
    "supernova-explosion-mini": ("csm",),
}
"""Study -> the models of it that are packaged."""

FIRST, STEPS = 12, 10
"""First frame that the proof predicts, and how many."""
DIGITS = 4
"""Of numbers in a log."""
MANTISSA = 8
"""Bits of a weight's mantissa that are kept, of the ten that half precision has. What is zero
takes no room in a wheel."""
CALIBRATED = 40
"""Steps that packaged models are calibrated for, where their data are long enough."""
MAX_CHANGE = 0.01
"""Largest relative change of an error that short weights may make."""


def package(run: Path, results: Results, label: str, name: str, out: Path) -> dict[str, Any]:
    """Write a packaged model and return its proof.

    Args:
        run: folder of its training.
        results: the evaluation that it was part of.
        label: its name there.
        name: the packaged model's.
        out: folder of all packaged models.
    """
    config, folder = load_config(run / "config.json"), out / name
    (found,) = [m for m in results.models if m.name == label and m.seed == config.train.seed]
    model = load_model(run)
    # Scales have physical units, which half precision may be too narrow for.
    learned = {key: short(tensor) for key, tensor in model.named_parameters()}
    weights = {**model.state_dict(), **learned}
    training = {**load_candidate(run).training}
    training.pop("longer", None)  # nobody else has the run that could go on
    model.save(folder, weights=weights, training=training)
    packaged = claim(folder, KIND)
    packaged.file("README.md").write_text(card(name, config, results, found))
    packaged.file(METRICS).write_text(short_log((run / METRICS).read_text()))
    full, stored = prove(find_model(run), config), prove(folder, config)
    for what, before in full["vrmse"].items():
        change = abs(stored["vrmse"][what] / before - 1)
        if change > MAX_CHANGE:
            raise OvertoneError(f"short weights change {what} of {name} by {100 * change:.1f} %")
    return stored


def short(tensor: Tensor, bits: int = MANTISSA) -> Tensor:
    """Numbers in half precision, rounded to the nearest with so many bits of mantissa.

    Args:
        tensor: of any shape and floating-point precision.
        bits: at most ten.
    """
    dropped = 10 - bits
    if dropped == 0:
        return tensor.half()
    # A carry out of the mantissa goes to the exponent, as it should; the sign bit stays as it is.
    pattern = tensor.detach().half().view(torch.int16).to(torch.int32)
    even = (pattern >> dropped) & 1  # of two that are equally near, that with a zero at its end
    pattern = (pattern + (1 << (dropped - 1)) - 1 + even) & -(1 << dropped)
    return pattern.to(torch.int16).view(torch.float16)


def short_log(text: str) -> str:
    """A training's log with numbers of `DIGITS` digits, which curves don't show the end of."""

    def shorter(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shorter(entry) for key, entry in value.items()}
        return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value

    lines = (
        json.dumps(shorter(json.loads(line)), separators=(",", ":"))
        for line in text.split("\n")
        if line
    )
    return "".join(f"{line}\n" for line in lines)


def prove(model: Path | str, config: RunConfig) -> dict[str, Any]:
    """Errors of a model on freshly generated data that nobody trained on.

    Args:
        model: its folder or name.
        config: of its training, which says how its data is made.
    """
    candidate = load_candidate(model)
    made, start = proof_data(config), FIRST - candidate.model.context
    results, _ = evaluate(
        [candidate],
        data_folder(config.data.model_copy(update={"generate": made})),
        schedules=["-".join(map(str, candidate.model.patches))],
        steps=STEPS,
        start=start,
        windows=8,
        coarsen=config.data.coarsen,
    )
    (found,) = results.models
    errors = {f"next step, {step.patch}": step.vrmse.value for step in found.next_step}
    errors |= {f"rollout, {run.schedule}": run.vrmse_all.value for run in found.runs}
    return {"data": made.model_dump(mode="json"), "start": start, "steps": STEPS, "vrmse": errors}


def proof_data(config: RunConfig) -> GenerateConfig:
    """What to generate."""
    assert config.data.generate is not None
    return config.data.generate.model_copy(update=PROOF)


def calibrate_packaged(names: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Calibrate packaged models on the validation split of the data that they were trained on.

    Args:
        names: of packaged models; all of several patches by default.
    """
    for name in names or [f"{study}-{kind}" for study, kinds in MODELS.items() for kind in kinds]:
        model = load_model(name)
        if len(model.patches) < 2 and not names:
            continue
        config = recipe(str(load_candidate(name).training.get("recipe")))
        how = {"stride": config.data.stride, "coarsen": config.data.coarsen}
        frames = config.data.generate.steps if config.data.generate else CALIBRATED
        steps = min(CALIBRATED, frames - model.context)
        data = WellFolder(data_folder(config.data), "valid", model.context, steps,
                          fields=model.domain.fields, **how)  # fmt: skip
        with closing(data), one_core():
            about = {"name": data.layouts[0].dataset_name, "split": "valid",
                     "fingerprint": fingerprint(data.files),
                     "trajectories": data.num_trajectories}  # fmt: skip
            found = calibrate(model, data, about=about)
        yield name, save_calibration(name, found)
