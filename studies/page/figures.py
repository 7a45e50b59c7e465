"""The pictures of the page of results, drawn from `results/*.json` by the report's own figures."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from overtone.evaluate.results import ResidualSpectrum, Results
from overtone.files import replacing
from overtone.report.figures.artifacts import residual_spectra
from overtone.report.figures.axis_spectra import axis_spectra
from overtone.report.figures.dial import rollout_dial
from overtone.report.figures.steps import rollout_errors, seam_growth
from overtone.report.style import DPI, RC, NothingToDraw
from studies.catalogue import SHEAR
from studies.page import assess_rows
from studies.page.assess_pictures import band, curves
from studies.page.fronts import fronts
from studies.page.sources import Library
from studies.rivals import BUDGETS, SYSTEMS

Shown = Mapping[str, tuple[str, ...]]
"""Name of a model -> its schedules."""
COLOURS = 128
"""Colours of a picture's palette."""


@dataclass(frozen=True)
class Picture:
    """A figure of the page.

    Attributes:
        name: of its file, without suffix.
        comparison: where its numbers come from.
        draw: the report's figure.
        shown: which rollouts; a page has room for few.
    """

    name: str
    comparison: str
    draw: Callable[[Results], Figure]
    shown: Shown


def end_spectra(results: Results) -> Figure:
    """Residual spectra at the first and the last step: wide panels for crowded harmonics."""
    models = []
    for model in results.models:
        ends = [run.model_copy(update={"spectra": _ends(run.spectra)}) for run in model.runs]
        models.append(model.model_copy(update={"runs": tuple(ends)}))
    return residual_spectra(results.model_copy(update={"models": tuple(models)}))


def _ends(spectra: tuple[ResidualSpectrum, ...]) -> tuple[ResidualSpectrum, ...]:
    return spectra[:1] + spectra[1:][-1:]


# Every picture begins with these, so that a schedule has the same marker in all.
FEW: Shown = {"fixed16": ("16", "16+shift"), "csm": ("16", "16+shift", "4-8-16", "4-8-16+shift")}
PICTURES = (
    Picture("results-rollouts", SHEAR, rollout_errors, {**FEW, "csm": (*FEW["csm"], "4")}),
    Picture("results-artifacts", f"{SHEAR}-seams", seam_growth, FEW),
    Picture(
        "results-axis",
        f"{SHEAR}-seams",
        axis_spectra,
        {"fixed16": ("16", "16+shift"), "csm": ("16", "16+shift", "4-8-16", "4-8-16+shift")},
    ),
    Picture(
        "results-spectra",
        SHEAR,
        end_spectra,
        {"fixed16": ("16",), "csm": ("16", "16+shift", "4-8-16")},
    ),
    Picture(
        "results-dial",
        SHEAR,
        rollout_dial,
        {
            "fixed4": ("4", "4+shift"),
            "fixed8": ("8", "8+shift"),
            **FEW,
            "csm": (*FEW["csm"], "4", "4+shift", "8", "8+shift"),
        },
    ),
)


def draw_pictures(results: str | Path, out: str | Path) -> list[Path]:
    """Draw what was run and return the files.

    Args:
        results: folder with a `STUDY.json` for each study that was run.
        out: folder for the pictures.
    """
    library, out = Library(results), Path(out)
    written = []
    for picture in PICTURES:
        source = library.source(picture.comparison)
        if source is not None:
            figure = picture.draw(narrowed(source.results, picture.shown))
            written.append(_save(figure, out / f"{picture.name}.png"))
    for system in SYSTEMS:
        found = [library.source(f"{system.recipe}-rivals-{minutes}") for minutes in BUDGETS]
        run = [source for source in found if source is not None]
        if run:
            name = f"results-rivals-{system.recipe.removesuffix('-mini')}"
            written.append(_save(fronts(run), out / f"{name}.png"))
    if (assess_rows.read(library.folder) or {}).get("systems"):
        for name, draw in (("assess", band), ("detection", curves)):
            written.append(_save(draw(library.folder), out / f"results-{name}.png"))
    return written


def narrowed(results: Results, shown: Shown) -> Results:
    """The results with some rollouts of some models alone, in the order in which they are asked."""
    kept = []
    for name, schedules in shown.items():
        for model in (m for m in results.models if m.name == name):
            runs = {run.schedule: run for run in model.runs}
            own = tuple(runs[schedule] for schedule in schedules if schedule in runs)
            kept.append(model.model_copy(update={"runs": own}))
    if not any(model.runs for model in kept):
        raise NothingToDraw(f"the results have no rollouts of {', '.join(shown)}")
    return results.model_copy(update={"models": tuple(kept)})


def _save(figure: Figure, path: Path) -> Path:
    """Write a PNG with a palette, a third of the size of one without."""
    drawn = io.BytesIO()
    with matplotlib.rc_context(RC):
        figure.savefig(drawn, format="png", dpi=DPI)
    with Image.open(drawn) as image, replacing(path) as scratch:
        palette = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        palette.save(scratch, format="png", optimize=True)
    return path
