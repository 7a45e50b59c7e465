"""The API reference: pages list public names, docstrings say the rest.

A page names a module and what it shows of it,

    ```{api} overtone.data
    WellFolder
    from_arrays
    ```

and gets a table of one line each, then every docstring with its signature. `tests/test_docs.py`
compares these lists with `__all__`. In docstrings a name between single backticks becomes a link
if it is public, and code if it is not.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer

FOLDER = Path(__file__).resolve().parents[1] / "api"
_WORDLESS = re.compile(r"<(?:function (\w+)|factory)>")
"""Defaults that are made for each object, and functions."""
_BLOCK = re.compile(r"^```\{api\} (\S+)\n(.*?)^```", re.S | re.M)


def listed(page: Path) -> list[tuple[str, str]]:
    """Module and name of everything that a page shows, in its order."""
    blocks = _BLOCK.findall(page.read_text())
    return [(module, name) for module, names in blocks for name in names.split()]


def all_listed() -> list[tuple[str, str]]:
    """Module and name of everything that is public."""
    return [entry for page in sorted(FOLDER.glob("*.md")) for entry in listed(page)]


def kind(thing: object) -> str:
    """Which of autodoc's directives shows a thing."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, Exception) else "class"
    return "function" if inspect.isroutine(thing) else "data"


def listing(module: str, names: list[str]) -> list[str]:
    """The block's content, as reStructuredText."""
    home = import_module(module)
    lines = [".. autosummary::", "", *(f"   ~{module}.{name}" for name in names), ""]
    for name in names:
        shown = kind(getattr(home, name))
        lines += [f".. auto{shown}:: {module}.{name}", ""]
        if shown == "data":
            lines[-1:] = ["   :no-value:", ""]
    return lines


class Listing(Directive):
    """The directive `api`."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Let autosummary and autodoc do what their directives do."""
        names = " ".join(self.content).split()
        lines = ["```{eval-rst}", *listing(self.arguments[0], names), "```"]
        found = nodes.Element()
        self.state.nested_parse(StringList(lines, "api"), self.content_offset, found)
        return found.children


def public(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """The role of single backticks: code, which `resolve` links if the reference has it."""
    code = nodes.literal(rawtext, text, classes=["code"])
    target = text.removeprefix("ot.").removesuffix("()")
    if not re.fullmatch(r"[A-Za-z_][\w.]*", target):
        return [code], []
    reference = addnodes.pending_xref(rawtext, code, reftype="public", reftarget=target)
    return [reference], []


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Node
) -> nodes.Node | None:
    """Sphinx's event `missing-reference`, for what `public` left behind."""
    if node["reftype"] != "public":
        return None
    objects = cast(PythonDomain, env.get_domain("py")).objects
    for place in ("overtone.", "overtone.data.", ""):
        found = objects.get(place + node["reftarget"])
        if found is not None:
            return _link(app, node, found, content)
    return content


def _link(app: Sphinx, node: addnodes.pending_xref, found: Any, content: nodes.Node) -> nodes.Node:
    here = node.get("refdoc", found.docname)
    address = app.builder.get_relative_uri(here, found.docname)
    return nodes.reference("", "", content, internal=True, refuri=f"{address}#{found.node_id}")


def describe(
    app: Sphinx, what: str, name: str, thing: object, options: Any, lines: list[str]
) -> None:
    """Autodoc's event `autodoc-process-docstring`, which changes the lines in place.

    Bars are those of absolute values. Constants are described where they are made.
    """
    lines[:] = ["".join(barred(line)) for line in lines]
    if what != "data":
        return
    short = name.rpartition(".")[2]
    homes = [own for key, own in sys.modules.items() if key.partition(".")[0] == "overtone"]
    for home in homes:
        if getattr(home, short, None) is thing:
            said = ModuleAnalyzer.for_module(home.__name__).find_attr_docs().get(("", short))
            if said:
                lines[:] = said
                return
    raise ExtensionError(f"{name} has no docstring below the line that makes it")


def sign(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str, str | None] | None:
    """Autodoc's event `autodoc-process-signature`, which answers with what is to be shown.

    Nobody makes a protocol, so it has no signature. A default that Python has no words for would
    leave all of a signature unread, with the full names of its types.
    """
    if getattr(thing, "_is_protocol", False):
        return "", ""
    return (
        (_WORDLESS.sub(lambda found: found[1] or "...", signature), returns) if signature else None
    )


def skip(app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: Any) -> bool:
    """Autodoc's event `autodoc-skip-member`: what only refers to a private base is left out.

    What takes the call of an object, and says how, is shown.
    """
    if getattr(thing, "__name__", "") == "__call__":
        return not inspect.isfunction(thing) or not thing.__doc__
    return skipped or (inspect.getdoc(thing) or "").startswith("See `")


def barred(line: str) -> Iterator[str]:
    """The parts of a line, its bars escaped where they are not code."""
    for index, part in enumerate(line.split("`")):
        yield ("`" if index else "") + (part if index % 2 else part.replace("|", r"\|"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the role."""
    app.add_directive("api", Listing)
    app.add_role("public", public)
    app.connect("autodoc-process-docstring", describe)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
