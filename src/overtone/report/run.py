"""The page of a training run: how far it is, its curves, what it predicts, what it cost.

    RUN/report.html          one self-contained page, drawn again while the run trains
    RUN/frames.safetensors   frames of the last validation's first rollout, which it shows

All of it comes from the run's folder, so that it can be drawn at any time (`overtone info RUN`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib.figure import Figure

from overtone.errors import ConfigError, DataError
from overtone.evaluate.samples import Samples
from overtone.guard.folders import claim
from overtone.report.figures.cost import training_cost
from overtone.report.figures.curves import training_curves
from overtone.report.figures.panels import field_panels
from overtone.report.figures.scales import VIEWS
from overtone.report.gallery import MAX_FIELDS
from overtone.report.page import Picture, Section, facts, figures, folded, paragraphs, render
from overtone.report.style import DPI, NothingToDraw, save_as
from overtone.train.folder import KIND
from overtone.train.journal import RUNNING, describe
from overtone.train.validate import Glimpse

PAGE = "report.html"
FRAMES = "frames.safetensors"
REFRESH = 30
"""Seconds after which a browser reads the page of a running run again."""
UNPATCHED = "1"
"""The schedule of a model without patches: each cell is one."""
COST = ("progress", "time", "PFLOP", "updates of each patch")
"""What of a run's description is its cost."""


def write_run_report(
    folder: str | Path, glimpse: Glimpse | None = None, *, running: bool | None = None
) -> Path:
    """Write the page of a run and return its path.

    Args:
        folder: of the run.
        glimpse: frames of its last validation; those that were kept if None.
        running: whether it still trains; what its folder says if None.
    """
    folder = Path(folder)
    rows = describe(folder)
    if running is not None:
        rows["status"] = "running" if running else rows["status"]
    samples = _as_samples(glimpse) if glimpse is not None else _kept(folder / FRAMES)
    with claim(folder, KIND, error=ConfigError).replacing() as place, TemporaryDirectory() as aside:
        pictures = list(_draw(folder, samples, Path(aside)))
        page = _page(folder.resolve().name, rows, pictures)
        (place / PAGE).write_text(page, encoding="utf-8")
        if glimpse is not None and samples is not None:
            samples.save(place / FRAMES)
    return folder / PAGE


def _as_samples(glimpse: Glimpse) -> Samples:
    prediction = {("prediction", glimpse.schedule): glimpse.prediction}
    return Samples(glimpse.domain, glimpse.steps, glimpse.truth, prediction)


def _kept(path: Path) -> Samples | None:
    """Frames of an earlier drawing; None if there are none that can be read."""
    with suppress(DataError):
        return Samples.load(path) if path.is_file() else None
    return None


def _draw(folder: Path, samples: Samples | None, place: Path) -> Iterator[Picture]:
    """Figures that there are data for, as PNG files."""
    with suppress(NothingToDraw):
        yield _picture(
            training_curves(folder), place, "curves", "Loss and validation errors",
            "Left: loss of each update (dots) and its mean over stretches of updates (lines), by "
            "patch, and the learning rate. Right: next-step error on the validation split, by "
            "patch, and the error of the validation rollout; thin grey lines are what needs no "
            "training (dotted persistence, dash-dotted extrapolation).",
            "Training loss, learning rate and validation errors by update.", "curves",
        )  # fmt: skip
    if samples is not None:
        yield from _panels(samples, place)
    with suppress(NothingToDraw):
        yield _picture(
            training_cost(folder), place, "cost", "What it cost",
            "Left: the validation score, by which the best model is chosen, against the time of "
            "training. Right: updates in a second, and the share of the time that was spent "
            "waiting for data.",
            "Validation score by minutes of training, and the speed of training.", "cost",
        )  # fmt: skip


def _panels(samples: Samples, place: Path) -> Iterator[Picture]:
    ((model, schedule),) = samples.predictions
    bare = frozenset({model} if schedule == UNPATCHED else ())
    by = "" if bare else f", by the schedule {schedule}"
    for number, field in enumerate(samples.domain.fields[:MAX_FIELDS]):
        view = VIEWS[0]
        yield _picture(
            field_panels(samples, field, view=view, bare=bare), place, f"panels_{number}",
            f"Validation rollout: {field}",
            f"The first validation rollout at steps {', '.join(map(str, samples.steps))}{by}, of "
            "the weights at the last validation that was drawn; all fields share one scale, all "
            "residuals another.",
            f"The true and the predicted {field} and their differences at chosen steps.",
            "panels" if number == 0 else "fields",
        )  # fmt: skip


def _picture(
    figure: Figure, place: Path, name: str, title: str, caption: str, alt: str, section: str
) -> Picture:
    path = place / f"{name}.png"
    save_as(figure, path)
    width, height = (round(DPI * inches) for inches in figure.get_size_inches())
    return Picture((path,), title, caption, alt, (width, height), section)


def _page(name: str, rows: dict[str, str], pictures: list[Picture]) -> str:
    drawn = figures(pictures, files=False)
    if "fields" in drawn:
        drawn["panels"] += folded("Other fields", drawn.pop("fields"))
    cost = {key: rows[key] for key in COST if key in rows}
    others = {key: value for key, value in rows.items() if key not in COST}
    sections = [
        Section("verdict", "", paragraphs(_headline(rows))),
        Section("curves", "Curves", drawn.get("curves", ""), "curves"),
        Section("panels", "What it predicts", drawn.get("panels", ""), "what it predicts"),
        Section("cost", "Cost", drawn.get("cost", "") + facts(cost.items()), "cost"),
        Section("run", "The run", facts(others.items()), "the run"),
    ]
    running = rows["status"] == "running" or rows["status"] == RUNNING
    return render(f"Training of {name}", sections, pictures, refresh=REFRESH if running else 0)


def _headline(rows: dict[str, str]) -> list[str]:
    """How far it is and how good, in two sentences."""
    said = [f"{rows['status'].capitalize()}: {rows.get('progress', 'no updates yet')}."]
    if "best" in rows:
        beat = f" To beat: {rows['to beat']}." if "to beat" in rows else ""
        said.append(f"Best validation VRMSE: {rows['best']}.{beat}")
    return said
