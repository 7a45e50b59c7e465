"""Predicted trajectories as a dataset of their own, in The Well's layout.

Each file holds one batch: the true context first, then the predictions. Frames are written as they
come, so memory does not grow with the steps. The folder is complete or absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

from overtone.data.layout import Layout
from overtone.data.writer import WellWriter
from overtone.errors import DataError
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.trajectories import Reading, Trajectories, fields_of, header_like
from overtone.guard.folders import inside, replacing_owned, require_ours
from overtone.rollout import rollout
from overtone.schedules import Schedule

KIND = "predictions"
"""What the marker of such a folder says; see `guard.folders`."""


def write_predictions(
    candidate: Candidate,
    data: str | Path,
    out: str | Path,
    *,
    schedule: Schedule,
    steps: int,
    batch: int = 4,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **reading: Unpack[Reading],
) -> Path:
    """Roll out a model from the trajectories of a split and write a Well folder.

    Args:
        candidate: the model.
        data: where to start, as for `WellFolder`. No more than the context is needed, so `steps`
            may go beyond the data.
        out: the folder to write.
        schedule: patch and shift at each step.
        steps: frames to predict.
        batch: trajectories that are predicted at once and share a file.
        device: where to compute.
        overwrite: replace an older folder of predictions.
        progress: called after every frame, with the frames that are predicted and of all frames.
        reading: split, start, trajectories, stride, coarsen; see `Reading`.

    Raises:
        RolloutDiverged: a prediction is not finite; nothing is written then.
    """
    out = Path(out)
    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise DataError(f"'{out}' exists; choose another folder, or give --overwrite")
    require_ours(out, KIND, inputs=[data], error=DataError)
    if steps < 1:
        raise DataError(f"steps is {steps}; expected at least 1")
    truth = Trajectories(data, candidate.model.domain.fields, candidate.model.context, reading)
    candidate.prepare(device)
    batches = [*truth.batches(batch, by_file=True)]
    done = 0
    try:
        with replacing_owned(out, KIND, inputs=[data], error=DataError) as scratch:
            for rows in batches:
                name = f"data/{truth.folder.split}/{truth.name}_{rows[0]:05d}.hdf5"
                path = inside(scratch, name, error=DataError)
                for _ in _write_file(path, candidate, truth, rows, schedule, steps, device):
                    done += 1
                    if progress:
                        progress(done, steps * len(batches))
    finally:
        truth.close()
    return out


def _write_file(
    path: Path,
    candidate: Candidate,
    truth: Trajectories,
    rows: list[int],
    schedule: Schedule,
    steps: int,
    device: str,
) -> Iterator[None]:
    """Write one batch, a frame at a time."""
    layout, context = truth.layout(rows[0]), candidate.model.context
    window = truth.window(rows, context, truth.first)
    about = {
        "overtone_predicted_frames": f"{context} to {context + steps - 1}, counted from 0",
        "overtone_model": candidate.name,
        "overtone_schedule": str(schedule),
        "overtone_start": f"frame {truth.start} of the source",
    }
    header = header_like(truth.file(rows[0]), layout, window.domain, about)
    specs, order = fields_of(layout, window.domain.fields)
    scalars = _scalars(truth, rows, layout)
    with WellWriter(path, header, specs, len(rows), scalars=scalars) as writer:
        for frame in window.fields.unbind(dim=1):
            writer.append(frame[:, order])
        start = window.to(device)
        for frame in rollout(candidate.model, start, steps=steps, schedule=schedule):
            writer.append(frame[:, order])
            yield


def _scalars(truth: Trajectories, rows: list[int], layout: Layout) -> dict[str, list[float]]:
    """Scalars that are constant in time, for each trajectory, but for the file's parameters."""
    known = [truth.parameters(row) for row in rows]
    names = [spec.name for spec in layout.scalars if not spec.time_varying]
    return {
        name: [float(values[name]) for values in known]
        for name in names
        if name not in layout.parameters
    }
