"""The linear model of error growth in a rollout, appendix "Harmonic Error Analysis" of the paper.

The Fourier coefficient of the error at a frequency f obeys

    e_{n+1} = λ e_n + a_n,   e_0 = 0,

where λ carries old errors forward and a_n is what step n adds. A patch grid of period p that is
moved by s cells adds errors only on its lattice Ω_p, the multiples of 1/p, and the move turns their
phase:

    a_n = A_n exp(-2πi f·s_n)  if f ∈ Ω_{p_n}, else 0.

The amplitudes A_n are random, of mean square 1, and as alike as

    E[A_n A_m*] = persistence^|n - m| · (1 if p_n = p_m, else agreement).

`persistence` 1 is phase-locked: every step repeats the same error; at 0 every step makes a fresh
one. `agreement` says how alike the errors of different patches are where their lattices meet. Then

    E|e_n|² = Σ_{i,j<n} λ^{n-1-i} conj(λ)^{n-1-j} E[a_i a_j*],

which `growth` evaluates exactly for any schedule, and `simulate` samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from overtone.domain import per_axis
from overtone.errors import OvertoneError
from overtone.guard.limits import require_memory
from overtone.schedules import Schedule, require_countable
from overtone.theory.lattices import (
    Frequency,
    common_period,
    is_excited,
    lattice_union,
    mirror,
    multiplicity,
)


@dataclass(frozen=True)
class ErrorModel:
    """How errors are carried forward and how alike those of different steps are.

    Args:
        propagation: λ. Below 1 in size errors fade, above 1 they grow by themselves.
        persistence: correlation of the errors of consecutive steps, 0 to 1.
        agreement: correlation of the errors of different patches, 0 to 1.
    """

    propagation: complex = 1.0
    persistence: float = 1.0
    agreement: float = 1.0

    def __post_init__(self) -> None:
        for name in ("persistence", "agreement"):
            if not 0 <= getattr(self, name) <= 1:
                raise OvertoneError(f"{name} is {getattr(self, name)}; expected 0 to 1")


PHASE_LOCKED = ErrorModel()
"""Every step makes the same error: the worst case."""


@dataclass(frozen=True)
class Growth:
    """Expected growth of errors under a schedule, as plain data.

    Attributes:
        schedule: its string form.
        steps: 1 … n, the number of model calls.
        frequencies: the harmonics that the schedule excites, f and -f as one.
        energy: for each frequency, E|e|² after each number of steps, in units of what one step
            injects.
        injections: for each frequency, at how many steps it is excited.
        coherence: for each frequency, E|Σ a|² / (injections · Σ E|a|²): 1 if all add up, 1 /
            injections if they are independent, 0 if they cancel.
        exponent: for each frequency, g of `energy ∝ n^g`: 2 for coherent growth, 1 for a random
            walk, 0 if it stays bounded. Fitted to the mean energy up to each step, which grows
            alike and is smoother; NaN where nothing is excited.
        common: period of the lattice that the grids of all steps share, for each axis.
    """

    schedule: str
    steps: tuple[int, ...]
    frequencies: tuple[Frequency, ...]
    energy: tuple[tuple[float, ...], ...]
    injections: tuple[int, ...]
    coherence: tuple[float, ...]
    exponent: tuple[float, ...]
    common: tuple[int, ...]

    @property
    def peak(self) -> tuple[float, ...]:
        """For each frequency, the largest energy at any step."""
        return tuple(map(max, self.energy))

    @property
    def total(self) -> tuple[float, ...]:
        """Energy of all harmonics but the mean after each number of steps, f and -f counted."""
        curves = [
            [multiplicity(f) * value for value in curve]
            for f, curve in zip(self.frequencies, self.energy, strict=True)
            if any(f)
        ]
        return tuple(map(sum, zip(*curves, strict=True))) if curves else (0.0,) * len(self.steps)


def injection_covariance(
    schedule: Schedule, frequency: Frequency, steps: int, model: ErrorModel = PHASE_LOCKED
) -> Tensor:
    """E[a_i a_j*] of the first steps of a rollout, `(steps, steps)` complex."""
    require_room(steps)
    patches, phases, active = _injections(schedule, frequency, steps)
    lag = (torch.arange(steps)[:, None] - torch.arange(steps)).abs()
    alike = torch.where(lag == 0, 1.0, torch.tensor(model.persistence).double() ** lag)
    kinds = list(dict.fromkeys(patches))
    kind = torch.tensor([kinds.index(patch) for patch in patches])
    alike = alike * torch.where(kind[:, None] == kind, 1.0, model.agreement)
    turned = torch.where(active, phases, 0.0)
    return turned[:, None] * turned.conj() * alike


def coherence(
    schedule: Schedule, frequency: Frequency, steps: int, model: ErrorModel = PHASE_LOCKED
) -> Tensor:
    """The paper's γ_τ for τ = 0 … steps - 1, `(steps,)` complex.

    E[a_n a_{n+τ}*] averaged over n, in units of what one step injects. γ_0 is the fraction of
    steps at which the frequency is excited.
    """
    covariance = injection_covariance(schedule, frequency, steps, model)
    return torch.stack([covariance.diagonal(lag).mean() for lag in range(steps)])


def expected_energy(
    schedule: Schedule, frequency: Frequency, steps: int, model: ErrorModel = PHASE_LOCKED
) -> Tensor:
    """E|e_n|² for n = 1 … steps, `(steps,)` float64."""
    return carry(injection_covariance(schedule, frequency, steps, model), model.propagation)


def growth(
    schedule: Schedule,
    steps: int,
    *,
    model: ErrorModel = PHASE_LOCKED,
    ndim: int = 1,
    frequencies: Iterable[Frequency] | None = None,
) -> Growth:
    """How the errors of a schedule's harmonics grow over a rollout.

    Args:
        schedule: which patch and shift at which step.
        steps: length of the rollout.
        model: how errors are made and carried forward.
        ndim: number of spatial axes. The axes of a grid behave alike, so 1 tells most.
        frequencies: which to look at; by default all that the schedule excites.
    """
    require_room(steps)
    patches = {schedule(step).patch for step in range(steps)}
    if frequencies is None:
        frequencies = lattice_union(patches, ndim=ndim)
    chosen = tuple(sorted({min(f, mirror(f)) for f in frequencies}))
    curves: list[tuple[float, ...]] = []
    injections: list[int] = []
    coherences: list[float] = []
    for frequency in chosen:
        covariance = injection_covariance(schedule, frequency, steps, model)
        strength = covariance.diagonal().real.sum().item()
        injections.append(round(strength))
        sum_energy = max(covariance.sum().real.item(), 0.0)
        coherences.append(sum_energy / strength**2 if strength else 0.0)
        curves.append(tuple(map(float, carry(covariance, model.propagation))))
    return Growth(
        schedule=str(schedule),
        steps=tuple(range(1, steps + 1)),
        frequencies=chosen,
        energy=tuple(curves),
        injections=tuple(injections),
        coherence=tuple(coherences),
        exponent=tuple(map(_exponent, curves)),
        common=common_period(patches, ndim=ndim),
    )


def simulate(
    schedule: Schedule,
    frequency: Frequency,
    steps: int,
    *,
    model: ErrorModel = PHASE_LOCKED,
    trials: int = 1000,
    seed: int = 0,
) -> Tensor:
    """|e_n|² for n = 1 … steps of random rollouts of the model, `(trials, steps)` float64."""
    random = torch.Generator().manual_seed(seed)
    patches, phases, active = _injections(schedule, frequency, steps)
    shared = amplitudes(trials, steps, model.persistence, random)
    apart = {p: amplitudes(trials, steps, model.persistence, random) for p in sorted(set(patches))}
    error = torch.zeros(trials, dtype=torch.complex128)
    energies: list[Tensor] = []
    for n, patch in enumerate(patches):
        amplitude = model.agreement**0.5 * shared[:, n]
        amplitude = amplitude + (1 - model.agreement) ** 0.5 * apart[patch][:, n]
        error = model.propagation * error + torch.where(active[n], phases[n], 0.0) * amplitude
        energies.append(error.abs().square())
    return torch.stack(energies, dim=1)


MATRICES = 6
"""Complex matrices `(steps, steps)` that are in memory at once, at most."""


def require_room(steps: int) -> None:
    """Refuse rollouts of which a few matrices `(steps, steps)` don't fit into memory."""
    if steps < 1:
        raise OvertoneError(f"steps is {steps}; expected at least 1")
    require_memory(
        MATRICES * 16 * require_countable(steps) ** 2,
        f"the covariance of {steps} steps",
        "ask for fewer",
        error=OvertoneError,
    )


def _injections(
    schedule: Schedule, frequency: Frequency, steps: int
) -> tuple[list[tuple[int, ...]], Tensor, Tensor]:
    """Patch, phase and whether the frequency is excited, at each step."""
    ndim = len(frequency)
    choices = [schedule(step) for step in range(require_countable(steps))]
    if any(len(choice.shift) < ndim for choice in choices):
        raise OvertoneError(f"an offset of '{schedule}' has fewer than {ndim} entries; give {ndim}")
    patches = [per_axis(choice.patch, ndim, "patch") for choice in choices]
    # Turns are reduced as fractions, so that whole turns are no turn to the last digit.
    turns = [
        sum((f * s for f, s in zip(frequency, c.shift, strict=False)), Fraction(0)) % 1
        for c in choices
    ]
    angle = -2 * math.pi * torch.tensor([float(turn) for turn in turns], dtype=torch.float64)
    active = torch.tensor([is_excited(frequency, patch) for patch in patches])
    return patches, torch.polar(torch.ones_like(angle), angle), active


def carry(covariance: Tensor, propagation: complex) -> Tensor:
    """Energy after each step from the covariance of what the steps inject."""
    weights = _propagator(len(covariance), propagation)
    # Row n of the propagator sums what the first n steps have injected.
    energy = ((weights @ covariance) * weights.conj()).sum(dim=1).real
    return energy.clamp(min=0.0)


def _propagator(steps: int, propagation: complex) -> Tensor:
    """λ^{n-1-i} for i < n, n = 1 … steps, 0 elsewhere."""
    powers = [1 + 0j]
    for _ in range(steps - 1):
        powers.append(powers[-1] * propagation)
    lag = torch.arange(steps)[:, None] - torch.arange(steps)
    table = torch.tensor(powers, dtype=torch.complex128)
    return torch.where(lag >= 0, table[lag.clamp(min=0)], 0.0)


def amplitudes(trials: int, steps: int, persistence: float, random: torch.Generator) -> Tensor:
    """Complex amplitudes of mean square 1 with correlation persistence^lag, `(trials, steps)`."""
    noise = torch.randn(trials, steps, 2, generator=random, dtype=torch.float64) / math.sqrt(2)
    fresh = torch.view_as_complex(noise)
    values = [fresh[:, 0]]
    for n in range(1, steps):
        values.append(persistence * values[-1] + math.sqrt(1 - persistence**2) * fresh[:, n])
    return torch.stack(values, dim=1)


def _exponent(energy: Sequence[float]) -> float:
    """Slope in logs of the mean energy up to each step, over the last three quarters."""
    sums = list(itertools.accumulate(energy))
    first = len(sums) // 4
    # The mean of 1 … n is (n + 1)/2, so n + 1 is what it grows with from the start.
    points = [
        (math.log(n + 2), math.log(sums[n] / (n + 1)))
        for n in range(first, len(sums))
        if sums[n] > 0
    ]
    if len(points) < 2:
        return math.nan
    x, y = torch.tensor(points, dtype=torch.float64).unbind(dim=1)
    x = x - x.mean()
    return ((x * y).sum() / x.square().sum()).item()
