"""The report's folder, with everything drawn, and its page: pictures first, numbers folded.

    out/report.html          one self-contained page
    out/results.json         the numbers
    out/samples.safetensors  frames of one trajectory
    out/figures/             every figure as PNG and SVG
    out/rollout.gif          truth against two predictions

All of it is complete, or as it was before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from overtone.domain import Domain
from overtone.errors import DataError, require_one_of
from overtone.evaluate.results import FORMAT, KIND, RESULTS, Results
from overtone.evaluate.samples import SAMPLES, Samples
from overtone.guard.folders import claim
from overtone.report.figures.animation import animate, telling_pair
from overtone.report.gallery import FIELDS, PICTURES, SECTIONS, drawings
from overtone.report.page import (
    FIGURES,
    MOVING,
    Picture,
    Section,
    beside,
    facts,
    figures,
    folded,
    items,
    paragraphs,
    render,
    table,
)
from overtone.report.series import domain_of, dt_text, series, unpatched
from overtone.report.style import DPI, save
from overtone.report.summary import sentences
from overtone.report.tables import tables
from overtone.report.verdict import headline, verdict

PAGE = "report.html"
ANIMATIONS = ("gif", "mp4", "none")
HOW = (
    "Numbers in brackets are 95 % intervals, by bootstrap over trajectories. The lowest error of a "
    "column is marked; rollouts that blew up are not ranked. Tokens, FLOPs and seconds are those "
    "of one sample; models without patches have no tokens. Rows below the models are what needs no "
    "training: persistence, the last frame again, and extrapolation, the last change again."
)


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
        out: folder; what an earlier report wrote there is replaced, and nothing else.
        curves: name of a model -> `metrics.jsonl` of its training.
        animation: `"gif"`, `"mp4"` or `"none"`.
    """
    require_one_of(animation, ANIMATIONS, "animation")
    folder = claim(out, KIND, error=DataError)
    there = _are_at(folder.path / RESULTS, results)
    folder.require_free(PAGE, *([] if there else [RESULTS, SAMPLES]))
    with folder.replacing() as place:
        fill_report(place, results, samples, curves=curves, animation=animation)
        if not there:
            results.save(place / RESULTS)
            if samples is not None:
                samples.save(place / SAMPLES)
    return folder.path / PAGE


def _are_at(path: Path, results: Results) -> bool:
    """Whether a file holds these results already."""
    try:
        return Results.load(path).to_json() == results.to_json()
    except DataError:
        return False


def fill_report(
    place: Path,
    results: Results,
    samples: Samples | None,
    *,
    curves: Mapping[str, Path] | None = None,
    animation: str = "gif",
) -> None:
    """Write page and pictures into an empty folder; arguments are those of `write_report`."""
    pictures = [
        *_animation(results, samples, place, animation),
        *_draw(results, samples, place, curves or {}),
    ]
    (place / PAGE).write_text(page(results, pictures), encoding="utf-8")


def page(results: Results, pictures: Sequence[Picture]) -> str:
    """The whole page: verdict, pictures, errors, dial, what was evaluated, numbers, the rest."""
    drawn = figures(pictures)
    if FIELDS in drawn:
        drawn[PICTURES] = drawn.get(PICTURES, "") + folded("Other fields", drawn.pop(FIELDS))
    parts = {
        anchor: Section(anchor, title, drawn.get(anchor, ""), short)
        for anchor, (title, short) in SECTIONS.items()
    }
    words = [
        Section("verdict", "", _verdict(results)),
        *(parts.pop(anchor) for anchor in ("pictures", "errors", "dial")),
        Section("evaluated", "What was evaluated", _facts(results), "what was evaluated"),
        Section("numbers", "Numbers", _numbers(results), "numbers"),
        *parts.values(),
        Section("reading", "How to read this", beside("reading.html") + _footer(), "how to read"),
    ]
    title = f"Evaluation on {results.data.name} ({results.data.split})"
    return render(title, words, pictures)


def _verdict(results: Results) -> str:
    """One or two sentences; what there is to say of each model is folded."""
    lines = verdict(results)
    more = folded("Model by model", items(lines)) if lines else ""
    return f"{paragraphs(headline(results))}\n{more}"


def _numbers(results: Results) -> str:
    said = folded("In sentences", items(sentences(results)))
    return f"<p>{HOW}</p>\n{said}{''.join(table(one) for one in tables(results))}"


def _footer() -> str:
    return (
        '<p class="files">All numbers of this page are in <a href="results.json">results.json</a> '
        f"beside it (format {FORMAT}), all figures in the folder <code>{FIGURES}</code>.</p>"
    )


def _draw(
    results: Results, samples: Samples | None, out: Path, curves: Mapping[str, Path]
) -> Iterator[Picture]:
    for drawing in drawings(results, samples, curves):
        files = save(drawing.figure, out / FIGURES, drawing.name)
        width, height = (round(DPI * inches) for inches in drawing.figure.get_size_inches())
        words = drawing.title, drawing.caption, drawing.alt
        yield Picture(files, *words, (width, height), drawing.section)


def _animation(
    results: Results, samples: Samples | None, out: Path, kind: str
) -> Iterator[Picture]:
    keys = telling_pair(results, samples) if samples else []
    if samples is None or kind == "none" or not keys:
        return
    path = animate(samples, keys, out / f"{MOVING}.{kind}", bare=unpatched(results))
    field = samples.domain.fields[0]
    known = {(s.model, s.schedule): s.name for s in series(results)}
    names = " and ".join(known.get(key, " with ".join(key)) for key in keys)
    yield Picture(
        (path,),
        f"The rollout in motion: {field}",
        f"The truth against {names}, and their residuals, over the {len(samples.steps)} steps "
        "that were kept of one trajectory. Scales are those of all steps.",
        f"Animation of the true and the predicted {field}.",
        _size(path) if kind == "gif" else None,
        PICTURES,
    )


def _size(path: Path) -> tuple[int, int]:
    from PIL import Image

    with Image.open(path) as image:
        return image.size


def _facts(results: Results) -> str:
    data, domain = results.data, domain_of(results)
    machine = "; ".join(f"{name}: {value}" for name, value in results.machine.items())
    said = {
        "data": f"{data.name}, split {data.split}",
        "grid": _grid(domain),
        "fields": ", ".join(domain.fields),
        "trajectories": str(data.trajectories),
        "rollout": f"{results.steps} steps of dt = {dt_text(domain)}, "
        f"contexts from frame {data.start}",
        "models": "; ".join(
            f"{m.name}{'' if m.seed is None else f' (seed {m.seed})'}, "
            f"{m.num_parameters:,} parameters"
            for m in results.models
        ),
        "seed": str(results.seed),
        "machine": machine or "unknown",
        "fingerprint of the data": data.fingerprint,
    }
    return facts(said.items(), command=results.command)


def _grid(domain: Domain) -> str:
    cells = " × ".join(map(str, domain.shape))
    size = " × ".join(f"{length:g}" for length in domain.extent)
    sides = ", ".join("/".join(dict.fromkeys(map(str, pair))) for pair in domain.boundaries)
    return f"{cells} cells, {size} in domain units; boundaries: {sides}"
