"""The paper's physics over 50 steps (its appendix H), by every reading of its two sentences.

It gives the residuals |∇·u| and |∂u/∂t - ν∇²u + u·∇u + ∇p|, and "normalized deviations relative to
the ground truth" over four trajectories. How derivatives are taken is open, so there are several
readings; each is a domain, on which the library's own measures are computed:

    spectral       as the data is: periodic, cells of its box, frames its dt apart
    differences    the same, with finite differences
    spacing 1      finite differences without a spacing, so per cell and per frame

By each of them, `deviation` is |mean(prediction) - mean(truth)| / mean(truth), means over space and
all steps, and `balance` the same gap over the mean of the terms that cancel in the truth. `truth`
is the truth's own mean over its terms: how well a simulation, averaged to this grid, obeys.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from overtone.domain import Domain, Window
from overtone.evaluate.run import one_core
from overtone.files import replacing
from overtone.metrics import physics
from overtone.models.emulator import Emulator
from overtone.rollout import rollout
from overtone.schedules import parse_schedule
from overtone.solvers import ShearFlow
from overtone.version import machine
from studies.kinds import SHEAR

FILE = "residuals.json"
COMMAND = "python -m studies residuals"
REYNOLDS, FINE, COARSEN, DT = 5e3, (128, 128), 2, 0.1
"""The data's recipe."""
SEED, NUM, START, STEPS = 4321, 4, 20, 50
"""Trajectories that no split has, as many as the paper's; first frame of the context; horizon."""
MODELS = (("csm", "4-8-16"), ("ckm", "4-8-16"), ("csm", "16"), ("fixed16", "16"))
Balance = Callable[[Tensor, Domain], tuple[Tensor, Tensor]]
"""Frames `(N, T, C, *space)` -> means of residual and terms over space and steps, `(N,)` each."""


def run(results: str | Path, *, num: int = NUM, steps: int = STEPS) -> Path:
    """Measure the packaged models of shear flow and write `residuals.json`.

    Args:
        results: folder.
        num: trajectories.
        steps: of the rollouts.
    """
    model = _model("csm")
    frames = flows(num, START + model.context + steps)
    truth = frames[:, START + model.context - 2 :]
    found: dict[str, Any] = {}
    with one_core():
        for kind, schedule in MODELS:
            model = _model(kind)
            window = Window(frames[:, START : START + model.context], model.domain)
            made = rollout(model, window, steps=steps, schedule=parse_schedule(schedule))
            predicted = torch.stack([*truth[:, :2].unbind(1), *made], dim=1)
            found[f"{kind}:{schedule}"] = {
                **compare(predicted, truth, model.domain),
                "divergent": divergent_share(predicted[:, 2:] - truth[:, 2:], model.domain),
            }
    content = {
        "command": COMMAND,
        "machine": machine(),
        "setting": {"trajectories": num, "steps": steps, "start": START, "reynolds": REYNOLDS},
        "truth": own(truth, model.domain),
        "models": found,
    }
    path = Path(results) / FILE
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
    return path


def flows(num: int, steps: int) -> Tensor:
    """Frames `(num, steps, C, 64, 64)` of flows that no model saw."""
    system = ShearFlow(shape=FINE, dt=DT, reynolds=REYNOLDS)
    fine = torch.stack(list(system.trajectory(num, steps, seed=SEED)), dim=1).float()
    return torch.nn.functional.avg_pool2d(fine.flatten(0, 1), COARSEN).unflatten(0, (num, steps))


def readings(domain: Domain) -> dict[str, Domain]:
    """Reading -> the domain that it takes the data to be on."""
    shape, fields = domain.shape, domain.fields
    plain = Domain(shape, domain.extent, "open", fields, domain.dt)
    unit = Domain(shape, tuple(float(n) for n in shape), "open", fields, 1.0)
    return {"spectral": domain, "differences": plain, "spacing 1": unit}


def mass(frames: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """Of all frames behind the first two."""
    velocity = frames[:, 2:, 2:]
    return (
        _mean(physics.mass_residual(velocity, domain)),
        _mean(physics.mass_terms(velocity, domain)),
    )


def momentum(frames: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """Of all frames that have one before and one after."""
    flow, nu = (frames[:, :, 2:], frames[:, :, 1], domain), 1 / REYNOLDS
    return (
        _mean(physics.momentum_residual(*flow, viscosity=nu)),
        _mean(physics.momentum_terms(*flow, viscosity=nu)),
    )


def _mean(values: Tensor) -> Tensor:
    """Mean over all but the first axis."""
    return values.flatten(1).mean(dim=1)


LAWS: dict[str, Balance] = {"mass": mass, "momentum": momentum}


def compare(
    predicted: Tensor, truth: Tensor, domain: Domain
) -> dict[str, dict[str, dict[str, float]]]:
    """Reading -> law -> deviation and balance, mean over trajectories.

    Args:
        predicted, truth: `(N, T, C, *space)`; the first two frames are the context's last.
        domain: of the data.
    """
    return {
        name: {law: _gaps(balance(predicted, place), balance(truth, place))
               for law, balance in LAWS.items()}
        for name, place in readings(domain).items()
    }  # fmt: skip


def _gaps(predicted: tuple[Tensor, Tensor], truth: tuple[Tensor, Tensor]) -> dict[str, float]:
    residual, terms = truth
    gap = (predicted[0] - residual).abs()
    found = {"deviation": gap / residual, "balance": gap / terms}
    return {name: values.mean().item() for name, values in found.items()}


def own(truth: Tensor, domain: Domain) -> dict[str, dict[str, float]]:
    """Reading -> law -> the truth's residual over its terms, mean over trajectories."""
    found: dict[str, dict[str, float]] = {}
    for name, place in readings(domain).items():
        pairs = {law: balance(truth, place) for law, balance in LAWS.items()}
        found[name] = {law: (rest / terms).mean().item() for law, (rest, terms) in pairs.items()}
    return found


def divergent_share(error: Tensor, domain: Domain) -> float:
    """What part of the gradient of the velocity's error is divergence: Σ(∇·e)² / Σ|∇e|².

    0 for an error that is a flow without divergence, 1 for the gradient of a potential, a half for
    one that knows nothing of mass.

    Args:
        error: `(N, T, C, *space)`.
        domain: what it lives on.
    """
    velocity = error[:, :, 2:]
    slopes = physics.gradient(velocity, domain)  # component before direction
    return (physics.divergence(velocity, domain).square().sum() / slopes.square().sum()).item()


def _model(kind: str) -> Emulator:
    return Emulator.from_pretrained(f"{SHEAR}-{kind}")
