"""A rollout beside the truth, for a notebook: `plot_rollout(model, data)`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from overtone.data import ArrayWindows, WellFolder
from overtone.domain import Domain, Window
from overtone.errors import DataError
from overtone.evaluate import Evaluable
from overtone.evaluate.candidates import Candidate, usual_schedules
from overtone.evaluate.rollouts import sample_steps
from overtone.evaluate.samples import Samples
from overtone.report.figures.panels import field_panels
from overtone.rollout import Rule, parse_rule, rollout

MOST_STEPS = 40
"""Steps of a rollout, unless others are asked for."""


def plot_rollout(
    model: Evaluable,
    data: str | Path | WellFolder | ArrayWindows | np.ndarray | Tensor,
    *,
    schedule: Rule | str | int | Sequence[Rule | str | int] | None = None,
    steps: int | None = None,
    trajectory: int = 0,
    start: int = 0,
    split: str = "test",
    field: str | None = None,
) -> Figure:
    """Roll a model out and draw it beside the truth, with what it gets wrong.

    Args:
        model: predicts.
        data: a Well folder, a dataset of windows, or one trajectory `(T, C, *space)` in memory.
        schedule: one, or several; by default the cycle of all patches.
        steps: length of the rollout; as long as there is truth, at most 40, if None.
        trajectory: which one of the data.
        start: first frame of the context.
        split: of a Well folder.
        field: which one to draw; the first by default.

    Returns:
        A figure, which a notebook shows. What blows up ends there.
    """
    frames, domain = _frames(model, data, trajectory, split)
    context, available = model.context, len(frames) - start - model.context
    steps = min(available, MOST_STEPS) if steps is None else steps
    if not 1 <= steps <= available:
        raise DataError(
            f"steps is {steps} from frame {start} on; the trajectory has {len(frames)} frames, of "
            f"which {context} are the context: expected 1 to {max(available, 0)}"
        )
    window = Window(frames[None, start : start + context], domain)
    kept = sample_steps(steps)
    truth = frames[[start + context + step - 1 for step in kept]]
    predictions: dict[tuple[str, str], Tensor] = {}
    for chosen in _schedules(model, schedule):
        made = rollout(model, window, steps=steps, schedule=chosen, on_blow_up="drop")
        taken = [frame[0].cpu() for step, frame in enumerate(made, start=1) if step in kept]
        predictions["model", str(chosen)] = torch.stack(taken)
    return field_panels(Samples(domain, kept, truth, predictions), field)


def _frames(model: Evaluable, data: object, trajectory: int, split: str) -> tuple[Tensor, Domain]:
    """All frames of a trajectory, `(T, C, *space)`."""
    if isinstance(data, (str, Path)):
        data = WellFolder(data, split, context=model.context, fields=model.domain.fields)
    if isinstance(data, WellFolder):
        found = data.frames(trajectory, 0, data.num_frames(trajectory))
        return found.fields, found.domain
    if isinstance(data, (np.ndarray, Tensor)):
        array = cast("np.ndarray[Any, Any] | Tensor", data)
        data = ArrayWindows([array], model.domain, context=1)
    if not isinstance(data, ArrayWindows):
        raise DataError(
            f"data is a {type(data).__name__}; expected a Well folder, a dataset of windows, or a "
            "trajectory (T, C, *space)"
        )
    return data.trajectories[trajectory], data.domain


def _schedules(model: Evaluable, wanted: object) -> list[Rule]:
    if wanted is None:
        usual = usual_schedules(Candidate("model", model))
        return [usual[-2] if len(usual) > 1 else usual[0]]  # the cycle, without shifts
    several = isinstance(wanted, (list, tuple))
    return [parse_rule(one) for one in (wanted if several else [wanted])]  # pyright: ignore
