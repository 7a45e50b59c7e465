"""Equations as MathML, which browsers draw themselves: no script, no fonts, no network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def mathml(latex: str, *, display: str = "inline") -> str:
    """The `<math>` element of an equation.

    Args:
        latex: what stands between dollar signs.
        display: `"inline"`, or `"block"` for an equation that stands alone.
    """
    return convert(latex.strip(), display=display)


def show_inline(writer: Any, node: nodes.math) -> None:
    """An equation within a line."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def show_block(writer: Any, node: nodes.math_block) -> None:
    """An equation of its own; a line of LaTeX that ends in a double backslash makes several."""
    writer.body.append('<div class="equation">')
    writer.body.append(mathml(node.astext(), display="block"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (show_inline, None), (show_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
