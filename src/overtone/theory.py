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

Frequencies are exact fractions of a cycle per cell, one for each axis, from 0 to below 1.

`Parts` is the same model for error estimates: what two patches get wrong alike, and each alone.
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
from overtone.schedules import Patch, Schedule, require_countable

Frequency = tuple[Fraction, ...]
"""Cycles per cell along each axis."""


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
            [_multiplicity(f) * value for value in curve]
            for f, curve in zip(self.frequencies, self.energy, strict=True)
            if any(f)
        ]
        return tuple(map(sum, zip(*curves, strict=True))) if curves else (0.0,) * len(self.steps)


MAX_FREQUENCIES = 1_000_000
"""Most frequencies of a lattice that are listed."""


def lattice(patch: Patch, *, ndim: int = 1) -> frozenset[Frequency]:
    """Ω: the frequencies that a grid of this period excites, the mean included."""
    sizes = per_axis(patch, ndim, "patch")
    if min(sizes) < 1 or math.prod(sizes) > MAX_FREQUENCIES:
        raise OvertoneError(
            f"a patch of {' x '.join(map(str, sizes))} cells has {math.prod(sizes)} harmonics; "
            f"expected 1 to {MAX_FREQUENCIES}: choose another patch"
        )
    axes = [[Fraction(m, p) for m in range(p)] for p in sizes]
    return frozenset(itertools.product(*axes))


def lattice_union(patches: Iterable[Patch], *, ndim: int = 1) -> frozenset[Frequency]:
    """The frequencies that at least one of the grids excites."""
    return frozenset().union(*(lattice(patch, ndim=ndim) for patch in _some(patches)))


def common_period(patches: Iterable[Patch], *, ndim: int = 1) -> tuple[int, ...]:
    """The period, for each axis, of the lattice that all grids share: the greatest divisor.

    f is a multiple of 1/p and of 1/q exactly if it is a multiple of 1/gcd(p, q). The patches 4, 8
    and 16 share the lattice of 4; 3, 4 and 5 share that of 1, the mean. Moving a grid changes
    phases, not frequencies, so shifts do not matter here.
    """
    sizes = [per_axis(patch, ndim, "patch") for patch in _some(patches)]
    return tuple(math.gcd(*axis) for axis in zip(*sizes, strict=True))


def lattice_intersection(patches: Iterable[Patch], *, ndim: int = 1) -> frozenset[Frequency]:
    """The frequencies that all of the grids excite."""
    return lattice(common_period(patches, ndim=ndim), ndim=ndim)


def is_excited(frequency: Frequency, patch: Patch) -> bool:
    """Whether a frequency is on the lattice of a patch."""
    sizes = per_axis(patch, len(frequency), "patch")
    return all((f * p).denominator == 1 for f, p in zip(frequency, sizes, strict=True))


def injection_covariance(
    schedule: Schedule, frequency: Frequency, steps: int, model: ErrorModel = PHASE_LOCKED
) -> Tensor:
    """E[a_i a_j*] of the first steps of a rollout, `(steps, steps)` complex."""
    _require_room(steps)
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
    return _carry(injection_covariance(schedule, frequency, steps, model), model.propagation)


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
    _require_room(steps)
    patches = {schedule(step).patch for step in range(steps)}
    if frequencies is None:
        frequencies = lattice_union(patches, ndim=ndim)
    chosen = tuple(sorted({min(f, _mirror(f)) for f in frequencies}))
    curves, injections, coherences = [], [], []
    for frequency in chosen:
        covariance = injection_covariance(schedule, frequency, steps, model)
        strength = covariance.diagonal().real.sum().item()
        injections.append(round(strength))
        sum_energy = max(covariance.sum().real.item(), 0.0)
        coherences.append(sum_energy / strength**2 if strength else 0.0)
        curves.append(tuple(_carry(covariance, model.propagation).tolist()))
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
    shared = _amplitudes(trials, steps, model.persistence, random)
    apart = {p: _amplitudes(trials, steps, model.persistence, random) for p in sorted(set(patches))}
    error = torch.zeros(trials, dtype=torch.complex128)
    energies = []
    for n, patch in enumerate(patches):
        amplitude = model.agreement**0.5 * shared[:, n]
        amplitude = amplitude + (1 - model.agreement) ** 0.5 * apart[patch][:, n]
        error = model.propagation * error + torch.where(active[n], phases[n], 0.0) * amplitude
        energies.append(error.abs().square())
    return torch.stack(energies, dim=1)


@dataclass(frozen=True)
class Parts:
    """What the error of a step consists of, as root mean squares.

    A step at a patch adds `b + o`, the step that it is compared with `b + o'`: b is what both get
    wrong alike, o and o' are their own. The two see `o - o'` of each other, and nothing of b.

    Args:
        shared: of b.
        own, other: of o and o'.
        likeness: correlation of o and o', -1 to 1.
        shared_persistence, own_persistence: correlations of the parts of consecutive steps, 0 to 1.
        propagation: λ, as of `ErrorModel`.
    """

    shared: float
    own: float
    other: float
    likeness: float = 0.0
    shared_persistence: float = 1.0
    own_persistence: float = 0.0
    propagation: complex = 1.0

    def __post_init__(self) -> None:
        for name, least in (("likeness", -1), ("shared_persistence", 0), ("own_persistence", 0)):
            if not least <= getattr(self, name) <= 1:
                raise OvertoneError(f"{name} is {getattr(self, name)}; expected {least} to 1")
        if min(self.shared, self.own, self.other) < 0:
            raise OvertoneError(f"{self} has a negative part; expected 0 or more")

    @property
    def error(self) -> float:
        """Root mean square error of one step: √(shared² + own²)."""
        return math.hypot(self.shared, self.own)

    @property
    def disagreement(self) -> float:
        """Root mean square of `o - o'`."""
        cross = 2 * self.likeness * self.own * self.other
        return math.sqrt(max(self.own**2 + self.other**2 - cross, 0.0))

    @property
    def bounded(self) -> bool:
        """Whether the disagreement of a step is at least its error.

        That is so if shared² ≤ other² - 2 · likeness · own · other: what both get wrong alike must
        be less than what the other one alone does.
        """
        return self.disagreement >= self.error


def error_ratio(parts: Parts, steps: int) -> Tensor:
    """Error of a rollout over the root of the summed squares of its steps' disagreements.

    Args:
        parts: what a step's error consists of.
        steps: n.

    Returns:
        `√(E|e_n|² / (n d²))` for n = 1 … steps, `(steps,)` float64: what a calibration measures,
        step by step. With independent errors and λ = 1 it is constant; what is shared and repeats
        itself makes it grow with √n; infinite where nothing disagrees.
    """
    _require_room(steps)
    lag = (torch.arange(steps)[:, None] - torch.arange(steps)).abs()
    covariance = sum(
        size**2 * torch.where(lag == 0, 1.0, torch.tensor(persistence).double() ** lag)
        for size, persistence in (
            (parts.shared, parts.shared_persistence),
            (parts.own, parts.own_persistence),
        )
    )
    assert isinstance(covariance, Tensor)
    energy = _carry(covariance.to(torch.complex128), parts.propagation)
    seen = torch.arange(1, steps + 1, dtype=torch.float64) * parts.disagreement**2
    return (energy / seen).sqrt()


def simulate_parts(
    parts: Parts, steps: int, *, trials: int = 1000, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """|e_n|² and the summed squares of disagreements of random rollouts, `(trials, steps)` each."""
    random = torch.Generator().manual_seed(seed)
    shared = parts.shared * _amplitudes(trials, steps, parts.shared_persistence, random)
    own = _amplitudes(trials, steps, parts.own_persistence, random)
    apart = _amplitudes(trials, steps, parts.own_persistence, random)
    other = parts.likeness * own + math.sqrt(1 - parts.likeness**2) * apart
    difference = (parts.own * own - parts.other * other).abs().square().cumsum(dim=1)
    error, energies = torch.zeros(trials, dtype=torch.complex128), []
    for n in range(steps):
        error = parts.propagation * error + shared[:, n] + parts.own * own[:, n]
        energies.append(error.abs().square())
    return torch.stack(energies, dim=1), difference


MATRICES = 6
"""Complex matrices `(steps, steps)` that are in memory at once, at most."""


def _require_room(steps: int) -> None:
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


def _carry(covariance: Tensor, propagation: complex) -> Tensor:
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


def _amplitudes(trials: int, steps: int, persistence: float, random: torch.Generator) -> Tensor:
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


def _mirror(frequency: Frequency) -> Frequency:
    return tuple(-f % 1 for f in frequency)


def _multiplicity(frequency: Frequency) -> int:
    return 1 if frequency == _mirror(frequency) else 2


def _some(patches: Iterable[Patch]) -> list[Patch]:
    some = list(patches)
    if not some:
        raise OvertoneError("no patches were given; expected at least one")
    return some


__all__ = [
    "PHASE_LOCKED",
    "ErrorModel",
    "Growth",
    "coherence",
    "common_period",
    "expected_energy",
    "growth",
    "injection_covariance",
    "is_excited",
    "lattice",
    "lattice_intersection",
    "lattice_union",
    "simulate",
]
