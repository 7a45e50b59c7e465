"""A recording of `overtone view`, embedded where a page shows the command that writes it.

    ```{recording}
    overtone view MODEL --schedule 16 --schedule 4-8-16+shift --export view.html
    ```

On a forge this is read as a command. Here the command is run when the site is built, and what it
writes is embedded: no file that a model has computed lies in the repository.
"""

import html
import shlex
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

FOLDER = "_recordings"
"""Where recordings are, in the built site."""
TITLE = "Recorded rollouts, to be played"


def parsed(command: str) -> tuple[list[str], str]:
    """What follows `overtone` in the command, but for the file; and the file's name."""
    words = shlex.split(command)
    if words[:2] != ["overtone", "view"] or words[-2:-1] != ["--export"]:
        raise ExtensionError(
            f"'{command}' makes no recording: expected overtone view … --export NAME"
        )
    name = words[-1]
    if Path(name).name != name or not name.endswith(".html"):
        raise ExtensionError(f"a recording is called '{name}'; expected a name such as view.html")
    return words[1:-2], name


def embedded(place: str) -> str:
    """The HTML that shows a recording in its page; `place` is its address from there."""
    address = html.escape(place)
    return (
        f'<iframe class="recording" src="{address}" title="{TITLE}" loading="lazy"></iframe>\n'
        f'<p><a href="{address}">The same in a page of its own</a></p>'
    )


class Recording(SphinxDirective):
    """Run the command, and embed what it writes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The embedded page, below the command that made it."""
        command = " ".join(self.content)
        arguments, name = parsed(command)
        out = Path(self.env.app.outdir) / FOLDER / name
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(  # noqa: S603 - a command of our own pages
            [sys.executable, "-m", "overtone", *arguments, "--export", str(out)], check=True
        )
        up = "../" * self.env.docname.count("/")
        return [
            nodes.literal_block(command, command, language="bash"),
            nodes.raw("", embedded(f"{up}{FOLDER}/{name}"), format="html"),
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("recording", Recording)
    return {"parallel_read_safe": True}
