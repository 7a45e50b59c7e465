"""The page's files: as they are for the server, or joined into one file that opens from disk."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
STYLE = "style.css"
MODULES = (
    "words.js",
    "draw.js",
    "charts.js",
    "gif.js",
    "source.js",
    "pictures.js",
    "store.js",
    "panels.js",
    "curves.js",
    "poster.js",
    "lanes.js",
    "help.js",
    "keys.js",
    "main.js",
)
"""Each imports from those before it alone, so that one after the other they are one script."""
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", flags=re.M)
EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", flags=re.M)


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Name -> content and media type of every file that the server offers, and of no other."""
    names = (INDEX, STYLE, *MODULES)
    return {name: ((FOLDER / name).read_bytes(), TYPES[Path(name).suffix]) for name in names}


def single(recording: dict[str, Any]) -> str:
    """The whole page as one file, with what it plays.

    Args:
        recording: as `record` makes it, plain data.
    """
    text = {name: content.decode() for name, (content, _) in files().items()}
    script = "\n".join(EXPORT.sub("", IMPORT.sub("", text[name])) for name in MODULES)
    # Within a script, JSON can't end it or begin a comment.
    data = json.dumps(recording, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    title = html.escape(f"Overtone: {recording['hello']['data']['name']}")
    page = text[INDEX]
    page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{title}</title>", page)
    page = page.replace(
        f'<link rel="stylesheet" href="{STYLE}">', f"<style>\n{text[STYLE]}</style>"
    )
    return page.replace(
        f'<script type="module" src="{MODULES[-1]}"></script>',
        f'<script type="application/json" id="recording">{data}</script>\n'
        f'<script type="module">\n{script}</script>',
    )
