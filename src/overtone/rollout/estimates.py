"""How far off a frame may be, told without the truth.

A flexible model can make the same step in two ways. Where the two disagree, at least one of them is
wrong; what both have in common, nobody sees ([theory](docs/theory.md)). With the frame x and
another answer y, the disagreement of a field is the VRMSE of y against x.

What a frame is compared with (`against`):

- `"patch"`: the same window at the next coarser patch, which costs a fraction of the step; at the
  coarsest, the grid moved by half a patch.
- `"shift"`: the same window with the grid moved by half a patch.
- a schedule: a second rollout of its own.

The first two see what a step adds. A frame's error is what all steps have added; so theirs are
summed as squares over the steps, as errors that are independent. The second rollout sees all of it
at once. Calibration turns either into an error: ratios of true error to disagreement, and their
spread, by step (`models.calibration`). Without it, the plain disagreement is given, and said so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.domain import Domain, per_axis
from overtone.errors import OvertoneError, PatchError
from overtone.models.calibration import Band, Calibration, step_of
from overtone.schedules import Choice, Patch, Schedule, parse_schedule

PROBES = ("patch", "shift")
"""Ways to compare a step with another answer on the same window."""
LEVEL = 0.9
"""Share of the errors that the usual interval is meant to hold."""

Against = str | Schedule
"""One of `PROBES`, or the schedule of a second rollout."""


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """How large the error of one frame is thought to be. Samples that are lost have NaN.

    Attributes:
        step: how many steps were made.
        against: what the frame was compared with.
        value: VRMSE `(B,)`, mean over fields.
        fields: VRMSE `(B, C)` of each field.
        map: `(B, C, *space)`, where it is: absolute error of each cell, in physical units.
        local: VRMSE `(B,)` of this step alone; NaN of a second rollout, which does not tell.
        tokens: what the comparison cost at this step, for one sample, mean over samples.
        calibrated: whether it is an error; if not, it is a disagreement, and has no interval.
        beyond: whether the step is later than any that was calibrated, so that the last one's
            ratio is used.
        bounds: level -> lower and upper bound `(B,)` of the interval, where calibrated.
    """

    step: int
    against: str
    value: Tensor
    fields: Tensor
    map: Tensor
    local: Tensor
    tokens: float
    calibrated: bool
    beyond: bool
    bounds: Mapping[float, tuple[Tensor, Tensor]]

    def interval(self, level: float = LEVEL) -> tuple[Tensor, Tensor]:
        """Lower and upper bound `(B,)` between which this share of errors should lie."""
        if not self.calibrated:
            raise OvertoneError(
                "the estimate is not calibrated, so it has no interval; run `overtone calibrate "
                "MODEL DATA` first"
            )
        if level not in self.bounds:
            known = ", ".join(map(str, self.bounds)) or "none: too few rollouts were calibrated by"
            raise OvertoneError(f"level is {level}; this calibration has {known}")
        return self.bounds[level]

    def __repr__(self) -> str:
        """The numbers, in a line; the map is in `map`."""
        values = ", ".join(f"{value:.3g}" for value in map(float, self.value))
        kind = "VRMSE" if self.calibrated else "uncalibrated disagreement"
        late = ", beyond the calibrated steps" if self.beyond and self.calibrated else ""
        return f"ErrorEstimate(step {self.step}, {kind} {values}, against {self.against}{late})"


def parse_against(value: object) -> Against | None:
    """What `estimate` says to compare with: nothing, a probe's name or a schedule.

    Args:
        value: False or None for nothing, True for the usual, else as `Against` or a string form.
    """
    if value is None or value is False:
        return None
    if value is True:
        return PROBES[0]
    if isinstance(value, str) and value in PROBES:
        return value
    try:
        return parse_schedule(value)  # pyright: ignore[reportArgumentType]
    except PatchError as error:
        raise PatchError(
            f"a rollout is compared with {value!r}; expected 'patch', 'shift' or the schedule of a "
            f"second rollout such as 16+shift ({error})"
        ) from None


def ordered(patches: Sequence[Patch], ndim: int) -> tuple[Patch, ...]:
    """Patches from the finest to the coarsest, each once."""
    known = {per_axis(patch, ndim, "patch"): patch for patch in patches}
    return tuple(known[sizes] for sizes in sorted(known, key=lambda s: (math.prod(s), s)))


def half_moved(choice: Choice, ndim: int) -> Choice:
    """The same patch with its grid moved by half a patch along each axis."""
    sizes = per_axis(choice.patch, ndim, "patch")
    if max(sizes) < 2:
        raise PatchError(
            f"patch {choice.patch} has no half to move its grid by, so there is nothing to compare "
            "a step with; compare with a second rollout at another patch"
        )
    moved = [(s + p // 2) % p for s, p in zip(choice.shift[:ndim], sizes, strict=True)]
    return Choice(choice.patch, (*moved, *choice.shift[ndim:]))


def next_coarser(choice: Choice, patches: Sequence[Patch], ndim: int) -> Choice:
    """The next coarser patch of some; at the coarsest, the grid moved by half a patch.

    Args:
        choice: of the step.
        patches: to choose from, the finest first.
        ndim: number of axes.
    """
    size = math.prod(per_axis(choice.patch, ndim, "patch"))
    for patch in patches:
        if math.prod(per_axis(patch, ndim, "patch")) > size:
            return Choice(patch, choice.shift)
    return half_moved(choice, ndim)


class Accumulator:
    """What the disagreements of all steps come to.

    Args:
        rule: string form of what decides on the steps, as calibrations know it.
        against: what steps are compared with.
        domain: what the rollout lies on.
        calibration: of the model, if there is one for this grid.
        batch: number of samples.
        before: `(B, C)` sums of squares of the steps that were made earlier; None for none.
    """

    def __init__(
        self,
        rule: str,
        against: Against,
        domain: Domain,
        calibration: Calibration | None,
        batch: int,
        before: Tensor | None = None,
    ):
        self.against, self.domain = against, domain
        self.band = None if calibration is None else calibration.band(rule, str(against))
        self._sum = torch.zeros(batch, len(domain.fields), dtype=torch.float64)
        if before is not None:
            self._sum += before
        self._squares: Tensor | None = None

    @property
    def is_probe(self) -> bool:
        """Whether steps are compared, or whole rollouts."""
        return not isinstance(self.against, Schedule)

    def add(
        self, step: int, rows: Tensor, errors: Tensor, difference: Tensor, tokens: float
    ) -> ErrorEstimate:
        """Take a step's disagreement and tell the frame's error.

        Args:
            step: counted from 1.
            rows: `(n,)`, which samples are there.
            errors: `(n, C)` disagreement of each field; of a probe, what its step has added.
            difference: `(n, C, *space)` between the two answers.
            tokens: what the comparison cost.
        """
        batch = len(self._sum)
        whole = torch.full((batch, *errors.shape[1:]), torch.nan, dtype=torch.float64)
        whole[rows] = errors.double().cpu()
        local = whole.mean(dim=1) if self.is_probe else torch.full((batch,), torch.nan).double()
        squares = difference.new_full((batch, *difference.shape[1:]), torch.nan)
        squares[rows] = difference.square()
        if self.is_probe:
            self._sum = self._sum + whole.square()
            self._squares = squares if self._squares is None else self._squares + squares
            whole, squares = self._sum.sqrt(), self._squares
        place = 0 if self.band is None else min(step, len(self.band.factor)) - 1
        factor, by_field, bounds = 1.0, torch.ones(whole.shape[1], dtype=torch.float64), {}
        value = whole.mean(dim=1)
        if self.band is not None:
            factor, by_field = self.band.factor[place], torch.tensor(self.band.fields[place])
            bounds = {
                level: (value * low[place], value * high[place])
                for level, (low, high) in self.band.bounds.items()
            }
        scale = by_field.to(squares).reshape(-1, *(1,) * self.domain.ndim)
        return ErrorEstimate(
            step=step,
            against=str(self.against),
            value=value * factor,
            fields=whole * by_field.double(),
            map=squares.sqrt() * scale,
            local=local,
            tokens=tokens,
            calibrated=self.band is not None,
            beyond=self.band is not None and step > len(self.band.factor),
            bounds=bounds,
        )


def distance(other: Tensor, frame: Tensor, ndim: int) -> Tensor:
    """VRMSE `(B, C)` of one answer against another, `(B, C, *space)` each."""
    # Measures are loaded when somebody estimates: `import overtone` stays light.
    from overtone.metrics.pointwise import vrmse

    return vrmse(other, frame, ndim=ndim).double()


def disagreement(
    frame: Tensor,
    other: Tensor,
    choice: Choice,
    against: str,
    domain: Domain,
    calibration: Calibration | None,
) -> Tensor:
    """What a step is thought to have added, VRMSE `(B, C)` of each field.

    Args:
        frame, other: `(B, C, *space)`, the step and what it is compared with.
        choice: of the step.
        against: kind of the comparison.
        domain: what they lie on.
        calibration: its ratio for single steps of this patch is used, if there is one.
    """
    found = distance(other, frame, domain.ndim)
    band: Band | None = None
    if calibration is not None:
        band = calibration.bands.get((step_of(choice.patch), against))
    if band is not None:
        found = found * torch.tensor(band.fields[0], dtype=torch.float64, device=found.device)
    # What is not finite disagrees with everything.
    return found.nan_to_num(nan=math.inf)
