"""`overtone diagnose`: is there a grid artifact in the output of an emulator, any emulator?

The residual is read one frame at a time and twice, so that memory does not grow with its length:

1. some frames, spread over samples and steps, are searched for a period (`artifacts/periods.py`)
   and for seams (`artifacts/seams.py`), which count where there is no period, or where it is that
   of the blocks that a decoder leaves within patches;
2. all frames are followed at that period: how strong it is at each step, and where in the patch.

A field's residual is measured in units of the truth's standard deviation. Everything that comes
out is plain data (`diagnosis.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from overtone.data.frames import Frames, match
from overtone.domain import BoundarySpec
from overtone.evaluate.diagnosis import AXES, Artifact, AxisPower, Diagnosis, Sign, describe
from overtone.evaluate.survey import View, survey
from overtone.metrics.artifacts.growth import Fold, HarmonicTracker, fold, growth_exponent
from overtone.metrics.artifacts.harmonics import Patch, harmonic_excess
from overtone.metrics.artifacts.lattice import check_patch
from overtone.metrics.artifacts.periods import Period, PeriodFinder
from overtone.metrics.artifacts.seams import SeamFinder, Seams, jumps, seam_height, seams
from overtone.metrics.artifacts.thresholds import ALPHA
from overtone.metrics.spectrum import axis_spectrum
from overtone.version import machine

DRAWN = 8
"""Samples whose last frames make the spectrum, at most."""

LEAST_STEPS = 4
"""With fewer steps nothing is said about growth."""


@dataclass(frozen=True, eq=False)
class Case:
    """A diagnosis, and the residual to draw with it.

    Attributes:
        diagnosis: plain data.
        field: name of the field that is drawn, the one with the strongest artifact.
        step: the last finite step of the first sample that has one.
        residual: `(*space)` of that field and step, in units of the truth's standard deviation.
    """

    diagnosis: Diagnosis
    field: str
    step: int
    residual: Tensor


def diagnose(
    prediction: Frames,
    truth: Frames,
    *,
    patch: Patch | None = None,
    field: str | None = None,
    boundaries: BoundarySpec | None = None,
    alpha: float = ALPHA,
    progress: Callable[[int, int], None] | None = None,
) -> Case:
    """Look for a grid artifact in a prediction.

    Args:
        prediction: what a model made.
        truth: what it should have been.
        patch: the period to test; all that fit are tried if None.
        field: the one field to look at; all if None.
        boundaries: as for `Domain`; from the files, or judged by the truth's two ends, if None.
        alpha: chance of a false alarm, of either search.
        progress: called with the number of steps that are done and that there are.
    """
    pair = match(prediction, truth, field=field)
    view = survey(pair, patch, boundaries)
    finding, tested = _search(view, patch, alpha)
    sizes = finding.sizes or (None if patch is None else check_patch(patch, view.grid))
    course = _Follower(view, sizes, finding.statistic)
    course.run(progress)
    return _conclude(view, finding, tested, course)


def _search(view: View, patch: Patch | None, alpha: float) -> tuple[Finding, tuple[Patch, ...]]:
    """What some frames show, and the periods that were tried."""
    candidates = None if patch is None else [patch]
    options: dict[str, Any] = {"ndim": view.ndim, "periodic": view.periodic, "alpha": alpha}
    periods, borders = PeriodFinder(candidates, **options), SeamFinder(candidates, **options)
    for residual in view.some_frames():
        periods.update(residual)
        borders.update(residual)
    return choose(periods.result(), borders.result(), asked=patch is not None), periods.candidates


def choose(period: Period, seams: Seams, *, asked: bool) -> Finding:
    """Which of two findings to tell.

    Args:
        period: of lines or energy.
        seams: counts where there is no period, or where that is one of blocks within patches.
        asked: whether one patch was asked for; seams can't say then which one it is.
    """
    larger = not asked and _lie_within(period.sizes, seams.sizes)
    if seams.sizes and (larger or not period.sizes):
        return Finding(seams.sizes, "seams", seams.p_value)
    return Finding(period.sizes, period.statistic, period.p_value)


def _lie_within(blocks: tuple[int, ...], patches: tuple[int, ...]) -> bool:
    """Whether blocks, such as a decoder's stages leave, are parts of larger patches."""
    if not blocks or not patches or blocks == patches:
        return False
    return all(patch % block == 0 for block, patch in zip(blocks, patches, strict=True))


@dataclass(frozen=True)
class Finding:
    """The period of an artifact along each axis, empty if there is none, and how it shows."""

    sizes: tuple[int, ...]
    statistic: Sign
    p_value: float


class _Follower:
    """Goes through all frames once; a sample is followed until it is not finite.

    Attributes:
        error: mean square residual at each step.
        swing: at each step, how much larger it is in the worst cell of the patch than in the best.
        height: dB of the seams at each step.
        jump: mean square jump at seams at each step, less that within patches.
        cell: `(*sizes)`, the mean square residual folded onto the patch, mean over steps.
        last: for each sample, its last finite step.
        blow_up: the first step at which a sample was not finite.
    """

    def __init__(self, view: View, sizes: tuple[int, ...] | None, statistic: Sign):
        self.view, self.sizes, self.statistic = view, sizes, statistic
        self.tracker = None
        if sizes and statistic != "seams":
            self.tracker = HarmonicTracker([sizes], ndim=view.ndim, periodic=view.periodic)
        self.error: list[float] = []
        self.swing: list[float] = []
        self.height: list[float] = []
        self.jump: list[float] = []
        self.cell = torch.zeros(sizes or (), dtype=torch.float64)
        self.last: dict[int, int] = {}
        self.blow_up: int | None = None

    def run(self, progress: Callable[[int, int], None] | None) -> None:
        """Follow all samples to their ends."""
        steps = self.view.pair.steps
        for step in range(1, steps + 1):
            self._step(step)
            if progress is not None:
                progress(step, steps)
        self.cell /= max(len(self.error), 1)

    def _step(self, step: int) -> None:
        energies: list[float] = []
        borders: list[Tensor] = []
        cells = torch.zeros_like(self.cell)

        def parts() -> Iterator[Tensor]:
            for residual in self._residuals(step):
                energies.append(residual.square().mean().item())
                if self.sizes:
                    folded = fold(residual, self.sizes, ndim=self.view.ndim)
                    cells.add_(folded.mean_square.mean(dim=0))
                    if self.statistic == "seams":
                        borders.append(self._seams(residual, self.sizes))
                yield self.view.envelope(residual) if self.statistic == "energy" else residual

        if self.tracker is None:
            for _ in parts():
                pass
        else:
            self.tracker.update(parts())
        if energies:
            cells /= len(energies)
            self.cell += cells
            self.error.append(sum(energies) / len(energies))
            self.swing.append((cells.max() - cells.min()).item())
        if borders:
            height, jump = torch.stack(borders).mean(dim=0).tolist()
            self.height.append(height)
            self.jump.append(jump)

    def _seams(self, residual: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Their height in dB and what they add to mean square jumps, mean over fields `(2,)`."""
        across, within = jumps(residual, sizes, ndim=self.view.ndim, periodic=self.view.periodic)
        height = seam_height(across, within)
        return torch.stack([height.mean(), (across - within).clamp(min=0).mean()])

    def _residuals(self, step: int) -> Iterator[Tensor]:
        """Residuals of the samples that are finite up to this step."""
        for sample, length in enumerate(self.view.pair.lengths):
            if step > length or self.last.get(sample, 0) != step - 1:
                continue
            residual = self.view.residual(sample, step)
            if residual is None:
                self.blow_up = self.blow_up or step
            else:
                self.last[sample] = step
                yield residual


def _conclude(view: View, finding: Finding, tested: tuple[Patch, ...], course: _Follower) -> Case:
    artifact = _artifact(finding, course)
    found = bool(finding.sizes)
    sentence = describe(artifact if found else None, tested)
    notes = list(view.notes)
    if course.blow_up is not None:
        sentence += f" The prediction blows up (NaN or infinite) at step {course.blow_up}."
        notes.append("Samples are compared up to the step at which they blow up.")
    last = _last_frames(view, course)
    spectrum = tuple(_axis_power(last, axis, view, finding.statistic) for axis in range(view.ndim))
    diagnosis = Diagnosis(
        sentence=sentence,
        found=found,
        artifact=artifact,
        tested=tested,
        prediction=view.pair.prediction.name,
        truth=view.pair.truth.name,
        fields=view.fields,
        grid=view.pair.truth.shape,
        periodic=view.periodic,
        samples=len(course.last),
        steps=len(course.error),
        error_by_step=tuple(course.error),
        spectrum=spectrum,
        blow_up=course.blow_up,
        notes=tuple(notes),
        machine=machine(),
    )
    loudest = _loudest(last[0], view, artifact)
    step = course.last[min(course.last)]
    return Case(diagnosis, view.fields[loudest], step, last[0, loudest])


def _artifact(finding: Finding, course: _Follower) -> Artifact | None:
    if course.sizes is None:
        return None
    power, excess, share = course.jump, course.height, math.nan
    overall = sum(excess) / max(len(excess), 1)
    if course.tracker is not None:
        (seen,) = course.tracker.results().values()
        overall, excess, power = seen.overall.excess.item(), list(seen.excess), course.swing
        if finding.statistic == "lines":
            power, share = list(seen.power), seen.overall.share.item()
    return Artifact(
        period=course.sizes,
        statistic=finding.statistic,
        excess=overall,
        p_value=finding.p_value,
        share=share,
        contrast=Fold(course.cell, course.cell, len(course.sizes)).contrast.item(),
        exponent=growth_exponent(power) if len(power) >= LEAST_STEPS else math.nan,
        excess_by_step=tuple(excess),
        power_by_step=tuple(power),
        cell=course.cell.tolist(),
    )


def _last_frames(view: View, course: _Follower) -> Tensor:
    """Residuals `(B, C, *grid)` of some samples at their last finite steps."""
    frames = [view.residual(sample, step) for sample, step in sorted(course.last.items())[:DRAWN]]
    return torch.stack([frame for frame in frames if frame is not None])


def _axis_power(residual: Tensor, axis: int, view: View, statistic: str) -> AxisPower:
    values = view.envelope(residual) if statistic == "energy" else residual
    if statistic == "seams":
        values = _jumps_along(residual, axis - view.ndim, view.periodic[axis])
    values = values - values.mean(dim=tuple(range(-view.ndim, 0)), keepdim=True)
    # Grid lines are constant along the other axes; averaging over those keeps them.
    others = tuple(other - view.ndim for other in range(view.ndim) if other != axis)
    values = values.mean(dim=others) if others else values
    found = axis_spectrum(values, 0, ndim=1, periodic=view.periodic[axis])
    power = found.power.reshape(-1, found.power.shape[-1]).mean(dim=0)
    return AxisPower(
        axis=AXES[axis], wavenumber=tuple(found.wavenumber.tolist()), power=tuple(power.tolist())
    )


def _jumps_along(residual: Tensor, axis: int, wraps: bool) -> Tensor:
    """Squared jumps before each cell; before the first one of an axis that ends there is none."""
    squares = (residual - residual.roll(1, dims=axis)).square()
    if not wraps:
        squares.narrow(axis, 0, 1).copy_(squares.narrow(axis, 1, 1))
    return squares


def _loudest(residual: Tensor, view: View, artifact: Artifact | None) -> int:
    """The field of `(C, *grid)` with the strongest artifact, or the largest error."""
    if artifact is None:
        return int(residual.flatten(1).square().mean(dim=1).argmax())
    if artifact.statistic == "seams":
        heights = seams(residual, artifact.period, ndim=view.ndim, periodic=view.periodic)
        return int(heights.argmax())
    values = residual if artifact.statistic == "lines" else view.envelope(residual)
    verdict = harmonic_excess(values, artifact.period, ndim=view.ndim, periodic=view.periodic)
    return int(verdict.z.argmax())
