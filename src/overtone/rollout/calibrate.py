"""From disagreements to errors: what a validation split tells about a model's estimates.

For every patch, single steps from true frames give the ratio of the true error to the disagreement
with another answer (`step PATCH`), and the patch's usual error, by which controllers choose. For
some schedules, whole rollouts give the ratio of a frame's true error to what the disagreements of
its steps come to, at each step; all of them together (`*`) serve schedules and controllers that
were not among them.

Windows are spread over the split. Those of one trajectory are related, so that an interval holds
its share of *rollouts like these*, and somewhat less surely than its level says where there are few
trajectories.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from overtone.data import Items, collate_mixed
from overtone.domain import Window
from overtone.errors import OvertoneError
from overtone.metrics import vrmse
from overtone.models.base import Model
from overtone.models.calibration import ANY, Band, Calibration, step_of
from overtone.progress import Tick
from overtone.rollout.estimates import (
    PROBES,
    Against,
    half_moved,
    next_coarser,
    ordered,
    parse_against,
)
from overtone.rollout.loop import rollout
from overtone.schedules import Choice, Constant, Cycle, Patch, Schedule, Shifted, parse_schedule

WINDOWS = 40
"""Rollouts of each schedule; an interval of 90 % needs 19."""
STEPS = 40


def calibrate(
    model: Model,
    data: Items,
    *,
    windows: int = WINDOWS,
    batch: int = 8,
    schedules: Sequence[Schedule | str] | None = None,
    against: Sequence[Against] = PROBES[:1],
    about: Mapping[str, Any] | None = None,
    device: torch.device | str = "cpu",
    progress: Tick | None = None,
) -> Calibration:
    """Measure what a model's disagreements are worth.

    Args:
        model: with patches; it is left in the mode that it was in.
        data: pairs of a window `(T, C, *space)` and the frames that follow, `(steps, C, *space)`:
            a validation split, which the model was not trained on.
        windows: how many of them, spread evenly; fewer if there are fewer.
        batch: of them at once.
        schedules: whose rollouts are measured; each patch and their cycle, with shifts, by default.
        against: what rollouts are compared with, as for `rollout`'s `estimate`. Single steps are
            always compared with both probes.
        about: what to say of the data, plain data.
        device: where to compute.
        progress: called as the work goes on.

    Returns:
        The calibration, of the weights that the model was read with. `model.calibration = …` makes
        the model use it, and `save` keeps it.
    """
    if not model.patched:
        raise OvertoneError(
            f"the model ({type(model).__name__}) has no patches, so it can't disagree with itself; "
            "calibrate a model with patches"
        )
    if not len(data):
        raise OvertoneError("there are no windows to calibrate with; give a longer split")
    domain = data[0][0].domain
    patches = ordered(model.patches, domain.ndim)
    chosen = [parse_schedule(s) for s in schedules or _usual(patches)]
    kinds = [parse_against(one) for one in against]
    work = _Work(model, data, _spread(len(data), windows), batch, device, progress)
    work.total = len(patches) + len(chosen) * len(kinds)
    bands: dict[tuple[str, str], Band] = {}
    with _measuring(model):
        errors: dict[str, float] = {}
        for patch in patches:
            found = work.single_steps(patch, patches)
            errors[step_of(patch).removeprefix("step ")] = float(found.errors.mean(2).median())
            for kind, disagreements in found.disagreements.items():
                bands[step_of(patch), kind] = Band.measure(found.errors, disagreements)
        result = Calibration(
            weights=model.digest,
            shape=domain.shape,
            fields=domain.fields,
            errors=errors,
            bands=dict(bands),
            data={"windows": len(work.places), "steps": len(data[0][1]), **(about or {})},
        )
        model.calibration = result  # from here on with the ratios of single steps
        for kind in kinds:
            assert kind is not None
            pool: list[tuple[Tensor, Tensor]] = []
            for schedule in chosen:
                pair = work.rollouts(schedule, kind)
                bands[str(schedule), str(kind)] = Band.measure(*pair)
                pool.append(pair)
            errors_of_all = torch.cat([own for own, _ in pool])
            bands[ANY, str(kind)] = Band.measure(errors_of_all, torch.cat([d for _, d in pool]))
    return replace(result, bands=bands)


def _usual(patches: Sequence[Patch]) -> list[Schedule]:
    """Each patch, and the cycle of all, with shifts."""
    found: list[Schedule] = [Shifted(Constant(patch)) for patch in patches]
    return [*found, Shifted(Cycle(*patches))] if len(patches) > 1 else found


def _spread(num: int, wanted: int) -> list[int]:
    """Evenly spaced indices, first and last among them."""
    count = min(num, wanted)
    return [round(i * (num - 1) / max(count - 1, 1)) for i in range(count)]


@contextmanager
def _measuring(model: Model) -> Generator[None]:
    """The model in evaluation mode, without the calibration that it had."""
    training, before = model.training, model.calibration
    try:
        model.eval()
        model.calibration = None
        with torch.no_grad():
            yield
    finally:
        model.train(training)
        model.calibration = before


@dataclass(frozen=True, eq=False)
class _Single:
    """Single steps at a patch: errors, and disagreements by kind, each `(n, 1, C)`."""

    errors: Tensor
    disagreements: dict[str, Tensor]


@dataclass
class _Work:
    """What all measurements share."""

    model: Model
    data: Items
    places: list[int]
    batch: int
    device: torch.device | str
    progress: Tick | None
    done: int = 0
    total: int = 0

    def batches(self) -> Iterator[tuple[int, Window, Tensor]]:
        """Number, windows `(B, T, C, *space)` and what follows them `(B, steps, C, *space)`."""
        for number, first in enumerate(range(0, len(self.places), self.batch)):
            items = [self.data[place] for place in self.places[first : first + self.batch]]
            window, target = collate_mixed(items)
            yield number, window.to(self.device), target.to(self.device)

    def single_steps(self, patch: Patch, patches: Sequence[Patch]) -> _Single:
        """Steps from true frames; every other batch has its grid moved."""
        errors: list[Tensor] = []
        others: dict[str, list[Tensor]] = {kind: [] for kind in PROBES}
        moved = Shifted(Constant(patch))
        for number, window, target in self.batches():
            domain, ndim = window.domain, window.domain.ndim
            choice = (moved(number) if number % 2 else Choice(patch)).on(domain)
            frame = self.model(window, choice.patch, choice.shift)
            errors.append(vrmse(frame, target[:, 0], ndim=ndim).cpu()[:, None])
            probes = {
                "patch": next_coarser(choice, patches, ndim),
                "shift": half_moved(choice, ndim),
            }
            for kind, probe in probes.items():
                other = self.model(window, probe.patch, probe.shift)
                others[kind].append(vrmse(other, frame, ndim=ndim).cpu()[:, None])
        self._tell(f"steps at patch {patch}")
        return _Single(torch.cat(errors), {kind: torch.cat(o) for kind, o in others.items()})

    def rollouts(self, schedule: Schedule, against: Against) -> tuple[Tensor, Tensor]:
        """True errors and accumulated disagreements of all rollouts, `(n, steps, C)`."""
        errors: list[Tensor] = []
        estimates: list[Tensor] = []
        for _, window, target in self.batches():
            frames = rollout(
                self.model,
                window,
                steps=target.shape[1],
                schedule=schedule,
                estimate=against,
                on_blow_up="hold",
            )
            pairs: tuple[list[Tensor], list[Tensor]] = [], []
            for frame, true in zip(frames, target.unbind(dim=1), strict=True):
                assert frames.estimate is not None
                error = vrmse(frame, true, ndim=window.domain.ndim).cpu()
                error[~frames.alive.cpu()] = torch.inf
                pairs[0].append(error)
                pairs[1].append(frames.estimate.fields.float().nan_to_num(nan=1.0).cpu())
            errors.append(torch.stack(pairs[0], dim=1))
            estimates.append(torch.stack(pairs[1], dim=1))
        self._tell(f"{schedule} against {against}")
        return torch.cat(errors), torch.cat(estimates)

    def _tell(self, what: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total, what)
