"""Spectra of a rollout's residuals at one step, gathered batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from overtone.domain import Domain, per_axis
from overtone.evaluate.results import AxisSpectrum, ResidualSpectrum, estimate
from overtone.metrics import axis_spectrum, isotropic_spectrum
from overtone.metrics.artifacts.swell import harmonic_swell, has_swell
from overtone.metrics.confidence import bootstrap
from overtone.schedules import Patch


class Spectra:
    """In shells of equal |k|, mean over fields.

    Args:
        domain: what the frames lie on.
    """

    def __init__(self, domain: Domain):
        self.domain = domain
        self._wavenumber = torch.zeros(())
        self._power: list[Tensor] = []
        self._truth: list[Tensor] = []

    @property
    def num(self) -> int:
        """Samples taken so far."""
        return sum(map(len, self._power))

    def add(self, residual: Tensor, truth: Tensor) -> None:
        """Take normalised fields `(B, C, *space)`."""
        domain, cell = self.domain, min(self.domain.spacing)
        spacing = tuple(length / cell for length in domain.spacing)
        found = [
            isotropic_spectrum(field, ndim=domain.ndim, periodic=domain.periodic, spacing=spacing)
            for field in (residual, truth)
        ]
        self._wavenumber = found[0].wavenumber
        self._power.append(found[0].power.mean(dim=1))
        self._truth.append(found[1].power.mean(dim=1))

    def result(self, step: int, seed: int) -> ResidualSpectrum:
        """Means and intervals over the samples, of which there must be one.

        Args:
            step: at which they were taken.
            seed: of the bootstrap.
        """
        power = bootstrap(torch.cat(self._power), seed=seed)
        return ResidualSpectrum(
            step=step,
            wavenumber=tuple(self._wavenumber.tolist()),
            power=tuple(power.value.tolist()),
            low=tuple(power.low.tolist()),
            high=tuple(power.high.tolist()),
            truth=tuple(torch.cat(self._truth).mean(dim=0).tolist()),
        )


class AxisSpectra:
    """Along each axis, of each field.

    Args:
        domain: what the frames lie on.
        patches: around whose harmonics to look; those that an axis is too short for are left out.
    """

    def __init__(self, domain: Domain, patches: Sequence[Patch]):
        self.domain = domain
        sizes = [per_axis(patch, domain.ndim, "patch") for patch in patches]
        self._periods = [
            sorted({size[axis] for size in sizes if has_swell(size[axis], cells)})
            for axis, cells in enumerate(domain.shape)
        ]
        self._power: list[list[Tensor]] = [[] for _ in domain.shape]
        self._truth: list[list[Tensor]] = [[] for _ in domain.shape]

    def add(self, residual: Tensor, truth: Tensor) -> None:
        """Take normalised fields `(B, C, *space)`."""
        ndim, periodic = self.domain.ndim, self.domain.periodic
        for axis in range(ndim):
            for kept, field in ((self._power, residual), (self._truth, truth)):
                found = axis_spectrum(field, axis, ndim=ndim, periodic=periodic)
                kept[axis].append(found.power)

    def results(self, step: int, seed: int) -> Iterator[AxisSpectrum]:
        """Means and intervals over the samples; nothing if there were none.

        Args:
            step: at which they were taken.
            seed: of the bootstrap.
        """
        for axis, cells in enumerate(self.domain.shape):
            if not self._power[axis]:
                continue
            powers, truths = torch.cat(self._power[axis]), torch.cat(self._truth[axis])
            wavenumber = torch.arange(cells // 2 + 1, dtype=torch.float64) / cells
            for place, name in enumerate(self.domain.fields):
                power = bootstrap(powers[:, place], seed=seed)
                yield AxisSpectrum(
                    step=step,
                    field=name,
                    axis=axis,
                    wavenumber=tuple(wavenumber.tolist()),
                    power=tuple(power.value.tolist()),
                    low=tuple(power.low.tolist()),
                    high=tuple(power.high.tolist()),
                    truth=tuple(truths[:, place].mean(dim=0).tolist()),
                    swell={
                        period: estimate(harmonic_swell(powers[:, place], period, cells), seed=seed)
                        for period in self._periods[axis]
                    },
                )
