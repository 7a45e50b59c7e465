"""Equations become MathML; all of the docs' can be."""

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("latex2mathml")

from docs.builder.mathml import mathml
from docs.builder.pages import DOCS

SPACE = "{http://www.w3.org/1998/Math/MathML}"
EQUATION = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?![\w$])", re.S)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.S | re.M)


def test_a_fraction_and_an_exponent():
    tree = ElementTree.fromstring(mathml(r"\frac{a}{b^2}"))
    (fraction,) = tree.iter(f"{SPACE}mfrac")
    numerator, denominator = fraction
    assert "".join(numerator.itertext()) == "a"
    assert denominator.tag in (f"{SPACE}msup", f"{SPACE}mrow")
    assert "".join(denominator.itertext()) == "b2"
    assert tree.get("display") == "inline"
    assert ElementTree.fromstring(mathml("x", display="block")).get("display") == "block"


def equations():
    for page in sorted(DOCS.rglob("*.md")):
        text = CODE.sub("", page.read_text())
        for found in EQUATION.findall(text) if "_build" not in page.parts else ():
            yield page.stem, max(found).strip()


def test_there_are_equations_in_theory_and_in_every_system():
    pages = {page for page, _ in equations()}
    systems = {page.stem for page in (DOCS / "data").glob("*.md")} - {"index"}
    assert {"theory", *systems} <= pages


@pytest.mark.parametrize(("page", "latex"), list(equations()))
def test_no_command_is_left_as_it_stands(page, latex):
    tree = ElementTree.fromstring(mathml(latex))
    said = "".join(tree.itertext())
    assert "\\" not in said, said
    assert tree.find(f".//{SPACE}merror") is None
    # Delimiters that grow need a font for mathematics, which not every machine has.
    assert not re.search(r"\\(left|right|big|Big|begin)\b", latex)
