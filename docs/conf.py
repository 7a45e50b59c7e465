"""Sphinx builds the site from these pages: `make docs`. Offline, and a warning is an error."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from overtone.version import __version__  # noqa: E402 - found by the line above

project = "Overtone"
author = "The Overtone developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "docs.builder.api",
    "docs.builder.mathml",
    "docs.builder.pages",
    "docs.builder.recording",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "builder"]
highlight_language = "none"

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
"""Headings that a link may name, by the rule of public forges, so that links work there, too."""

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"Overtone {release}"
html_static_path = ["_static"]
html_css_files = ["overtone.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "inherited-members": "Module,tuple,StrEnum,Exception"}
autosummary_generate = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
"""Not as links, which would find any attribute of that name."""
napoleon_use_rtype = False
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
default_role = "public"
"""Names in docstrings stand between single backticks; see `builder/api.py`."""

nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
"""Types in signatures: torch's and those of private modules have no page here."""
