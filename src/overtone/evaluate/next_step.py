"""One step from true frames, at each patch that a model knows or is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from overtone.domain import Window
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.results import NextStep, estimate, estimates
from overtone.evaluate.trajectories import Trajectories
from overtone.grid import PatchGrid
from overtone.metrics import bsnmse, vrmse
from overtone.metrics.spectrum import BANDS
from overtone.rollout import rollout
from overtone.schedules import Constant, Patch

Pair = tuple[int, int]
"""A trajectory, and the frame of it to predict."""


def next_steps(
    candidate: Candidate,
    truth: Trajectories,
    *,
    patches: Sequence[Patch],
    windows: int,
    batch: int,
    seed: int,
    device: str,
    tick: Callable[[], None],
) -> tuple[NextStep, ...]:
    """Errors and costs of a single prediction at each patch.

    Args:
        candidate: the model.
        truth: what to predict.
        patches: at which, each once.
        windows: how many, spread evenly over the trajectories and their frames; at least one of
            each trajectory.
        batch: windows that are predicted at once.
        seed: of the bootstrap.
        device: where to compute.
        tick: called after each batch.
    """
    ndim = truth.domain.ndim
    num_fields = len(truth.domain.fields)
    # Of each patch and trajectory: the error of every field, then that of every band.
    sums = torch.zeros(len(patches), len(truth), num_fields + len(BANDS), dtype=torch.float64)
    counts = torch.zeros(len(truth), dtype=torch.float64)
    seconds = [0.0] * len(patches)
    pairs = pairs_of(truth, windows)
    for number, part in enumerate(_batches(truth, pairs, batch)):
        window, frame = _read(truth, part, candidate.model.context, device)
        rows = torch.tensor([row for row, _ in part])
        counts.index_add_(0, rows, torch.ones(len(rows), dtype=torch.float64))
        for i, patch in enumerate(patches):
            if number == 0:
                _step(candidate, window, patch)  # the first call makes tables
            predicted, took = _step(candidate, window, patch)
            error = _errors(predicted.cpu(), frame, ndim)
            # What is not a number is no prediction, and worse than any.
            sums[i].index_add_(0, rows, error.nan_to_num(nan=torch.inf, posinf=torch.inf))
            seconds[i] += took
        tick()
    return tuple(
        _result(candidate, truth, patch, sums[i] / counts[:, None], seconds[i] / len(pairs), seed)
        for i, patch in enumerate(patches)
    )


def _errors(predicted: Tensor, frame: Tensor, ndim: int) -> Tensor:
    """VRMSE of each field and BSNMSE of each band, mean over fields: `(B, C + bands)` float64."""
    bands = bsnmse(predicted.double(), frame.double(), ndim=ndim).mean(dim=1)
    return torch.cat([vrmse(predicted, frame, ndim=ndim).double(), bands], dim=1)


def _step(candidate: Candidate, window: Window, patch: Patch) -> tuple[Tensor, float]:
    """The next frame `(B, C, *space)`, finite or not, and the seconds that it took."""
    frames = rollout(
        candidate.model,
        window,
        steps=1,
        schedule=Constant(patch),
        check_finite=False,
        allow_untrained=candidate.allow_untrained,
        timed=True,
    )
    return next(frames), frames.seconds


def pairs_of(truth: Trajectories, windows: int) -> list[Pair]:
    """What to predict: some frames of every trajectory, evenly spread and at most `windows`.

    Where there are more trajectories than windows, it is one frame of each.
    """
    each = max(1, windows // len(truth))
    pairs = []
    for row in range(len(truth)):
        num = truth.num_targets(row)
        places = torch.linspace(0, num - 1, min(each, num)).round().int().tolist()
        pairs += [(row, truth.first + place) for place in places]
    return pairs


def num_batches(truth: Trajectories, windows: int, batch: int) -> int:
    """How often `next_steps` ticks."""
    return sum(1 for _ in _batches(truth, pairs_of(truth, windows), batch))


def _batches(truth: Trajectories, pairs: list[Pair], batch: int) -> Iterator[list[Pair]]:
    """Pairs in order, those of one domain together."""
    for rows in truth.batches(len(truth)):
        group = [pair for pair in pairs if pair[0] in rows]
        yield from (group[i : i + batch] for i in range(0, len(group), batch))


def _read(
    truth: Trajectories, pairs: list[Pair], context: int, device: str
) -> tuple[Window, Tensor]:
    """Windows on a device and the frames that follow."""
    windows = [truth.window([row], context, target) for row, target in pairs]
    fields = torch.cat([window.fields for window in windows])
    frames = torch.cat([truth.frame([row], target) for row, target in pairs])
    return Window(fields, windows[0].domain).to(device), frames


def _result(
    candidate: Candidate,
    truth: Trajectories,
    patch: Patch,
    errors: Tensor,
    seconds: float,
    seed: int,
) -> NextStep:
    """From errors `(N, C + bands)` of each trajectory, as `_errors` has them."""
    domain = truth.domain
    by_field, by_band = errors.split([len(domain.fields), len(BANDS)], dim=1)
    return NextStep(
        patch=patch,
        vrmse=estimate(by_field.mean(dim=1), seed=seed),
        fields=dict(zip(domain.fields, estimates(by_field, seed=seed), strict=True)),
        tokens=PatchGrid.lay(domain, patch).num_tokens,
        flops=candidate.flops(domain, patch),
        seconds=seconds,
        bsnmse=dict(zip(BANDS, estimates(by_band, seed=seed), strict=True)),
    )
