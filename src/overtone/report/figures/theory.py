"""What the linear error model says about a schedule, as rows of a table and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.domain import per_axis
from overtone.schedules import Constant, Patch, Schedule
from overtone.theory import PHASE_LOCKED, ErrorModel, Growth, growth, is_excited, lattice_union
from overtone.theory.lattices import Frequency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COHERENT, WALKING = 2**1.5, 2**0.5
"""Twice the steps make a coherent error 4 times as large, a random walk 2 times, others not.

These are the bounds between: by how much the peak of the second half must exceed the first's.
"""
SIZE = 0.1, 0.6
"""Least peaks of the two, in units of n² and of n, n being the number of injections.

Shifts are drawn, so a curve that is bounded, or a random walk, may rise for a while by chance.
"""
FLOOR = 0.05
"""Smallest energy that is drawn."""


@dataclass(frozen=True)
class Harmonic:
    """One frequency of a schedule's lattices.

    Attributes:
        frequency: cycles per cell along each axis.
        patches: those of the schedule that excite it.
        injections: at how many steps it is excited.
        coherence: 1 if all injections add up, 0 if they cancel.
        exponent: g of `energy ∝ n^g`.
        peak: largest expected energy, in units of what one step injects.
        energy: expected energy after each step.
    """

    frequency: Frequency
    patches: tuple[Patch, ...]
    injections: int
    coherence: float
    exponent: float
    peak: float
    energy: tuple[float, ...]

    @property
    def axis(self) -> int:
        """The axis that it lies along; of the mean, 0."""
        return next((i for i, part in enumerate(self.frequency) if part), 0)

    @property
    def label(self) -> str:
        """Its frequency, e.g. `1/16`, and the axis that it lies along if it is not the first."""
        return f"{self.frequency[self.axis]}" + (f", axis {self.axis}" if self.axis else "")

    @property
    def excited_by(self) -> str:
        """Its patches as a schedule writes them."""
        return ", ".join(str(Constant(patch)) for patch in self.patches)

    @property
    def kind(self) -> str:
        """How it grows, in words."""
        if not self.injections or self.peak == 0:
            return "not excited"
        half = len(self.energy) // 2
        early = max(self.energy[:half], default=0.0)
        rise = max(self.energy[half:]) / early if early else 0.0
        if rise >= COHERENT and self.peak >= SIZE[0] * self.injections**2:
            return "coherent"
        walks = rise >= WALKING and self.peak >= SIZE[1] * self.injections
        return "random walk" if walks else "bounded"


def harmonics(
    schedule: Schedule, steps: int, *, ndim: int = 2, model: ErrorModel = PHASE_LOCKED
) -> tuple[Harmonic, ...]:
    """The harmonics along the axes that a schedule excites, f and -f as one, the mean first.

    Harmonics that are oblique to the axes are left out: their number grows with the power `ndim`,
    and they behave as those along the axes do.

    Args:
        schedule: which patch and shift at which step.
        steps: length of the rollout.
        ndim: number of spatial axes.
        model: how errors are made and carried forward.
    """
    patches = tuple(dict.fromkeys(schedule(step).patch for step in range(steps)))
    found: Growth = growth(
        schedule, steps, model=model, ndim=ndim, frequencies=_along_axes(patches, ndim)
    )
    columns = found.frequencies, found.injections, found.coherence, found.exponent, found.energy
    seen = (
        Harmonic(
            frequency=frequency,
            patches=tuple(p for p in patches if is_excited(frequency, p)),
            injections=injections,
            coherence=coherence,
            exponent=exponent,
            peak=max(energy),
            energy=energy,
        )
        for frequency, injections, coherence, exponent, energy in zip(*columns, strict=True)
    )
    return tuple(sorted(seen, key=lambda harmonic: (harmonic.axis, harmonic.frequency)))


def verdict(found: Sequence[Harmonic]) -> str:
    """Which harmonics stay coherent, in a sentence."""
    waves = [harmonic for harmonic in found if any(harmonic.frequency)]
    kept = [harmonic.label for harmonic in waves if harmonic.kind == "coherent"]
    if not waves:
        return "The schedule excites the mean and nothing else."
    if not kept:
        return "No harmonic but the mean stays coherent."
    if len(kept) == len(waves):
        return "All harmonics stay coherent."
    return f"Coherent, and so growing as the square of the steps: {', '.join(kept)}."


def draw(found: Sequence[Harmonic], schedule: Schedule, out: str | Path) -> Path:
    """Write the picture of `growth_figure` to a file."""
    from overtone.report.style import save_as

    path = Path(out)
    save_as(growth_figure(found, schedule), path, dpi=130)
    return path


def growth_figure(found: Sequence[Harmonic], schedule: Schedule) -> Figure:
    """Expected energies over the steps, and their peaks with the exponents of growth.

    Args:
        found: what `harmonics` found.
        schedule: for the title.
    """
    # Harmonics are also told without a picture, and importing matplotlib takes long.
    import matplotlib

    from overtone.report.style import FIELD_COLOURS, new_figure, text

    colours = matplotlib.colormaps[FIELD_COLOURS]
    waves = [harmonic for harmonic in found if any(harmonic.frequency)] or list(found)
    groups = list(dict.fromkeys(harmonic.patches for harmonic in waves))
    figure = new_figure(11, 4.4)
    left, right = figure.subplots(1, 2)
    steps = range(1, len(waves[0].energy) + 1)
    for number, harmonic in enumerate(waves):
        group = groups.index(harmonic.patches)
        shade = colours(0.85 * group / max(len(groups) - 1, 1))
        first = next(h for h in waves if h.patches == harmonic.patches) is harmonic
        label = f"patch {harmonic.excited_by}" if first else None
        # What cancels has no place on a log scale.
        energy = [value if value > FLOOR else math.nan for value in harmonic.energy]
        marker = {"marker": "osD^v"[group % 5], "markevery": 0.2, "markersize": 4}
        left.plot(steps, energy, color=shade, label=label, linewidth=1.2, **marker)
        right.bar(number, harmonic.peak, color=shade)
        right.annotate(
            f"{harmonic.exponent:.1f}", (number, harmonic.peak), ha="center", va="bottom"
        )
    for power, style, label in ((1, ":", "n: random walk"), (2, "--", "n²: coherent")):
        left.plot(steps, [n**power for n in steps], style, color="0.4", linewidth=1, label=label)
    limits = (FLOOR, 4 * len(steps) ** 2)  # the same for every schedule of this length
    left.set(xscale="log", yscale="log", xlabel="step n", ylim=limits)
    left.set_ylabel("expected energy E|e|² (one injection = 1)")
    left.legend(title="excited by", fontsize=8)
    right.set_xticks(range(len(waves)), [harmonic.label for harmonic in waves], rotation=60)
    right.set(xlabel="harmonic (cycles per cell)", yscale="log", ylim=limits)
    right.set_ylabel("peak of E|e|², and its exponent of growth")
    figure.suptitle(
        f"Schedule {text(str(schedule))}: growth of patch harmonics in the linear error model"
    )
    return figure


def _along_axes(patches: Sequence[Patch], ndim: int) -> list[Frequency]:
    """Frequencies along each axis that differs from those before it; along the first, always."""
    by_axis = [
        lattice_union([per_axis(patch, ndim, "patch")[axis] for patch in patches])
        for axis in range(ndim)
    ]
    rest = [Fraction(0)] * (ndim - 1)
    return [
        (*rest[:axis], *frequency, *rest[axis:])
        for axis in range(ndim)
        if axis == 0 or by_axis[axis] not in by_axis[:axis]
        for frequency in by_axis[axis]
    ]
