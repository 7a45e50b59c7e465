"""The report's folder, with everything drawn, and its page: one file that needs no network.

    out/report.html     one self-contained page
    out/results.json    the numbers
    out/figures/        every figure as PNG and SVG
    out/rollout.gif     truth against two predictions

All of it is complete, or as it was before. In the page everything that a user or a file named is
escaped. Pictures are embedded; what does not
fit into `MAX_BYTES` is named instead of shown.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overtone.domain import Domain
from overtone.errors import DataError, require_one_of
from overtone.evaluate.results import FORMAT, KIND, RESULTS, Results, Samples
from overtone.guard.folders import claim
from overtone.guard.names import shown
from overtone.report.figures.animation import animate, telling_pair
from overtone.report.gallery import drawings
from overtone.report.series import domain_of, dt_text, series
from overtone.report.style import DPI, save
from overtone.report.summary import sentences
from overtone.report.tables import Table, tables
from overtone.report.verdict import verdict

PAGE = "report.html"
MAX_BYTES = 9_000_000
"""Size of all embedded pictures together, as text."""
MOVING = "rollout"
"""Name of the animation, without suffix."""
MAX_MOVING = 3_000_000
"""Bytes of an animation that is shown in the page; of a larger one there is a link."""
FIGURES = "figures"
ANIMATIONS = ("gif", "mp4", "none")
TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".gif": "image/gif", ".mp4": "video/mp4"}


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Attributes:
        files: the same picture in several formats; the smallest is embedded.
        title, caption, alt: its words.
        size: width and height in CSS pixels at full size; None for a video, which knows its own.
    """

    files: tuple[Path, ...]
    title: str
    caption: str
    alt: str
    size: tuple[int, int] | None


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
    folder.require_free(PAGE, *([] if there else [RESULTS]))
    with folder.replacing() as place:
        fill_report(place, results, samples, curves=curves, animation=animation)
        if not there:
            results.save(place / RESULTS)
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
    text = page(results, sentences(results), tables(results), pictures)
    (place / PAGE).write_text(text, encoding="utf-8")


def page(
    results: Results, said: Sequence[str], tables: Sequence[Table], pictures: Sequence[Picture]
) -> str:
    """The whole page."""
    title = f"Evaluation on {results.data.name} ({results.data.split})"
    figures = "\n".join(_figures(pictures))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_text("page.css")}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{_verdict(results, pictures)}
<section id="summary">
<h2>Summary</h2>
<ul>
{_items(said)}
</ul>
</section>
<section id="evaluated">
<h2>What was evaluated</h2>
{_facts(results)}
</section>
<section id="tables">
<h2>Numbers</h2>
<p>Numbers in brackets are 95 % intervals, by bootstrap over trajectories. The lowest error of a
column is bold. Tokens, FLOPs and seconds are those of one sample; models without patches have no
tokens. Rows below the models are what needs no training: persistence, the last frame again, and
extrapolation, the last change again.</p>
{"".join(_table(table) for table in tables)}
</section>
<section id="figures">
<h2>Figures</h2>
{figures}
</section>
<section id="reading">
<h2>How to read this</h2>
{_text("reading.html")}
</section>
<footer><p>All numbers of this page are in <a href="results.json">results.json</a> beside it
(format {escape(FORMAT)}), all figures in the folder <code>figures</code>.</p></footer>
</main>
</body>
</html>
"""


def _verdict(results: Results, pictures: Sequence[Picture]) -> str:
    """The first lines of the page."""
    lines = [f"<p>{_unbroken(escape(line))}</p>" for line in verdict(results)]
    for number, picture in enumerate(pictures, start=1):
        if picture.files[0].stem == MOVING:
            lines.append(f'<p><a href="#figure-{number}">Watch the rollout in motion</a>.</p>')
    return f'<section id="verdict">\n{"".join(lines)}\n</section>' if lines else ""


def _draw(
    results: Results, samples: Samples | None, out: Path, curves: Mapping[str, Path]
) -> Iterator[Picture]:
    for drawing in drawings(results, samples, curves):
        files = save(drawing.figure, out / FIGURES, drawing.name)
        width, height = (round(DPI * inches) for inches in drawing.figure.get_size_inches())
        yield Picture(files, drawing.title, drawing.caption, drawing.alt, (width, height))


def _animation(
    results: Results, samples: Samples | None, out: Path, kind: str
) -> Iterator[Picture]:
    keys = telling_pair(results, samples) if samples else []
    if samples is None or kind == "none" or not keys:
        return
    path = animate(samples, keys, out / f"{MOVING}.{kind}")
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
    )


def _size(path: Path) -> tuple[int, int]:
    from PIL import Image

    with Image.open(path) as image:
        return image.size


def escape(text: str) -> str:
    """A text as HTML, in elements and attributes: no tags, and no characters that can't be seen."""
    return html.escape(shown(text))


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"<li>{_unbroken(escape(line))}</li>" for line in lines)


def _unbroken(escaped: str) -> str:
    """Keep schedules such as 4-8-16 on one line, where they are not too long for that."""
    return re.sub(
        r"(?<!\S)(?=\S*\d-\d)\S{1,24}(?!\S)", r'<span class="whole">\g<0></span>', escaped
    )


def _facts(results: Results) -> str:
    data, domain = results.data, domain_of(results)
    machine = "; ".join(f"{name}: {value}" for name, value in results.machine.items())
    facts = {
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
    rows = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    # Lines break between words alone, so that an option is read as it is to be typed.
    words = (f'<span class="whole">{escape(word)}</span>' for word in results.command.split(" "))
    rows += f"\n<dt>command</dt><dd><code>{' '.join(words)}</code></dd>"
    return f"<dl>\n{rows}\n</dl>"


def _grid(domain: Domain) -> str:
    cells = " × ".join(map(str, domain.shape))
    size = " × ".join(f"{length:g}" for length in domain.extent)
    sides = ", ".join("/".join(dict.fromkeys(map(str, pair))) for pair in domain.boundaries)
    return f"{cells} cells, {size} in domain units; boundaries: {sides}"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    body = "\n".join(_row(table, i, row) for i, row in enumerate(table.rows))
    title = escape(table.title)
    return f"""<div class="scroll" tabindex="0" role="region" aria-label="{title}">
<table>
<caption>{title}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
"""


def _row(table: Table, i: int, row: Sequence[str]) -> str:
    cells = []
    for j, value in enumerate(row):
        kind = ' class="name"' if j < table.num_names else ""
        text = f"<strong>{escape(value)}</strong>" if (i, j) in table.best else escape(value)
        cells.append(f"<td{kind}>{text}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _figures(pictures: Sequence[Picture]) -> Iterable[str]:
    """Figures in order; one that would make the page too large is named instead."""
    left = MAX_BYTES
    for number, picture in enumerate(pictures, start=1):
        smallest = min(picture.files, key=lambda path: path.stat().st_size)
        size = -(-smallest.stat().st_size // 3) * 4
        fits = size <= left and (smallest.stem != MOVING or smallest.stat().st_size <= MAX_MOVING)
        left -= size if fits else 0
        yield _figure(number, picture, _embedded(picture, smallest) if fits else None)


def _figure(number: int, picture: Picture, image: str | None) -> str:
    files = ", ".join(_place(path) for path in picture.files)
    link = f'<a href="{escape(_place(picture.files[0]))}">the file</a>'
    missing = f"<p>Left out to keep this page small; see {link}.</p>"
    content = f'<div class="scroll card" tabindex="0">{image}</div>' if image else missing
    return f"""<figure id="figure-{number}">
<h3>{escape(picture.title)}</h3>
{content}
<figcaption><strong>Figure {number}.</strong> {escape(picture.caption)}
<span class="files">{escape(files)}</span></figcaption>
</figure>"""


def _place(path: Path) -> str:
    """A file's name beside the page."""
    return f"{FIGURES}/{path.name}" if path.parent.name == FIGURES else path.name


def _embedded(picture: Picture, path: Path) -> str:
    source = f"data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
    if picture.size is None:
        words = f'aria-label="{escape(picture.alt)}"'
        return f'<video controls loop muted src="{source}" {words}></video>'
    width, height = picture.size
    # Below this width the text in the picture can't be read: its container scrolls instead.
    least = round(0.56 * width)
    return (
        f'<img src="{source}" alt="{escape(picture.alt)}" width="{width}" height="{height}" '
        f'style="min-width:{least}px">'
    )


def _text(name: str) -> str:
    """A file that lies beside this one."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
