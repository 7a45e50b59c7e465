"""Running sums of a rollout: what is kept of every step is a few numbers, not its frames.

A trajectory *blows up* where `rollout` says so; from then on it has no numbers. At each step,
averages are over the trajectories that are still there. An average over steps is infinite for a
trajectory that blew up within them, so that losing one never makes a schedule look better.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from overtone.domain import Domain, per_axis
from overtone.errors import PatchError
from overtone.evaluate.results import (
    AxisSpectrum,
    Estimate,
    Harmonics,
    ResidualSpectrum,
    estimate,
    estimates,
)
from overtone.evaluate.spectra import AxisSpectra, Spectra
from overtone.metrics import (
    BANDS,
    HarmonicPool,
    HarmonicTracker,
    band_energy,
    bsnmse,
    seams,
    vrmse,
)
from overtone.metrics.artifacts.lattice import check_patch, patch_power
from overtone.metrics.artifacts.seams import offset_seams
from overtone.metrics.pointwise import epsilon, powers
from overtone.schedules import Choice, Patch

EARLY = 10
"""Steps of the short average."""


class Tally:
    """All numbers of one schedule of one model.

    Args:
        domain: what the frames lie on.
        num: trajectories.
        steps: of each rollout.
        patches: whose artifacts to look for; those that the grid is too small for are left out.
        seed: of the bootstrap.
    """

    def __init__(
        self, domain: Domain, num: int, steps: int, patches: Sequence[Patch], *, seed: int
    ):
        self.domain, self.steps, self.seed = domain, steps, seed
        self.patches = tuple(patch for patch in patches if _can_judge(patch, domain))
        empty = torch.full((num, steps), torch.nan, dtype=torch.float64)
        self._errors = empty[..., None].repeat(1, 1, len(domain.fields))
        self._bands = empty[..., None].repeat(1, 1, len(BANDS))
        self._energy = torch.full_like(self._bands, torch.nan)
        self._excess = {patch: empty.clone() for patch in self.patches}
        self._offsets: dict[Patch, list[Tensor]] = {patch: [] for patch in self.patches}
        self._seams = empty.clone()
        self._laws: dict[str, Tensor] = {}
        self._trackers: dict[int, HarmonicTracker] = {}
        self._pool = HarmonicPool()
        middle = (steps + 1) // 2
        self._spectra = {step: Spectra(domain) for step in sorted({1, middle, steps})}
        self._axis_spectra = {middle: AxisSpectra(domain, self.patches)}
        self._seconds = torch.zeros(2, steps, dtype=torch.float64)  # of all calls, and samples
        self.blow_up: int | None = None

    def record(
        self, step: int, rows: Sequence[int], frame: Tensor, truth: Tensor, choice: Choice
    ) -> None:
        """Take the frames of some trajectories after a step.

        Args:
            step: counted from 1.
            rows: which trajectories.
            frame, truth: `(B, C, *space)`, finite.
            choice: patch and shift that the step was made with, one for each axis.
        """
        ndim, place, periodic = self.domain.ndim, step - 1, self.domain.periodic
        self._errors[rows, place] = vrmse(frame, truth, ndim=ndim).double()
        bands = bsnmse(frame.double(), truth.double(), ndim=ndim)
        self._bands[rows, place] = bands.mean(dim=1)
        truth = truth.double()
        variance, square = powers(truth, ndim)
        scale = (variance + epsilon(variance, square)).sqrt()
        scale = scale.reshape(*scale.shape, *(1,) * ndim)
        residual = (frame.double() - truth) / scale
        self._energy[rows, place] = _energy_ratio(frame.double() / scale, truth / scale, ndim)
        if step in self._spectra:
            self._spectra[step].add(residual, truth / scale)
        if step in self._axis_spectra:
            self._axis_spectra[step].add(residual, truth / scale)
        if _has_borders(choice, self.domain):
            own = seams(residual, choice.patch, ndim=ndim, periodic=periodic, shift=choice.shift)
            self._seams[rows, place] = own.mean(dim=1)
        for patch, kept in self._offsets.items():
            heights = offset_seams(residual, patch, ndim=ndim, periodic=periodic)
            if not kept:
                empty = torch.full_like(self._errors[..., :1], torch.nan)
                kept += [empty.repeat(1, 1, height.shape[-1]) for height in heights]
            for axis, height in zip(kept, heights, strict=True):
                axis[rows, place] = height.mean(dim=1)
        if self.patches:
            for row, sample in zip(rows, residual, strict=True):
                self._tracker(row).update(sample)

    def record_laws(self, step: int, rows: Sequence[int], deviations: dict[str, Tensor]) -> None:
        """Take the deviations `(B,)` from some laws after a step."""
        for name, values in deviations.items():
            if name not in self._laws:
                self._laws[name] = torch.full_like(self._errors[..., 0], torch.nan)
            self._laws[name][rows, step - 1] = values

    def record_seconds(self, step: int, seconds: float, num: int) -> None:
        """Take the time of a model call for `num` samples."""
        self._seconds[:, step - 1] += torch.tensor([seconds, num])

    def lose(self, step: int) -> None:
        """Note that a trajectory blew up at a step."""
        self.blow_up = step if self.blow_up is None else min(step, self.blow_up)

    def close(self, rows: Sequence[int]) -> None:
        """Pool the artifacts of trajectories that are through."""
        for row in rows:
            if tracker := self._trackers.pop(row, None):
                self._pool.add(tracker)
                for patch, seen in tracker.results().items():
                    self._excess[patch][row, : len(seen.excess)] = torch.tensor(
                        seen.excess, dtype=torch.float64
                    )

    @property
    def vrmse(self) -> tuple[Estimate, ...]:
        """At each step, mean over fields, up to the last step that any trajectory reached."""
        errors = self.errors
        reached = int((~errors.isnan()).any(dim=0).sum())
        return estimates(errors[:, :reached], seed=self.seed) if reached else ()

    @property
    def errors(self) -> Tensor:
        """VRMSE `(N, steps)` of each trajectory, mean over fields; NaN from a blow-up on."""
        return self._errors.mean(dim=2)

    def margins(self, other: Tensor) -> tuple[Estimate, ...]:
        """VRMSE at each step less that of another model on the same trajectories.

        A trajectory that blew up is worse than any that did not.

        Args:
            other: its `errors`; where it has none, nothing can be said.
        """
        own = self.errors.nan_to_num(nan=torch.inf, posinf=torch.inf)
        return estimates(own - other, seed=self.seed)

    def vrmse_up_to(self, steps: int) -> Estimate:
        """Mean over fields and the first steps."""
        errors = self._errors[:, : min(steps, self.steps)]
        return estimate(_over_steps(errors).mean(dim=1), seed=self.seed)

    @property
    def fields(self) -> dict[str, Estimate]:
        """VRMSE of each field, mean over all steps."""
        found = estimates(_over_steps(self._errors), seed=self.seed)
        return dict(zip(self.domain.fields, found, strict=True))

    @property
    def bsnmse(self) -> dict[str, Estimate]:
        """BSNMSE of each band, mean over all fields and steps."""
        found = estimates(_over_steps(self._bands), seed=self.seed)
        return dict(zip(BANDS, found, strict=True))

    @property
    def energy(self) -> dict[str, tuple[Estimate, ...]]:
        """The prediction's energy over the truth's in each band, at each step that was reached."""
        reached = len(self.vrmse)
        return {
            band: estimates(self._energy[:, :reached, place], seed=self.seed) if reached else ()
            for place, band in enumerate(BANDS)
        }

    @property
    def harmonics(self) -> tuple[Harmonics, ...]:
        """The artifact of each patch, over the trajectories that are closed."""
        return tuple(
            Harmonics(
                patch=patch,
                excess=estimates(self._excess[patch][:, : len(seen.excess)], seed=self.seed),
                exponent=seen.exponent,
                overall=seen.overall.excess.item(),
                p_value=seen.overall.p_value.item(),
                share=seen.overall.share.item(),
                cell=seen.fold.mean_square.tolist(),
                worst_seams=estimates(self._worst(patch)[:, : len(seen.excess)], seed=self.seed),
            )
            for patch, seen in self._pool.results().items()
        )

    def _worst(self, patch: Patch) -> Tensor:
        """Seams `(N, steps)` at the offset that is worst on average at each step and axis.

        All trajectories have their grid at the same place, so that offset is common to them; the
        worst of each by itself would be large by chance alone.
        """
        found = []
        for heights in self._offsets[patch]:  # (N, steps, patch)
            worst = heights.nanmean(dim=0).nan_to_num(nan=-torch.inf).argmax(dim=-1)
            found.append(
                heights.gather(2, worst[None, :, None].expand(len(heights), -1, 1))[..., 0]
            )
        return torch.stack(found).mean(dim=0)

    @property
    def seams(self) -> tuple[Estimate, ...]:
        """At each step, at the grid of that step; empty if no step's grid has borders."""
        reached = len(self.vrmse)
        if bool(self._seams.isnan().all()):
            return ()
        return estimates(self._seams[:, :reached], seed=self.seed)

    @property
    def spectra(self) -> tuple[ResidualSpectrum, ...]:
        """Residual spectra at the first, the middle and the last step, if they were reached."""
        found = self._spectra.items()
        return tuple(seen.result(step, self.seed) for step, seen in found if seen.num)

    @property
    def axis_spectra(self) -> tuple[AxisSpectrum, ...]:
        """Residual spectra of each field along each axis at the middle step, if it was reached."""
        found = self._axis_spectra.items()
        return tuple(one for step, seen in found for one in seen.results(step, self.seed))

    @property
    def physics(self) -> dict[str, tuple[Estimate, ...]]:
        """Deviation from each law at each step, mean over the trajectories that got there."""
        reached = len(self.vrmse)
        return {
            name: estimates(values[:, :reached], seed=self.seed) if reached else ()
            for name, values in self._laws.items()
        }

    @property
    def seconds(self) -> float:
        """Time of all steps of one sample."""
        took, num = self._seconds
        return (took / num.clamp(min=1)).sum().item()

    def _tracker(self, row: int) -> HarmonicTracker:
        if row not in self._trackers:
            domain = self.domain
            self._trackers[row] = HarmonicTracker(
                self.patches, ndim=domain.ndim, periodic=domain.periodic
            )
        return self._trackers[row]


def _energy_ratio(frame: Tensor, truth: Tensor, ndim: int) -> Tensor:
    """Energy of a prediction over the truth's, `(B, bands)`, of normalised fields without means."""
    space = tuple(range(-ndim, 0))
    found, true = (
        band_energy(fields - fields.mean(dim=space, keepdim=True), ndim=ndim).mean(dim=1)
        for fields in (frame, truth)
    )
    return found / true.clamp(min=1e-300)


def _over_steps(values: Tensor) -> Tensor:
    """Means `(N, K)` of `(N, steps, K)`; infinite where a trajectory blew up."""
    return values.mean(dim=1).nan_to_num(nan=torch.inf, posinf=torch.inf)


def _has_borders(choice: Choice, domain: Domain) -> bool:
    """Whether a step's grid has borders between patches, and cells within them."""
    sizes = per_axis(choice.patch, domain.ndim, "patch")
    return any(1 < size < cells for size, cells in zip(sizes, domain.shape, strict=True))


def _can_judge(patch: Patch, domain: Domain) -> bool:
    """Whether a grid has enough patches to tell their lattice from other modes."""
    try:
        sizes = check_patch(patch, domain.shape)
        blank = torch.zeros(domain.shape)
        patch_power(blank, sizes, domain.periodic)
    except PatchError:
        return False
    return True
