"""Results sorted for drawing: one series for each pair of a model's name and a schedule.

Models that share a name are the same model trained from several seeds. Their numbers are averaged;
the interval of an average is the envelope of the seeds' intervals, which is wider than either the
spread over trajectories or that over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.evaluate.results import (
    AxisSpectrum,
    Estimate,
    Harmonics,
    ModelResult,
    NextStep,
    ResidualSpectrum,
    Results,
    Run,
)
from overtone.schedules import Constant, Patch

UNPATCHED = "no patches"
UNKNOWN = Estimate(value=math.nan, low=math.nan, high=math.nan)
"""What stands in the place of a schedule that says nothing."""

T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True)
class Series:
    """A model under a schedule.

    Attributes:
        model: its name.
        schedule: the schedule's string form.
        runs: one for each seed.
        patched: whether the model has patches; if not, schedule and tokens say nothing.
    """

    model: str
    schedule: str
    runs: tuple[Run, ...]
    patched: bool = True

    @property
    def name(self) -> str:
        """Model and schedule in words."""
        return f"{self.model} with schedule {self.schedule}" if self.patched else self.model

    @property
    def label(self) -> str:
        """The schedule for a table or a legend."""
        return self.schedule if self.patched else UNPATCHED

    def margins(self, yardstick: str) -> tuple[Estimate, ...]:
        """VRMSE at each step less that of a yardstick, averaged over seeds; empty if unknown."""
        return _by_step([run.margins.get(yardstick, ()) for run in self.runs])

    def pooled(self, pick: Callable[[Run], Estimate]) -> Estimate:
        """A number of all seeds."""
        return pool([pick(run) for run in self.runs])

    @property
    def vrmse_10(self) -> Estimate:
        """VRMSE over the first ten steps."""
        return self.pooled(lambda run: run.vrmse_10)

    @property
    def vrmse_all(self) -> Estimate:
        """VRMSE over all steps."""
        return self.pooled(lambda run: run.vrmse_all)

    @property
    def curve(self) -> list[Estimate]:
        """VRMSE at each step, as far as every seed went."""
        return [pool(step) for step in zip(*(run.vrmse for run in self.runs), strict=False)]

    @property
    def blow_up(self) -> int | None:
        """The first step at which a trajectory of any seed turned non-finite."""
        return min((run.blow_up for run in self.runs if run.blow_up is not None), default=None)

    @property
    def tokens(self) -> int:
        """Tokens of all steps of one sample; the same for every seed."""
        return self.runs[0].tokens

    @property
    def seconds(self) -> float:
        """Measured seconds of all steps of one sample, mean over seeds."""
        return mean([run.seconds for run in self.runs])

    @property
    def seams(self) -> tuple[Estimate, ...]:
        """At each step, at the grid of that step, averaged over seeds."""
        return _by_step([run.seams for run in self.runs])

    @property
    def patches(self) -> list[Patch]:
        """Periods whose harmonics were followed."""
        return list(dict.fromkeys(h.patch for run in self.runs for h in run.harmonics))

    def harmonics(self, patch: Patch) -> Harmonics | None:
        """A period's artifact, averaged over seeds; the p-value is that of the least sure seed."""
        found = [h for run in self.runs for h in run.harmonics if h.patch == patch]
        if not found:
            return None
        return Harmonics(
            patch=patch,
            excess=_by_step([h.excess for h in found]),
            worst_seams=_by_step([h.worst_seams for h in found]),
            exponent=mean([h.exponent for h in found]),
            overall=mean([h.overall for h in found]),
            p_value=max(h.p_value for h in found),
            share=mean([h.share for h in found]),
            cell=np.mean([np.asarray(h.cell, dtype=float) for h in found], axis=0).tolist(),
        )

    def spectrum(self, step: int) -> ResidualSpectrum | None:
        """The residual's spectrum at a step, averaged over seeds."""
        found = [s for run in self.runs for s in run.spectra if s.step == step]
        if not found:
            return None
        return ResidualSpectrum(
            step=step,
            wavenumber=found[0].wavenumber,
            power=tuple(mean_by_step([s.power for s in found])),
            low=tuple(np.min([s.low for s in found], axis=0).tolist()),
            high=tuple(np.max([s.high for s in found], axis=0).tolist()),
            truth=found[0].truth,
        )

    def axis_spectrum(self, field: str, axis: int) -> AxisSpectrum | None:
        """The spectrum of a field's residual along an axis, averaged over seeds."""
        every = [s for run in self.runs for s in run.axis_spectra]
        found = [s for s in every if (s.field, s.axis) == (field, axis)]
        if not found:
            return None
        return found[0].model_copy(
            update={
                "power": tuple(mean_by_step([s.power for s in found])),
                "low": tuple(np.min([s.low for s in found], axis=0).tolist()),
                "high": tuple(np.max([s.high for s in found], axis=0).tolist()),
                "swell": {p: pool([s.swell[p] for s in found]) for p in found[0].swell},
            }
        )

    def physics(self, name: str) -> list[Estimate]:
        """Deviation from a law at each step, averaged over seeds."""
        found = [run.physics[name] for run in self.runs if name in run.physics]
        return [*_by_step(found)]


@dataclass(frozen=True)
class NextPoint:
    """One step of a model at one patch, of one or several seeds."""

    model: str
    patch: Patch
    steps: tuple[NextStep, ...]
    patched: bool = True

    @property
    def vrmse(self) -> Estimate:
        """VRMSE, mean over fields."""
        return pool([step.vrmse for step in self.steps])

    @property
    def label(self) -> str:
        """The patch for a table or a legend."""
        return str(Constant(self.patch)) if self.patched else UNPATCHED

    def bsnmse(self, band: str) -> Estimate:
        """The error of a band, mean over fields; NaN if it was not measured."""
        return pool([step.bsnmse.get(band, UNKNOWN) for step in self.steps])

    @property
    def tokens(self) -> int:
        """Tokens of one prediction."""
        return self.steps[0].tokens

    @property
    def seconds(self) -> float:
        """Measured seconds of one prediction, mean over seeds."""
        return mean([step.seconds for step in self.steps])


def series(results: Results) -> list[Series]:
    """All series, in the order in which they were evaluated."""
    return _series(results.models)


def next_points(results: Results) -> list[NextPoint]:
    """All next-step errors, in the order in which they were evaluated."""
    return _next_points(results.models)


def yardsticks(results: Results) -> list[Series]:
    """What needs no training, except where it was evaluated as a model, too."""
    return _series(_apart(results))


def yardstick_points(results: Results) -> list[NextPoint]:
    """The next-step errors of the same."""
    return _next_points(_apart(results))


def _apart(results: Results) -> list[ModelResult]:
    asked = {model.config.get("name") for model in results.models if not model.patched}
    return [model for model in results.yardsticks if model.name not in asked]


def _series(models: Iterable[ModelResult]) -> list[Series]:
    pairs = [((m.name, run.schedule, m.patched), run) for m in models for run in m.runs]
    return [
        Series(name, schedule, tuple(runs), patched)
        for (name, schedule, patched), runs in _group(pairs).items()
    ]


def _next_points(models: Iterable[ModelResult]) -> list[NextPoint]:
    pairs = [((m.name, step.patch, m.patched), step) for m in models for step in m.next_step]
    return [
        NextPoint(name, patch, tuple(steps), patched)
        for (name, patch, patched), steps in _group(pairs).items()
    ]


def model_names(results: Results) -> list[str]:
    """Names of the models, each once."""
    return list(dict.fromkeys(model.name for model in results.models))


def unpatched(results: Results) -> frozenset[str]:
    """Names of the models without patches."""
    return frozenset(model.name for model in results.models if not model.patched)


def part_names(found: Iterable[Series], pick: Callable[[Run], Iterable[str]]) -> list[str]:
    """Names in a part of the runs, such as bands or laws, each once."""
    return list(dict.fromkeys(name for s in found for run in s.runs for name in pick(run)))


def num_seeds(results: Results) -> int:
    """The largest number of models that share a name."""
    names = [model.name for model in results.models]
    return max((names.count(name) for name in names), default=0)


def domain_of(results: Results) -> Domain:
    """What the evaluated fields lie on."""
    try:
        return Domain(**results.data.domain)
    except TypeError as error:
        raise DataError(
            f"the results' domain is {results.data.domain!r}; expected shape, extent, boundaries, "
            f"fields and dt: {error}"
        ) from error


def dt_text(domain: Domain) -> str:
    """The time between frames, or the shortest and the longest."""
    return " to ".join(f"{dt:g}" for dt in dict.fromkeys(domain.dt_range))


def _by_step(curves: Sequence[Sequence[Estimate]]) -> tuple[Estimate, ...]:
    """Estimates at each step, averaged over seeds, as far as the shortest goes."""
    return tuple(pool(step) for step in zip(*curves, strict=False))


def pool(estimates: Sequence[Estimate]) -> Estimate:
    """Mean of the values, with the envelope of the intervals."""
    return Estimate(
        value=mean([e.value for e in estimates]),
        low=min((e.low for e in estimates if math.isfinite(e.low)), default=math.nan),
        high=max((e.high for e in estimates if math.isfinite(e.high)), default=math.nan),
    )


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN if any is, or if there are none."""
    return sum(values) / len(values) if values else math.nan


def mean_by_step(curves: Sequence[Sequence[float]]) -> list[float]:
    """Mean of curves at each step, as far as the shortest goes."""
    return [mean(step) for step in zip(*curves, strict=False)]


def evenly_chosen(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, evenly spread, with the first and the last; the last if it is one."""
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[-1]]
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def _group(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups
