"""A page: one file that needs no network, with its contents at the top.

A page is sections in order; each has a heading and HTML, figures among it. In what users and files
named everything is escaped. Pictures are embedded; what does not fit into `MAX_BYTES` is named
instead of shown.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from overtone.guard.names import shown
from overtone.report.tables import Table

MAX_BYTES = 9_000_000
"""Size of all embedded pictures together, as text."""
MOVING = "rollout"
"""Name of the animation, without suffix."""
MAX_MOVING = 3_000_000
"""Bytes of an animation that is shown in the page; of a larger one there is a link."""
NARROW = 350
"""CSS pixels that a telephone has for a picture."""
FIGURES = "figures"
TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".gif": "image/gif", ".mp4": "video/mp4"}


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Attributes:
        files: the same picture in several formats; the smallest is embedded.
        title, caption, alt: its words.
        size: width and height in CSS pixels at full size; None for a video, which knows its own.
        section: id of the section that it belongs to.
    """

    files: tuple[Path, ...]
    title: str
    caption: str
    alt: str
    size: tuple[int, int] | None
    section: str = ""

    @property
    def anchor(self) -> str:
        """The figure's id, which is the same in every report that has it."""
        return "figure-" + re.sub(r"[^A-Za-z0-9_-]+", "-", self.files[0].stem)


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        anchor: its id.
        title: its heading; none if it is empty, and the contents do not name it then.
        content: HTML.
        short: what the contents call it; its title if empty.
    """

    anchor: str
    title: str
    content: str
    short: str = ""


def render(
    title: str, sections: Sequence[Section], pictures: Sequence[Picture], *, refresh: int = 0
) -> str:
    """The whole page.

    Args:
        title: of the page.
        sections: in order; those without content are left out.
        pictures: all figures, in the order of their numbers.
        refresh: seconds after which a browser reads it again; 0 for never.
    """
    there = [section for section in sections if section.content.strip()]
    again = f'<meta http-equiv="refresh" content="{refresh}">\n' if refresh else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{again}<title>{escape(title)}</title>
<style>{beside("page.css")}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{_contents(there, pictures)}
{"".join(_section(section) for section in there)}
</main>
</body>
</html>
"""


def _contents(sections: Sequence[Section], pictures: Sequence[Picture]) -> str:
    """Links to the sections in one line, and to the figures by their numbers in another."""
    links = [
        f'<a href="#{section.anchor}">{escape(section.short or section.title)}</a>'
        for section in sections
        if section.title
    ]
    figures = [
        f'<a href="#{picture.anchor}" title="{escape(picture.title)}">{number}</a>'
        for number, picture in enumerate(pictures, start=1)
    ]
    more = f'<p class="numbers">Figures {" ".join(figures)}</p>' if figures else ""
    return f'<nav aria-label="Contents"><p>{" · ".join(links)}</p>{more}</nav>'


def _section(section: Section) -> str:
    heading = f"<h2>{escape(section.title)}</h2>\n" if section.title else ""
    return f'<section id="{section.anchor}">\n{heading}{section.content}\n</section>\n'


def figures(pictures: Sequence[Picture], *, files: bool = True) -> dict[str, str]:
    """The figures' HTML by section; one that would make the page too large is named instead.

    Args:
        pictures: in the order of their numbers.
        files: whether they lie beside the page, so that it names them.
    """
    left, found = MAX_BYTES, {}
    for number, picture in enumerate(pictures, start=1):
        smallest = min(picture.files, key=lambda path: path.stat().st_size)
        size = -(-smallest.stat().st_size // 3) * 4
        fits = size <= left and (smallest.stem != MOVING or smallest.stat().st_size <= MAX_MOVING)
        left -= size if fits else 0
        drawn = _figure(number, picture, _embedded(picture, smallest) if fits else None, files)
        found[picture.section] = found.get(picture.section, "") + drawn + "\n"
    return found


def _figure(number: int, picture: Picture, image: str | None, files: bool) -> str:
    names = ", ".join(_place(path) for path in picture.files)
    named = f'\n<span class="files">{escape(names)}</span>' if files else ""
    link = f'; see <a href="{escape(_place(picture.files[0]))}">the file</a>' if files else ""
    missing = f"<p>Left out to keep this page small{link}.</p>"
    wide = " wide" if picture.size and _least(picture.size[0]) > NARROW else ""
    content = f'<div class="scroll card{wide}" tabindex="0">{image}</div>' if image else missing
    to = f'<a class="here" href="#{picture.anchor}" aria-label="link to this figure">#</a>'
    return f"""<figure id="{picture.anchor}">
<h3>{escape(picture.title)} {to}</h3>
{content}
<figcaption><strong>Figure {number}.</strong> {escape(picture.caption)}{named}</figcaption>
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
    return (
        f'<img src="{source}" alt="{escape(picture.alt)}" width="{width}" height="{height}" '
        f'style="min-width:{_least(width)}px">'
    )


def _least(width: int) -> int:
    """The width below which a picture's text can't be read: its container scrolls instead."""
    return round(0.56 * width)


def table(content: Table) -> str:
    """A table, folded; its title is what is seen of it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.header)
    body = "\n".join(_row(content, i, row) for i, row in enumerate(content.rows))
    title = escape(content.title)
    count = f"{len(content.rows)} row{'s' if len(content.rows) != 1 else ''}"
    inner = f"""<div class="scroll" tabindex="0" role="region" aria-label="{title}">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>"""
    return folded(f'{title} <span class="count">{count}</span>', inner)


def _row(content: Table, i: int, row: Sequence[str]) -> str:
    cells = []
    for j, value in enumerate(row):
        kind = "name" if j < content.num_names else ""
        text = escape(value)
        if (i, j) in content.best:
            kind, text = f"{kind} lowest".strip(), f"<strong>{text}</strong>"
        cells.append(f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def folded(summary: str, content: str) -> str:
    """What is seen when it is opened; both are HTML."""
    return f"<details>\n<summary>{summary}</summary>\n{content}\n</details>\n"


def paragraphs(lines: Iterable[str]) -> str:
    """Each line as a paragraph."""
    return "\n".join(f"<p>{unbroken(escape(line))}</p>" for line in lines)


def items(lines: Iterable[str]) -> str:
    """Lines as a list."""
    inner = "\n".join(f"<li>{unbroken(escape(line))}</li>" for line in lines)
    return f"<ul>\n{inner}\n</ul>" if inner else ""


def facts(pairs: Iterable[tuple[str, str]], *, command: str = "") -> str:
    """Names and values, and last of all a command as it can be pasted."""
    rows = [f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs]
    if command:
        # Lines break between words alone, so that an option is read as it is to be typed.
        words = (f'<span class="whole">{escape(word)}</span>' for word in command.split(" "))
        rows.append(f"<dt>command</dt><dd><code>{' '.join(words)}</code></dd>")
    return f"<dl>\n{chr(10).join(rows)}\n</dl>"


def escape(text: str) -> str:
    """A text as HTML, in elements and attributes: no tags, and no characters that can't be seen."""
    return html.escape(shown(text))


def unbroken(escaped: str) -> str:
    """Keep schedules such as 4-8-16 on one line, where they are not too long for that."""
    return re.sub(
        r"(?<!\S)(?=\S*\d-\d)\S{1,24}(?!\S)", r'<span class="whole">\g<0></span>', escaped
    )


def beside(name: str) -> str:
    """The text of a file that lies beside this one."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
