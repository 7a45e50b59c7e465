"""Predicted trajectories as a dataset of their own, in The Well's layout.

Each file holds one batch: the true context first, then the predictions. Frames are written as they
come, so memory does not grow with the steps. The folder is complete or absent.

A trajectory that blows up ends with its last valid frame. In a file all trajectories are equally
long, so a batch of which some blow up becomes several files, of trajectories that follow each other
and have the same length; files in order of their names hold the trajectories in the order of the
source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor

from overtone.data.layout import Layout
from overtone.data.well import WellFolder
from overtone.data.writer import WellWriter
from overtone.errors import DataError
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.results import storable
from overtone.evaluate.trajectories import Reading, Trajectories, fields_of, header_like
from overtone.guard.folders import inside, replacing_owned, require_ours
from overtone.guard.limits import require_disk
from overtone.guard.names import file_name
from overtone.ops import listed
from overtone.rollout import Controller, ErrorEstimate, Made, Rule, rollout
from overtone.schedules import Schedule

LOG = "rollout.json"
"""What was chosen at each step and how large its error is thought to be, where that was asked."""
KIND = "predictions"
"""What the marker of such a folder says; see `guard.folders`."""


@dataclass(frozen=True)
class Predictions:
    """What `write_predictions` wrote.

    Attributes:
        path: the folder.
        steps: frames that were asked for.
        lengths: for each trajectory, how many were predicted; fewer than `steps` if it blew up.
        logs: for each trajectory, what `rollout.json` says of it; see `_log`.
        calibrated: whether the errors that it tells are errors; None if it tells none.
    """

    path: Path
    steps: int
    lengths: tuple[int, ...]
    logs: tuple[dict[str, Any], ...] = ()
    calibrated: bool | None = None

    @property
    def complete(self) -> bool:
        """Whether no trajectory blew up."""
        return not self.notes

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each trajectory that blew up."""
        return tuple(
            f"trajectory {row} blew up at step {length + 1} of {self.steps}; "
            f"{f'the {length} frames before it are' if length else 'only its context is'} written"
            for row, length in enumerate(self.lengths)
            if length < self.steps
        )


def write_predictions(
    candidate: Candidate,
    data: str | Path,
    out: str | Path,
    *,
    schedule: Rule,
    steps: int,
    batch: int = 4,
    estimate: bool | str | Schedule = False,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **reading: Unpack[Reading],
) -> Predictions:
    """Roll out a model from the trajectories of a split and write a Well folder.

    Args:
        candidate: the model.
        data: where to start, as for `WellFolder`. No more than the context is needed, so `steps`
            may go beyond the data.
        out: the folder to write.
        schedule: patch and shift at each step, or who decides on them.
        steps: frames to predict.
        batch: trajectories that are predicted at once and share a file.
        estimate: tell the error of every frame, as for `rollout`; `rollout.json` in the folder
            gets them, and what a controller chose.
        device: where to compute.
        overwrite: replace an older folder of predictions.
        progress: called after every frame, with the frames that are predicted and of all frames.
        reading: split, start, trajectories, stride, coarsen; see `Reading`.

    Returns:
        The folder, and how far each trajectory got: those that blow up end there.
    """
    out = Path(out)
    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise DataError(f"'{out}' exists; choose another folder, or give --overwrite")
    require_ours(out, KIND, inputs=[data], error=DataError)
    if steps < 1:
        raise DataError(f"steps is {steps}; expected at least 1")
    truth = Trajectories(data, candidate.model.domain.fields, candidate.model.context, reading)
    lengths = [0] * len(truth)
    logs: list[dict[str, Any]] = []
    calibrated: bool | None = None
    try:
        name = file_name(truth.name, f"the dataset_name of '{data}'", error=DataError)
        _require_disk(truth, steps, out)
        candidate.prepare(device)
        batches = [*truth.batches(batch, by_file=True)]
        with replacing_owned(out, KIND, inputs=[data], error=DataError) as scratch:
            folder = inside(scratch, f"data/{truth.folder.split}", error=DataError)
            for number, rows in enumerate(batches):
                flight = _Flight(candidate, truth, rows, schedule, steps, device, estimate)
                for step in flight.write(scratch / "unfinished.hdf5", folder, name):
                    if progress:
                        progress(number * steps + step, steps * len(batches))
                lengths[rows[0] : rows[-1] + 1] = flight.lengths
                logs += flight.logs()
                calibrated = flight.calibrated
            if estimate is not False or isinstance(schedule, Controller):
                about = {"schedule": str(schedule), "calibrated": calibrated, "rollouts": logs}
                text = json.dumps(storable(about, digits=6), indent=1, allow_nan=False)
                (scratch / LOG).write_text(text + "\n")
    finally:
        truth.close()
    return Predictions(out, steps, tuple(lengths), tuple(logs), calibrated)


class _Flight:
    """One batch on its way into files.

    Attributes:
        lengths: for each of its trajectories, the valid frames so far.
    """

    def __init__(
        self,
        candidate: Candidate,
        truth: Trajectories,
        rows: list[int],
        schedule: Rule,
        steps: int,
        device: str,
        estimate: bool | str | Schedule,
    ):
        self.candidate, self.truth, self.rows, self.estimate = candidate, truth, rows, estimate
        self._told: list[ErrorEstimate] = []
        self._records: tuple[tuple[Made, ...], ...] = ()
        self.schedule, self.steps, self.device = schedule, steps, device
        self.lengths = [0] * len(rows)
        self._layout = truth.layout(rows[0])
        self._window = truth.window(rows, candidate.model.context, truth.first)
        self._specs, self._order = fields_of(self._layout, self._window.domain.fields)

    def write(self, unfinished: Path, folder: Path, name: str) -> Iterator[int]:
        """Write the batch a frame at a time; yields how many there are.

        Args:
            unfinished: where frames go as they come.
            folder: where the files belong.
            name: what their names begin with.
        """
        with self._writer(unfinished, range(len(self.rows)), self.steps) as writer:
            for step, frame in enumerate(self._frames(), start=1 - self._window.num_frames):
                writer.append(frame[:, self._order])
                if step > 0:
                    yield step
        folder.mkdir(parents=True, exist_ok=True)
        if min(self.lengths) == self.steps:
            unfinished.rename(folder / f"{name}_{self.rows[0]:05d}.hdf5")
            return
        self._split(unfinished, folder, name)
        unfinished.unlink()
        yield self.steps

    def _frames(self) -> Iterator[Tensor]:
        """The context, then predictions until no trajectory is left; lost ones are NaN."""
        yield from self._window.fields.unbind(dim=1)
        frames = rollout(
            self.candidate.model,
            self._window.to(self.device),
            steps=self.steps,
            schedule=self.schedule,
            on_blow_up="drop",
            allow_untrained=self.candidate.allow_untrained,
            estimate=self.estimate,
        )
        try:
            for frame in frames:
                alive: list[bool] = listed(frames.alive)
                if frames.estimate is not None:
                    self._told.append(frames.estimate)
                self.lengths = [n + a for n, a in zip(self.lengths, alive, strict=True)]
                yield frame
                if not any(alive):
                    return
        finally:
            self._records = frames.records

    @property
    def calibrated(self) -> bool | None:
        """Whether the estimates are errors; None if there are none."""
        return self._told[-1].calibrated if self._told else None

    def logs(self) -> list[dict[str, Any]]:
        """For each trajectory, a list of each: patch, shift, tokens and, where told, the error."""
        found: list[dict[str, Any]] = []
        for place, (row, length) in enumerate(zip(self.rows, self.lengths, strict=True)):
            made = self._records[place][:length]
            told = self._told[:length]
            log: dict[str, Any] = {
                "trajectory": row,
                "patch": [list(one.choice.patch) for one in made],  # pyright: ignore
                "shift": [list(one.choice.shift) for one in made],
                "tokens": [one.tokens for one in made],
            }
            if told:
                log["error"] = [float(e.value[place]) for e in told]
                log["error by field"] = {
                    name: [float(e.fields[place, number]) for e in told]
                    for number, name in enumerate(self._window.domain.fields)
                }
                for level in told[0].bounds:
                    pair = [[float(e.bounds[level][side][place]) for e in told] for side in (0, 1)]
                    log[f"interval {level:g}"] = pair
            found.append(log)
        return found

    def _split(self, unfinished: Path, folder: Path, name: str) -> None:
        """Write a file for each run of trajectories that are equally long."""
        written = WellFolder(unfinished, context=1)
        try:
            for length, group in groupby(range(len(self.rows)), key=self.lengths.__getitem__):
                places = [*group]
                path = folder / f"{name}_{self.rows[places[0]]:05d}.hdf5"
                with self._writer(path, places, length) as writer:
                    for step in range(self._window.num_frames + length):
                        parts = [written.frames(place, step, 1).fields for place in places]
                        writer.append(torch.cat(parts))
        finally:
            written.close()

    def _writer(self, path: Path, places: Sequence[int], length: int) -> WellWriter:
        """A file for some trajectories of the batch, with so many predicted frames."""
        truth, context, window = self.truth, self._window.num_frames, self._window
        rows = [self.rows[place] for place in places]
        predicted = f"{context} to {context + length - 1}, counted from 0" if length else "none"
        about = {
            "overtone_predicted_frames": predicted,
            "overtone_model": self.candidate.name,
            "overtone_schedule": str(self.schedule),
            "overtone_start": f"frame {truth.start} of the source",
        }
        if length < self.steps:
            about["overtone_blow_up"] = f"at step {length + 1} of {self.steps}"
        header = header_like(truth.file(rows[0]), self._layout, window.domain, about)
        scalars = _scalars(truth, rows, self._layout)
        return WellWriter(path, header, self._specs, len(rows), scalars=scalars)


def _require_disk(truth: Trajectories, steps: int, out: Path) -> None:
    """Refuse more frames than the disk holds, in the precision that they are written in."""
    cells = len(truth.domain.fields) * math.prod(truth.domain.shape)
    needed = 4 * cells * len(truth) * (truth.context + steps)
    require_disk(needed, out, f"{steps} frames of {len(truth)} trajectories")


def _scalars(truth: Trajectories, rows: list[int], layout: Layout) -> dict[str, list[float]]:
    """Scalars that are constant in time, for each trajectory, but for the file's parameters."""
    known = [truth.parameters(row) for row in rows]
    names = [spec.name for spec in layout.scalars if not spec.time_varying]
    return {
        name: [float(values[name]) for values in known]
        for name in names
        if name not in layout.parameters
    }
