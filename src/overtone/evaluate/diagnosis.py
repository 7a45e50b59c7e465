"""What a diagnosis found, as plain data, and in one sentence.

`Diagnosis.model_json_schema()` is the schema of the JSON file in JSON's own terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from overtone.evaluate.results import Cell, Number, Record
from overtone.files import replacing

AXES = "xyz"

Sign = Literal["lines", "energy", "seams"]
"""How an artifact shows: the residual repeats, only its size does, or it jumps between patches."""

STEADY = 0.25
"""Exponents below this are no growth."""


class AxisPower(Record):
    """Power of the modes along one axis at the last step: those of the mean over the others.

    Attributes:
        axis: x, y or z.
        wavenumber: cycles per cell.
        power: in units of the truth's variance; of the envelope if `statistic` is energy, of
            squared jumps between cells if it is seams.
    """

    axis: str
    wavenumber: tuple[Number, ...]
    power: tuple[Number, ...]


class Artifact(Record):
    """What was measured on the lattice of one period.

    Attributes:
        period: in cells along each axis; 1 along an axis without one.
        statistic: "lines" if the residual itself repeats, "energy" if only its size does, "seams"
            if it jumps at the borders of patches.
        excess: dB above the spectral neighbourhood, over all steps; of seams, dB of squared jumps
            at them above those within patches.
        p_value: chance of such a finding without artifact.
        share: of the residual's power that is on the lattice (lines only).
        contrast: dB between the cells of a patch with the largest and the smallest error.
        exponent: g of `power ∝ step^g`; NaN if there are too few steps.
        excess_by_step: dB at each step.
        power_by_step: mean square of the artifact at each step, in units of the truth's variance;
            of seams, what they add to the mean square jump.
        cell: mean square residual folded onto the patch, nested lists over the axes.
    """

    period: tuple[int, ...]
    statistic: Sign
    excess: Number
    p_value: Number
    share: Number
    contrast: Number
    exponent: Number
    excess_by_step: tuple[Number, ...]
    power_by_step: tuple[Number, ...]
    cell: Cell


class Diagnosis(Record):
    """The whole of a diagnosis.

    Attributes:
        sentence: the finding, for people.
        found: whether there is a grid artifact.
        artifact: its measure; also that of a patch that was asked for and has none.
        tested: the periods that were tried.
        prediction, truth: names of the files or folders.
        fields: that were compared.
        grid: cells along each axis.
        periodic: axes that wrap.
        samples, steps: how many were compared.
        error_by_step: mean square residual at each step, in units of the truth's variance.
        spectrum: of the residual at the last step.
        blow_up: the first step at which a sample was not finite; None if all were.
        notes: what was left out or assumed.
        machine: versions.
    """

    format: Literal["overtone-diagnosis-1"] = "overtone-diagnosis-1"
    sentence: str
    found: bool
    artifact: Artifact | None
    tested: tuple[int | tuple[int, ...], ...]
    prediction: str
    truth: str
    fields: tuple[str, ...]
    grid: tuple[int, ...]
    periodic: tuple[bool, ...]
    samples: int
    steps: int
    error_by_step: tuple[Number, ...]
    spectrum: tuple[AxisPower, ...]
    blow_up: int | None
    notes: tuple[str, ...]
    machine: dict[str, str]

    def save(self, path: str | Path) -> None:
        """Write JSON; the file is complete or absent."""
        with replacing(path) as scratch:
            scratch.write_text(self.to_json(indent=2) + "\n")


def describe(artifact: Artifact | None, tested: Sequence[int | tuple[int, ...]]) -> str:
    """The finding as a sentence.

    Args:
        artifact: what was found; None if nothing was.
        tested: the periods that were tried.
    """
    if artifact is None:
        return f"No grid artifact found ({_tested(tested)} tested)."
    chance = "p < 1e-6" if artifact.p_value < 1e-6 else f"p = {artifact.p_value:.1g}"
    height = f"{artifact.excess:.1f} dB above its spectral neighbourhood ({chance})"
    period, growth = _period(artifact.period), _growth(artifact.exponent)
    if artifact.statistic == "seams":
        return (
            f"Seams between patches, period {period}: the error jumps {artifact.excess:.1f} dB "
            f"more at them than within ({chance}){growth}."
        )
    if artifact.statistic == "lines":
        return (
            f"Grid artifact of period {period}: {height}, {_percent(artifact.share)} of the "
            f"residual's power{growth}."
        )
    return (
        f"Grid artifact of random sign, period {period}: the error's energy is {height}, "
        f"{artifact.contrast:.1f} dB larger at one place of the patch than at another{growth}."
    )


def _period(sizes: tuple[int, ...]) -> str:
    if len(sizes) == 1:
        return f"{sizes[0]} cells"
    if len(set(sizes)) == 1:
        return f"{sizes[0]} cells on {'both' if len(sizes) == 2 else 'all three'} axes"
    named = [(n, axis) for n, axis in zip(sizes, AXES, strict=False) if n > 1]
    first = f"{named[0][0]} cells along {named[0][1]}"
    others = [f"{n} along {axis}" for n, axis in named[1:]]
    return " and ".join([first, *others]) if others else f"{first} alone"


def _growth(exponent: float) -> str:
    if math.isnan(exponent):
        return ""
    if abs(exponent) < STEADY:
        return ", steady over the steps"
    return f", {'growing' if exponent > 0 else 'shrinking'} like step^{exponent:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _tested(tested: Sequence[int | tuple[int, ...]]) -> str:
    names: list[str] = []
    for run in _runs(tested):
        whole = len(run) > 2
        names += [f"{run[0]} to {run[-1]}"] if whole else [_name(period) for period in run]
    return f"period{'s' if len(tested) > 1 else ''} {', '.join(names)}"


def _runs(tested: Sequence[int | tuple[int, ...]]) -> list[list[int | tuple[int, ...]]]:
    """Periods in groups of whole numbers that follow each other."""
    runs: list[list[int | tuple[int, ...]]] = []
    for period in tested:
        last = runs[-1][-1] if runs else None
        if isinstance(period, int) and isinstance(last, int) and period == last + 1:
            runs[-1].append(period)
        else:
            runs.append([period])
    return runs


def _name(period: int | tuple[int, ...]) -> str:
    return str(period) if isinstance(period, int) else "x".join(map(str, period))
