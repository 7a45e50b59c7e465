"""What an evaluation found, as plain data: the schema of `results.json`.

Every averaged number is an `Estimate`: its value over the trajectories and a 95 % interval by
bootstrap over them. `Results.model_json_schema()` is the schema in JSON's own terms.

JSON knows no infinity, so a number that is not finite is one of the texts "NaN", "Infinity" and
"-Infinity". Files of older versions, which have these words without quotes, are read as well.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from torch import Tensor

from overtone.errors import DataError
from overtone.files import replacing
from overtone.guard.names import shown
from overtone.metrics.confidence import bootstrap
from overtone.schedules import Constant, Patch

FORMAT = "overtone-results-1"
RESULTS = "results.json"
NO_UNICODE = re.compile("[\ud800-\udfff]")
"""What Python has in the place of bytes that are no UTF-8."""

Number = Annotated[
    float,
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}),
]
"""A number, also one that is not finite."""
Cell = list[Number] | list[list[Number]] | list[list[list[Number]]]
"""Numbers over one to three axes."""


class Record(BaseModel):
    """Base of all parts: immutable, and nothing that is not named here."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    def to_json(self, *, indent: int | None = None, digits: int | None = None) -> str:
        """Strict JSON, which every reader of JSON can read.

        Args:
            indent: spaces of each level; all in one line without.
            digits: of every number with a fraction; all by default.
        """
        separators = (",", ":") if indent is None else None
        content = storable(self.model_dump(), digits)
        return json.dumps(content, indent=indent, separators=separators, allow_nan=False)


def storable(value: Any, digits: int | None = None) -> Any:
    """The same plain data as JSON can hold it, which has no infinity and no bytes in texts.

    Args:
        value: plain data.
        digits: of every number with a fraction; all by default.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, str):
        return NO_UNICODE.sub(lambda found: shown(found[0]), value)
    if isinstance(value, (list, tuple)):
        return [storable(entry, digits) for entry in value]
    if isinstance(value, dict):
        return {storable(name): storable(entry, digits) for name, entry in value.items()}
    return value


class Estimate(Record):
    """A mean over trajectories and its 95 % bootstrap interval."""

    value: Number
    low: Number
    high: Number


def estimate(values: Tensor, *, seed: int = 0) -> Estimate:
    """The mean of one number for each trajectory, `(N,)`."""
    (only,) = estimates(values[:, None], seed=seed)
    return only


def estimates(values: Tensor, *, seed: int = 0) -> tuple[Estimate, ...]:
    """The means of some numbers for each trajectory, `(N, K)`."""
    found = bootstrap(values, seed=seed)
    rows = zip(found.value.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return tuple(Estimate(value=value, low=low, high=high) for value, low, high in rows)


class NextStep(Record):
    """One step from true frames at one patch.

    Attributes:
        patch: one int, or one for each axis.
        vrmse: mean over fields.
        fields: VRMSE of each field.
        tokens, flops: of one prediction of one sample.
        seconds: measured, of one prediction of one sample.
        bsnmse: mean over fields, for each band (low, mid, high); empty in results of older
            versions.
    """

    patch: int | tuple[int, ...]
    vrmse: Estimate
    fields: dict[str, Estimate]
    tokens: int
    flops: int
    seconds: Number
    bsnmse: dict[str, Estimate] = {}


class Harmonics(Record):
    """The grid artifact of one period over a rollout.

    Attributes:
        patch: the period in cells.
        excess: dB above the spectral neighbourhood, at each step, mean over trajectories.
        exponent: g of `power ∝ step^g`.
        overall: dB, of the mean spectrum over all steps.
        p_value: of the overall excess.
        share: of the residual's power that is on the lattice, overall.
        cell: mean square residual folded onto the patch cell, nested lists over the axes.
        worst_seams: dB by which the residual jumps more across the borders of such patches than
            within them, at each step, mean over trajectories, for the offset of the grid, of all,
            that has the largest mean along each axis. Steps of any sign count, which leave no
            lines in the spectrum. Being a maximum, it is a little above 0 without seams, too.
    """

    patch: int | tuple[int, ...]
    excess: tuple[Estimate, ...]
    exponent: Number
    overall: Number
    p_value: Number
    share: Number
    cell: Cell
    worst_seams: tuple[Estimate, ...] = ()


class ResidualSpectrum(Record):
    """Isotropic power spectrum of the normalised residual at one step, mean over samples.

    Attributes:
        step: counted from 1.
        wavenumber: cycles per cell of the finest axis.
        power: of the residual in units of the truth's variance, mean over fields.
        low, high: bounds of the power's 95 % interval.
        truth: the truth's own, in the same units.
    """

    step: int
    wavenumber: tuple[Number, ...]
    power: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]
    truth: tuple[Number, ...]


class AxisSpectrum(Record):
    """Power spectrum of one field's normalised residual along one axis, mean over samples.

    Attributes:
        step: counted from 1.
        field: its name.
        axis: counted from 0.
        wavenumber: cycles per cell.
        power: of the residual in units of the truth's variance, summed over the other axes.
        low, high: bounds of the power's 95 % interval.
        truth: the truth's own, in the same units.
        swell: period in cells -> dB of the power around its harmonics above that between them.
    """

    step: int
    field: str
    axis: int
    wavenumber: tuple[Number, ...]
    power: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]
    truth: tuple[Number, ...]
    swell: dict[int, Estimate]


class Told(Record):
    """What a rollout of the first trajectory told of its own error, beside its true error.

    Attributes:
        against: what its steps were compared with, see `overtone.rollout.estimates`.
        error: true VRMSE at each step, mean over fields.
        value: what it was thought to be.
        low, high: bounds of the 90 % interval; empty if too few rollouts were calibrated by.
        horizon: the last step that the calibration knows; None if it knows all.
        patches: of the steps.
    """

    against: str
    error: tuple[Number, ...]
    value: tuple[Number, ...]
    low: tuple[Number, ...] = ()
    high: tuple[Number, ...] = ()
    horizon: int | None = None
    patches: tuple[int | tuple[int, ...], ...]


class Run(Record):
    """One rollout schedule of one model.

    Attributes:
        schedule: its string form.
        vrmse: at each step, mean over fields. Shorter than `steps` if all trajectories blew up.
        vrmse_10: mean over the first ten steps, or fewer if fewer were made.
        vrmse_all: mean over all steps.
        fields: `vrmse_all` of each field.
        bsnmse: mean over all steps, for each band (low, mid, high).
        energy: for each band, the prediction's energy there over the truth's, at each step; 1 is as
            the truth, whether or not the two still agree place by place.
        harmonics: of each of the patches that the schedules use.
        seams: dB by which the residual jumps more across the borders of the patches of each step,
            where they lie at that step, than within them, mean over trajectories; NaN at steps
            whose grid has no borders.
        spectra: residual spectra at chosen steps.
        axis_spectra: those of each field along each axis, at the middle step.
        physics: name of a law -> at each step, how far the prediction's value of it is from the
            truth's, relative to the truth's own, or to the terms that cancel there (`laws`); 0 is
            as the truth.
        margins: name of a yardstick -> at each step, VRMSE less that of the yardstick on the same
            trajectory; below 0 is better than it. Infinite with a trajectory that blew up.
        told: what the first trajectory's rollout tells of its own error, if the model is
            calibrated for this grid.
        tokens: of all steps of one sample.
        flops: of all steps of one sample.
        seconds: measured, of all steps of one sample.
        blow_up: the first step (from 1) at which a trajectory turned non-finite; None if none did.
    """

    schedule: str
    vrmse: tuple[Estimate, ...]
    vrmse_10: Estimate
    vrmse_all: Estimate
    fields: dict[str, Estimate]
    bsnmse: dict[str, Estimate]
    energy: dict[str, tuple[Estimate, ...]] = {}
    harmonics: tuple[Harmonics, ...]
    seams: tuple[Estimate, ...] = ()
    spectra: tuple[ResidualSpectrum, ...]
    axis_spectra: tuple[AxisSpectrum, ...] = ()
    physics: dict[str, tuple[Estimate, ...]]
    margins: dict[str, tuple[Estimate, ...]] = {}
    told: Told | None = None
    tokens: int
    flops: int
    seconds: Number
    blow_up: int | None = None

    @model_serializer(mode="wrap")
    def _as_it_was_read(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_empty(dump(self), "margins", "told")

    @model_validator(mode="before")
    @classmethod
    def _before_grids_moved(cls, values: Any) -> Any:
        """Read what the first version wrote: seams of each period, for a grid at rest.

        That is the grid in use where the schedule is one patch without shifts, and no other.
        """
        if not isinstance(values, dict) or "seams" in values:
            return values
        parts = [part for part in values.get("harmonics", ()) if isinstance(part, dict)]
        own = [p["seams"] for p in parts if str(Constant(_patch(p))) == values.get("schedule")
               and "seams" in p]  # fmt: skip
        kept = [{k: v for k, v in part.items() if k != "seams"} for part in parts]
        return values | ({"harmonics": kept} if parts else {}) | ({"seams": own[0]} if own else {})


def _without_empty(content: dict[str, Any], *later: str) -> dict[str, Any]:
    """Plain data less entries that older versions lack, so that their files stay what they are."""
    return {name: value for name, value in content.items() if value or name not in later}


def _patch(values: dict[str, Any]) -> Patch:
    """The patch of harmonics that are still plain data."""
    patch = values["patch"]
    return patch if isinstance(patch, int) else tuple(patch)


class ModelResult(Record):
    """All that was measured of one model.

    Attributes:
        name: as given on the command line, or the folder's name.
        seed: of its training, where known; runs that differ in it alone share a `name`.
        num_parameters: trainable numbers.
        config: what it was built from, with its kind under `kind`.
        training: updates, minutes, FLOPs and the like, where its folder tells.
    """

    name: str
    seed: int | None
    num_parameters: int
    config: dict[str, Any]
    training: dict[str, Any]
    next_step: tuple[NextStep, ...]
    runs: tuple[Run, ...]

    @property
    def patched(self) -> bool:
        """Whether it has patches; if not, its schedule and its tokens say nothing."""
        return self.config.get("kind") != "baseline" or "patch" in self.config


class Data(Record):
    """What the models were evaluated on.

    Attributes:
        name: of the dataset; never a folder of this machine.
        split: train, valid or test.
        fingerprint: SHA-256 over names, sizes and contents of the split's files.
        trajectories: how many.
        start: first frame of each rollout's context.
        domain: `Domain.to_dict()`.
    """

    name: str
    split: str
    fingerprint: str
    trajectories: int
    start: int
    domain: dict[str, Any]


class Results(Record):
    """The whole of `results.json`.

    Attributes:
        format: of the file.
        command: how to make it again.
        seed: of the bootstrap.
        machine: what times depend on.
        data: what the models were evaluated on.
        steps: length of the rollouts.
        models: what was asked for.
        yardsticks: what needs no training, see `evaluate/yardsticks.py`; older files have none.
    """

    format: Literal["overtone-results-1"] = FORMAT
    command: str
    seed: int
    machine: dict[str, str]
    data: Data
    steps: int
    models: tuple[ModelResult, ...]
    yardsticks: tuple[ModelResult, ...] = ()

    @model_serializer(mode="wrap")
    def _as_it_was_read(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_empty(dump(self), "yardsticks")

    def save(self, path: str | Path, *, compact: bool = False) -> None:
        """Write JSON; the file is complete or absent.

        Args:
            path: the file.
            compact: five digits of every number and no indentation: a quarter of the bytes.
        """
        text = self.to_json(digits=5) if compact else self.to_json(indent=2)
        with replacing(path) as scratch:
            scratch.write_text(text + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read what `save` wrote."""
        try:
            return cls.model_validate_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValidationError, UnicodeDecodeError) as error:
            raise DataError(
                f"'{path}' can't be read as results of `overtone evaluate`: {error}"
            ) from error


KIND = "results"
"""What the marker of a folder with results says; see `guard.folders`."""


def require_results(path: Path) -> None:
    """Refuse a results.json that somebody has put in the place of ours; there may be none."""
    if path.exists():
        try:
            Results.load(path)
        except DataError:
            raise DataError(
                f"'{path}' exists and is not from `overtone evaluate`; it is left alone. Choose "
                "another folder with --out"
            ) from None
