"""Looking for trouble: every file of a dataset, and what is wrong with it.

Errors make a file unusable or poison training; warnings are worth knowing. Problems are returned
as plain data and nothing is raised for a bad file, so that one run shows all of them.

Some warnings are about data that are legal and odd, as those whose axes were mixed up at an import
are: more trajectories than frames, a one-dimensional grid as long as its trajectories, neighbouring
frames that have nothing in common.

Two are about units. The Well's NMSE and VRMSE add an absolute epsilon to a variance, so they say
little of a field whose variance is not large against it. And models compute in float32, whose
squares overflow or vanish long before its values do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor

from overtone.data.handles import OpenFile
from overtone.data.layout import FieldSpec, Layout
from overtone.data.location import STATS, Location, find_files, find_splits, find_stats, hdf5_files
from overtone.data.stats import ALL_NAMES, load_stats, scan
from overtone.errors import DataError
from overtone.metrics.pointwise import EPSILON

LEAST_VARIANCE = 100 * EPSILON
"""Variance over space below which epsilon is one percent of it or more."""
MANY = 16
"""Trajectories from which on it is odd to have more of them than frames."""
ALIKE = 0.3
"""Mean correlation of neighbouring frames below which they hardly have anything in common."""
COMFORTABLE = 1e30
"""Values up to this, and from its inverse on, are far from what float32 can't hold."""
Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One problem.

    Attributes:
        file: path of the file or folder.
        severity: `"error"` or `"warning"`.
        message: what is wrong and where.
    """

    file: str
    severity: Severity
    message: str


def check(path: str | Path, *, progress: Callable[[int, int], None] | None = None) -> list[Finding]:
    """Read every file of a dataset in full and list what is wrong.

    Args:
        path: a Well folder, a folder of HDF5 files or one file.
        progress: called with the number of files done and of all files.
    """
    place = Location(str(path))
    splits = find_splits(place) if place.is_folder() and not hdf5_files(place) else {}
    findings = [
        Finding(folder.path, "error", f"split '{name}' has no HDF5 files")
        for name, folder in splits.items()
        if not hdf5_files(folder)
    ]
    files = [file for folder in splits.values() for file in hdf5_files(folder)]
    if not splits:
        files = find_files(path, "train")
    elif missing := [name for name in ("train", "valid", "test") if name not in splits]:
        findings.append(Finding(str(path), "warning", f"no split {', '.join(missing)}"))
    layouts: dict[str, Layout] = {}
    for number, file in enumerate(files):
        try:
            findings += _check_file(file, layouts)
        except Exception as error:  # whatever it is, the next file is to be looked at, too
            message = f"can't be checked: {type(error).__name__}: {error}"
            findings.append(Finding(file.path, "error", message))
        if progress:
            progress(number + 1, len(files))
    return findings + _check_oddities(str(path), layouts) + _check_stats(path, layouts)


def _check_oddities(path: str, layouts: dict[str, Layout]) -> list[Finding]:
    """What is legal and odd about a dataset as a whole."""
    if not layouts:
        return []
    found: list[str] = []
    first = next(iter(layouts.values()))
    again = "If axes were mixed up, import again with --layout"
    total = sum(layout.num_trajectories for layout in layouts.values())
    frames = max(layout.num_steps for layout in layouts.values())
    if total > max(MANY, frames):
        found.append(f"{total} trajectories have {frames} frames each. {again}")
    if len(first.shape) == 1 and abs(first.num_steps - first.shape[0]) <= 1 < first.shape[0]:
        found.append(
            f"a one-dimensional grid of {first.shape[0]} cells has {first.num_steps} frames, as a "
            f"two-dimensional one would look whose second axis is taken for time. {again}"
        )
    if "dt" in first.defaults:
        found.append("dt is 1 by default: nobody gave it at the import. Import again with --dt")
    return [Finding(path, "warning", message) for message in found]


def _check_file(place: Location, layouts: dict[str, Layout]) -> list[Finding]:
    """Problems of one file; its layout is added to those of the good ones before it."""
    try:
        layout = place.layout()
        opened = OpenFile(place, layout)
    except DataError as error:
        return [Finding(place.path, "error", str(error))]
    findings = [Finding(place.path, "warning", note) for note in layout.notes]
    if layouts:
        reference = next(iter(layouts))
        findings += _compare(place.path, layout, reference, layouts[reference])
    layouts[place.path] = layout
    try:
        for spec in layout.fields:
            findings += _check_values(opened, spec)
    finally:
        opened.close()
    return findings


def _compare(path: str, layout: Layout, reference: str, other: Layout) -> list[Finding]:
    """What differs between a file and the first good one."""
    findings: list[Finding] = []
    for what in ("shape", "axes", "channels", "fields", "boundaries", "dataset_name"):
        mine, theirs = getattr(layout, what), getattr(other, what)
        if mine != theirs:
            severity: Severity = "warning" if what == "dataset_name" else "error"
            name = "grid" if what == "shape" else what
            message = f"{name} is {_plain(mine)}; '{reference}' has {_plain(theirs)}"
            findings.append(Finding(path, severity, message))
            if what == "channels":
                break  # the fields differ then as well
    pairs = zip((layout.dt, *layout.extent), (other.dt, *other.extent), strict=False)
    if any(abs(a - b) > 1e-3 * abs(b) for a, b in pairs):
        message = (
            f"dt {layout.dt:.4g} and extent {_plain(layout.extent)} differ from those of "
            f"'{reference}': {other.dt:.4g} and {_plain(other.extent)}; a model of both counts in "
            "frames and cells"
        )
        findings.append(Finding(path, "warning", message))
    return findings


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        entries = cast("tuple[object, ...]", value)
        return f"({', '.join(_plain(entry) for entry in entries)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass
class _Scale:
    """What is collected over the blocks of a field to judge its unit and its course.

    Attributes:
        largest: magnitude of a value.
        variances: sum of the variances over space of its frames, `(components,)`.
        num_frames: how many these are.
        first: its first value.
        constant: whether all values are equal to it.
        steady: whether no value ever changes with time.
        likeness: sum of the correlations over space of neighbouring frames, `(components,)`.
        num_pairs: of how many pairs of frames, those of frames without any variance left out.
    """

    largest: float = 0.0
    variances: Tensor | float = 0.0
    num_frames: int = 0
    first: Tensor | None = None
    constant: bool = True
    steady: bool = True
    likeness: Tensor | float = 0.0
    num_pairs: Tensor | float = 0.0
    _last: Tensor | None = None

    def add(self, values: Tensor, *, begins: bool) -> None:
        """Take in a block `(components, T, *space)`, float64; whether a trajectory begins there."""
        self.first = values.flatten()[0] if self.first is None else self.first
        self.constant = self.constant and bool((values == self.first).all())
        self.largest = max(self.largest, float(values.abs().max()))
        self.variances = self.variances + values.flatten(2).var(2, correction=0).sum(1)
        self.num_frames += values.shape[1]
        joined = values if begins or self._last is None else torch.cat([self._last, values], dim=1)
        self._last = values[:, -1:].clone()
        self.steady = self.steady and bool((joined[:, 1:] == joined[:, :-1]).all())
        centred = joined.flatten(2) - joined.flatten(2).mean(2, keepdim=True)
        norms = cast("Tensor", centred.norm(dim=2))  # pyright: ignore[reportUnknownMemberType]
        both = norms[:, 1:] * norms[:, :-1]
        products = (centred[:, 1:] * centred[:, :-1]).sum(2)
        self.likeness = self.likeness + (products / both.where(both > 0, 1.0)).sum(1)
        self.num_pairs = self.num_pairs + (both > 0).sum(1)


def _check_values(opened: OpenFile, spec: FieldSpec) -> list[Finding]:
    """The first NaN or infinity of each trajectory of a field, or why it can't be read."""
    path = opened.place.path
    findings: list[Finding] = []
    reported: set[int] = set()
    names = spec.channels(opened.layout.axes)
    count, scale = 0, _Scale()
    try:
        for block in scan(opened, spec):
            bad = ~block.values.isfinite()
            scale.add(block.values, begins=block.start == 0)
            if not bool(bad.any()):
                continue
            count += int(bad.sum())
            if block.trajectory in reported:
                continue
            reported.add(block.trajectory)
            # Time first: the earliest frame is where the trouble began.
            frame, channel, *cell = (int(i) for i in bad.transpose(0, 1).nonzero()[0])
            kind = "NaN" if bool(torch.isnan(block.values[channel, frame][tuple(cell)])) else "Inf"
            message = (
                f"{kind} in trajectory {block.trajectory}, step {block.start + frame}, field "
                f"'{names[channel]}', cell {tuple(cell)}"
            )
            findings.append(Finding(path, "error", message))
    except DataError as error:
        return [*findings, Finding(path, "error", str(error))]
    if count:
        message = f"field '{spec.name}' has {count} values that are NaN or infinite in all"
        findings.append(Finding(path, "error", message))
    elif scale.constant and spec.time_varying and opened.layout.num_steps > 1:
        findings.append(Finding(path, "warning", f"field '{spec.name}' never changes"))
    elif not scale.constant:
        findings += _check_scale(path, spec.name, names, scale)
        findings += _check_course(path, spec, names, scale)
    return findings


def _check_course(path: str, spec: FieldSpec, names: Sequence[str], scale: _Scale) -> list[Finding]:
    """What is odd about how a field that varies goes on from frame to frame."""
    if not spec.time_varying or scale.num_frames < 2:
        return []
    if scale.steady:
        message = f"field '{spec.name}' is constant in time; a model need not predict it"
        return [Finding(path, "warning", message)]
    pairs = torch.as_tensor(scale.num_pairs)
    likeness = torch.where(pairs > 0, torch.as_tensor(scale.likeness) / pairs.clamp(min=1), 1.0)
    if (least := float(likeness.min())) >= ALIKE:
        return []
    message = (
        f"neighbouring frames of '{names[int(likeness.argmin())]}' hardly correlate ({least:.2f} "
        "on average): no model can predict one from the other. Frames may be out of order, axes "
        "mixed up, or dt too long"
    )
    return [Finding(path, "warning", message)]


def _check_scale(path: str, field: str, names: Sequence[str], scale: _Scale) -> list[Finding]:
    """What is wrong with the unit of a field that varies."""
    findings: list[Finding] = []
    if scale.largest > torch.finfo(torch.float32).max:
        message = f"field '{field}' has values up to {scale.largest:.2g}, infinite in float32"
        findings.append(Finding(path, "error", f"{message}; use another unit"))
    elif not 1 / COMFORTABLE <= scale.largest <= COMFORTABLE:
        message = (
            f"field '{field}' has values up to {scale.largest:.2g}; models work from "
            f"{1 / COMFORTABLE:g} to {COMFORTABLE:g}. Use another unit"
        )
        findings.append(Finding(path, "warning", message))
    variances = torch.as_tensor(scale.variances) / scale.num_frames
    if (least := float(variances.min())) < LEAST_VARIANCE:
        message = (
            f"field '{names[int(variances.argmin())]}' has a variance of {least:.2g} over space; "
            f"The Well's NMSE and VRMSE add {EPSILON:g} to it and say little of so small a field. "
            "Use another unit"
        )
        findings.append(Finding(path, "warning", message))
    return findings


def _check_stats(path: str | Path, layouts: dict[str, Layout]) -> list[Finding]:
    found = find_stats(path)
    if found is None:
        message = f"no {STATS}; `overtone data stats` writes it"
        return [Finding(str(path), "warning", message)]
    try:
        stats = load_stats(found)
    except DataError as error:
        return [Finding(found.path, "error", str(error))]
    findings: list[Finding] = []
    for layout in list(layouts.values())[:1]:
        for name in ALL_NAMES:
            wanted = [f for f in layout.fields if f.time_varying or not name.endswith("_delta")]
            given = stats.get(name)
            missing = [f.name for f in wanted if not isinstance(given, dict) or f.name not in given]
            if missing:
                message = f"'{name}' lacks {', '.join(missing)}; run `overtone data stats` again"
                findings.append(Finding(found.path, "error", message))
    return findings
