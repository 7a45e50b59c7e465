"""What turns a disagreement into an error: ratios that were measured on a validation split.

A *band* belongs to what was rolled out and what it was compared with. For every step it has the
ratio of the true error to the disagreement: its median for a value, and two of its order statistics
for an interval. That is split conformal prediction with the ratio as the score: if a new rollout is
exchangeable with the n that were calibrated by, its ratio lies between the k-th smallest and the
k-th largest of theirs with probability (n + 1 - 2k)/(n + 1), whatever its distribution is. Of too
few rollouts a level has no interval.

The file `calibration.json` in a model's folder names the checksum of the weights that it was
measured with; with other weights it is refused. Like all of a folder, it is data: nothing in it is
executed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from overtone.domain import Domain
from overtone.errors import CheckpointError
from overtone.guard.names import shown
from overtone.hub import CALIBRATION
from overtone.schedules import Patch, write_patch
from overtone.version import __version__

FORMAT = "overtone-calibration-1"
LEVELS = (0.5, 0.9)
"""Shares of the errors that intervals are made for."""
ANY = "*"
"""In the place of a schedule: all that were calibrated by, together."""
MAX_BYTES = 16_000_000
"""Largest file that is read."""


def step_of(patch: Patch) -> str:
    """What a band of single steps at a patch is called."""
    sizes = patch if isinstance(patch, tuple) else (patch,)
    return f"step {write_patch(sizes[0] if len(set(sizes)) == 1 else sizes)}"


@dataclass(frozen=True)
class Band:
    """Ratios of true error to disagreement at each step, S steps and C fields.

    Attributes:
        factor: `(S,)`, median of the mean over fields.
        fields: `(S, C)`, of each field.
        bounds: level -> lower and upper ratios `(S,)`; levels for which there are too few rollouts
            are left out.
        count: rollouts that it was measured with.
    """

    factor: tuple[float, ...]
    fields: tuple[tuple[float, ...], ...]
    bounds: Mapping[float, tuple[tuple[float, ...], tuple[float, ...]]]
    count: int

    @classmethod
    def measure(cls, errors: Tensor, disagreements: Tensor) -> Band:
        """The ratios of some rollouts.

        Args:
            errors, disagreements: `(n, S, C)`, VRMSE of each rollout, step and field. Rollouts that
                were lost have errors that are not finite, and count as ones that nothing bounds.
        """
        ratios = _ratio(errors, disagreements)
        means = _ratio(errors.mean(dim=2), disagreements.mean(dim=2))
        ranked, count = means.sort(dim=0).values, len(means)
        bounds = {}
        for level in LEVELS:
            # Counted from 1, from either end; 20 · 0.05 is 1, but for rounding.
            place = math.floor((count + 1) * (1 - level) / 2 + 1e-9)
            if place >= 1:
                pair = (ranked[place - 1].tolist(), ranked[count - place].tolist())
                bounds[level] = (tuple(pair[0]), tuple(pair[1]))
        medians = ratios.median(dim=0).values
        return cls(
            tuple(means.median(dim=0).values.tolist()),
            tuple(tuple(row) for row in medians.tolist()),
            bounds,
            count,
        )


def _ratio(errors: Tensor, disagreements: Tensor) -> Tensor:
    """Errors over disagreements; where both are nothing, or the disagreement is, 1."""
    ratio = errors.double() / disagreements.double()
    ratio = torch.where(disagreements > 0, ratio, 1.0)
    return ratio.nan_to_num(nan=math.inf, posinf=math.inf)


@dataclass(frozen=True)
class Calibration:
    """All bands of a model.

    Attributes:
        weights: SHA-256 of the weights' file.
        shape: cells along each axis that it was measured on; on other grids it says nothing.
        fields: their names.
        errors: patch, as text -> usual error of one step, VRMSE, mean over fields.
        bands: what was rolled out, what it was compared with -> ratios. What is rolled out is a
            schedule's string form, `step PATCH` for single steps, or `*` for all schedules.
        data: what it was measured with, plain data.
    """

    weights: str
    shape: tuple[int, ...]
    fields: tuple[str, ...]
    errors: Mapping[str, float]
    bands: Mapping[tuple[str, str], Band]
    data: Mapping[str, Any] = field(default_factory=dict)

    def band(self, rule: str, against: str) -> Band | None:
        """The ratios of a schedule, or else those of all that were compared with the same."""
        return self.bands.get((rule, against)) or self.bands.get((ANY, against))

    def error_of(self, patch: Patch) -> float | None:
        """The usual error of a step at a patch, if it was measured."""
        return self.errors.get(step_of(patch).removeprefix("step "))

    def on(self, domain: Domain) -> Calibration | None:
        """Itself, where it says something: on the grid and the fields that it was measured on."""
        return self if (self.shape, self.fields) == (domain.shape, domain.fields) else None

    def to_json(self) -> str:
        """As the file has it."""
        content = {
            "format": FORMAT,
            "overtone": __version__,
            "weights": self.weights,
            "shape": list(self.shape),
            "fields": list(self.fields),
            "errors": _storable(dict(self.errors)),
            "data": dict(self.data),
            "bands": [
                {
                    "rule": rule,
                    "against": against,
                    "count": band.count,
                    "factor": _storable(band.factor),
                    "fields": _storable(band.fields),
                    "bounds": {str(k): _storable(pair) for k, pair in band.bounds.items()},
                }
                for (rule, against), band in self.bands.items()
            ],
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _storable(value: Any) -> Any:
    """Plain data with five digits of each number; infinity, which JSON lacks, as text."""
    if isinstance(value, dict):
        return {key: _storable(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_storable(entry) for entry in value]
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)


def load_calibration(folder: Path, weights: str) -> Calibration | None:
    """The calibration in a model's folder; None if there is none.

    Args:
        folder: of the model.
        weights: SHA-256 of its weights.

    Raises:
        CheckpointError: it can't be read, or is of other weights.
    """
    path = folder / CALIBRATION
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, this version reads '{FORMAT}'")
        found = _read(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"'{path}' can't be read as a calibration: {shown(repr(error))[:300]}. Remove it, or "
            "run `overtone calibrate MODEL DATA` again"
        ) from error
    if found.weights != weights:
        raise CheckpointError(
            f"'{path}' was measured with other weights than those beside it; what it says of "
            "errors does not hold for them. Run `overtone calibrate MODEL DATA` again, or remove it"
        )
    return found


def _read(content: Mapping[str, Any]) -> Calibration:
    bands = {}
    for entry in content["bands"]:
        factor, fields = _numbers(entry["factor"]), tuple(_numbers(f) for f in entry["fields"])
        bounds = {float(k): (_numbers(low), _numbers(high))
                  for k, (low, high) in entry["bounds"].items()}  # fmt: skip
        lengths = {len(factor), len(fields), *(len(b) for pair in bounds.values() for b in pair)}
        widths = {len(row) for row in fields}
        if len(lengths) != 1 or not factor or widths != {len(content["fields"])}:
            raise ValueError(f"the band of {entry['rule']!r} has numbers of {lengths} steps")
        key = (str(entry["rule"]), str(entry["against"]))
        bands[key] = Band(factor, fields, bounds, int(entry["count"]))
    return Calibration(
        weights=str(content["weights"]),
        shape=tuple(int(n) for n in content["shape"]),
        fields=tuple(str(name) for name in content["fields"]),
        errors={str(k): float(v) for k, v in content["errors"].items()},
        bands=bands,
        data=dict(content["data"]),
    )


def _numbers(values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if any(math.isnan(value) or value < 0 for value in numbers):
        raise ValueError("a ratio is negative or no number")
    return numbers
