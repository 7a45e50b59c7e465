"""Pages as they are read by Sphinx: written for a forge, shown on the site.

- A page that includes one of the repository's own (`CHANGELOG.md`, …) becomes that page.
- HTML comments, among them the marks of `studies page`, are left out. A line that begins with one
  would be taken for HTML, and its Markdown shown as it stands.
- Links to those pages and to notebooks lead to their pages here, other files of the repository are
  copied into the site, and what names a folder is no link.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1[ \t]*$|`[^`\n]+`", re.S | re.M)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_INCLUDE = re.compile(r"\s*```\{include\} (\S+)\s*```\s*")


def included(text: str, page: Path) -> Path | None:
    """The file that a page consists of, if it is nothing but an include."""
    found = _INCLUDE.fullmatch(text)
    return (page.parent / found[1]).resolve() if found else None


def homes() -> dict[Path, Path]:
    """Files of the repository that have a page of the site, and which."""
    found = {ROOT / "README.md": DOCS / "index.md"}
    for page in DOCS.rglob("*.md"):
        if (whole := included(page.read_text(), page)) is not None:
            found[whole] = page
    for page in (DOCS / "notebooks").glob("*.md"):
        found[ROOT / "examples" / f"{page.stem}.py"] = page
    return found


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with all but its code changed."""
    return "".join(part if is_code else change(part) for is_code, part in _parts(text))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    at = 0
    for code in _CODE.finditer(text):
        yield False, text[at : code.start()]
        yield True, code[0]
        at = code.end()
    yield False, text[at:]


def without_comments(text: str) -> str:
    """The text without HTML comments, but for those in code."""
    return outside_code(text, lambda part: _COMMENT.sub("", part))


def relink(text: str, *, origin: Path, page: Path, moved: dict[Path, Path]) -> str:
    """The text with links that hold on the site.

    Args:
        text: Markdown.
        origin: the file that it was written in.
        page: the page that it is shown on.
        moved: file -> its page on the site.
    """

    def change(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or ":" in target:
            return link[0]
        path = (origin.parent / target).resolve()
        if path.is_dir():
            return link["text"]
        home = moved.get(path, path)
        there = os.path.relpath(path if home == page else home, page.parent)
        return f"{link['image']}[{link['text']}]({there}{'#' + anchor if anchor else ''})"

    # A link's text may hold code, so code is kept by looking at what a link begins in.
    code = [found.span() for found in _CODE.finditer(text)]
    return _LINK.sub(
        lambda link: (
            link[0] if any(low < link.start() < high for low, high in code) else change(link)
        ),
        text,
    )


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Sphinx's event `source-read`: the page's text, changed in place."""
    page = DOCS / f"{docname}.md"
    origin = included(source[0], page) or page
    text = source[0] if origin == page else origin.read_text()
    if origin != page:
        app.env.note_dependency(str(origin))
    source[0] = relink(without_comments(text), origin=origin, page=page, moved=homes())


def setup(app: Sphinx) -> dict[str, bool]:
    """Ask to see every page before it is parsed."""
    app.connect("source-read", read)
    app.add_lexer("layers", TextLexer)  # the picture that a test compares with the imports
    return {"parallel_read_safe": True, "parallel_write_safe": True}
