"""Draw everything and write the report's folder.

out/report.html     one self-contained page
out/results.json    the numbers
out/figures/        every figure as PNG and SVG
out/rollout.gif     truth against two predictions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from overtone.atomic import replacing
from overtone.errors import OvertoneError
from overtone.report.animation import animate, telling_pair
from overtone.report.gallery import drawings
from overtone.report.html import Picture, page
from overtone.report.style import DPI, save
from overtone.report.summary import sentences
from overtone.report.tables import tables
from overtone.results import Results
from overtone.samples import Samples

ANIMATIONS = ("gif", "mp4", "none")
MAX_GIF = 2_000_000
"""Bytes of a GIF that is shown in the page; a larger one is only named."""


def write_report(
    results: Results,
    samples: Samples | None,
    out: Path,
    *,
    curves: Mapping[str, Path] | None = None,
    animation: str = "gif",
) -> Path:
    """Write the report and return the page's path.

    Args:
        results: of an evaluation.
        samples: frames of one trajectory; without them there are no panels and no animation.
        out: folder; files of an earlier report are replaced.
        curves: name of a model -> `metrics.jsonl` of its training.
        animation: `"gif"`, `"mp4"` or `"none"`.
    """
    if animation not in ANIMATIONS:
        raise OvertoneError(f"animation is {animation!r}; expected one of {ANIMATIONS}")
    out = Path(out)
    pictures = [
        *_draw(results, samples, out, curves or {}),
        *_animation(results, samples, out, animation),
    ]
    results.save(out / "results.json")
    text = page(results, sentences(results), tables(results), pictures)
    with replacing(out / "report.html") as scratch:
        scratch.write_text(text, encoding="utf-8")
    return out / "report.html"


def _draw(
    results: Results, samples: Samples | None, out: Path, curves: Mapping[str, Path]
) -> Iterator[Picture]:
    for drawing in drawings(results, samples, curves):
        files = save(drawing.figure, out / "figures", drawing.name)
        width, height = (round(DPI * inches) for inches in drawing.figure.get_size_inches())
        yield Picture(files, drawing.title, drawing.caption, drawing.alt, (width, height))


def _animation(
    results: Results, samples: Samples | None, out: Path, kind: str
) -> Iterator[Picture]:
    keys = telling_pair(results, samples) if samples else []
    if samples is None or kind == "none" or not keys:
        return
    path = animate(samples, keys, out / f"rollout.{kind}")
    if kind == "gif" and path.stat().st_size < MAX_GIF:
        from PIL import Image

        with Image.open(path) as image:
            size = image.size
        field = samples.domain.fields[0]
        names = " and ".join(f"{model} with {schedule}" for model, schedule in keys)
        yield Picture(
            (path,),
            f"The rollout in motion: {field}",
            f"The truth against {names}, and their residuals, over the {len(samples.steps)} steps "
            "that were kept of one trajectory. Scales are those of all steps.",
            f"Animation of the true and the predicted {field}.",
            size,
        )
