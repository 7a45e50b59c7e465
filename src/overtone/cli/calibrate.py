"""The command `overtone calibrate`: what a model's disagreements are worth, measured and kept."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overtone.cli.evaluate import Batch, Coarsen, Data, Device, Stride, load_models
from overtone.errors import DataError, OvertoneError
from overtone.progress import Listing, Terminal, one_bar

if TYPE_CHECKING:
    from overtone.models.calibration import Calibration


def calibrate(
    model: Annotated[str, typer.Argument(help="A model's or a run's folder, or a packaged name.")],
    data: Data,
    split: Annotated[str, typer.Option(help="What it was not trained on.")] = "valid",
    steps: Annotated[int, typer.Option(min=1, help="Length of the rollouts.")] = 40,
    windows: Annotated[int, typer.Option(min=1, help="Rollouts of each schedule.")] = 40,
    schedule: Annotated[
        list[str] | None,
        typer.Option(help="To measure; each patch and their cycle, shifted, by default."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="patch, shift or the schedule of a second rollout; repeatable."),
    ] = None,
    batch: Batch = 8,
    stride: Stride = None,
    coarsen: Coarsen = None,
    device: Device = "cpu",
) -> None:
    """Measure what a model's disagreements say about its errors, and keep it with the model.

    Afterwards `overtone rollout --estimate` and controllers such as adaptive:0.02 tell errors, with
    intervals, instead of disagreements.
    """
    from overtone.data import WellFolder
    from overtone.evaluate.candidates import Candidate
    from overtone.files import fingerprint
    from overtone.models.base import Model
    from overtone.models.storage import save_calibration
    from overtone.rollout.calibrate import calibrate as measure

    found = load_models((model,), data, split=split, stride=stride, coarsen=coarsen,
                        allow_untrained=False)  # fmt: skip
    (candidate,), reading = found
    assert isinstance(candidate, Candidate)
    own = candidate.model
    if not isinstance(own, Model) or not own.digest:
        raise OvertoneError(f"'{model}' has no folder to keep a calibration in; give a saved model")
    how: dict[str, Any] = {key: reading.get(key, 1) for key in ("stride", "coarsen")}
    candidate.prepare(device)
    console = Terminal()
    folder = WellFolder(data, split, own.context, steps, fields=own.domain.fields, **how)
    with closing(folder), one_bar(f"calibrating {candidate.name}", console) as tick:
        if not len(folder):
            raise DataError(
                f"no trajectory of split '{split}' has {own.context} + {steps} frames; ask for "
                "fewer --steps"
            )
        about = {
            "name": folder.layouts[0].dataset_name,
            "split": split,
            "fingerprint": fingerprint(folder.files),
            "trajectories": folder.num_trajectories,
        }
        result = measure(
            own, folder, windows=windows, batch=batch, schedules=schedule,
            against=against or ["patch"], about=about, device=device, progress=tick,
        )  # fmt: skip
    console.print(table(result))
    few = [rule for (rule, _), band in result.bands.items() if 0.9 not in band.bounds]
    if few:
        console.print(
            "note: an interval of 90 % needs 19 rollouts; there are fewer windows, so there is none"
        )
    console.print(f"wrote {save_calibration(model, result)}", soft_wrap=True)


def table(calibration: Calibration) -> Listing:
    """The ratios of error to disagreement, at the first and the last step."""
    rows = []
    for (rule, against), band in calibration.bands.items():
        low, high = band.bounds.get(0.9, (None, None))
        interval = "-" if low is None or high is None else f"{low[-1]:.2f} to {high[-1]:.2f}"
        rows.append(
            (rule, against, str(band.count), f"{band.factor[0]:.2f}", f"{band.factor[-1]:.2f}",
             interval)
        )  # fmt: skip
    steps = calibration.data.get("steps", "?")
    return Listing(
        rows,
        ("what", "compared with", "rollouts", "ratio at step 1", f"at step {steps}", "90 % there"),
        "true error over disagreement",
        "* is all schedules together, for those that are not listed",
        texts=(0, 1, 5),
    )
