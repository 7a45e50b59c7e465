"""The docs site: what is public is listed, pages are found, links lead somewhere; it builds."""

import ast
import re
import runpy
import subprocess
import sys
from importlib import import_module

import pytest

pytest.importorskip("sphinx")

import overtone as ot
from docs.builder import notebooks
from docs.builder.api import all_listed
from docs.builder.pages import homes, included, outside_code, without_comments
from tests.test_repository import PACKAGE, ROOT

DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1[ \t]*$", re.S | re.M)


def test_the_settings_are_read_and_their_extensions_exist():
    settings = runpy.run_path(str(DOCS / "conf.py"))
    assert settings["release"] == ot.__version__
    for name in settings["extensions"]:
        assert hasattr(import_module(name), "setup"), name
    # Whatever would be fetched while the site is built or read.
    assert "sphinx.ext.intersphinx" not in settings["extensions"]
    assert settings["html_math_renderer"] == "mathml"


def named(path):
    """The names in a file's `__all__`, or None if it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return None


def public_modules():
    """Module -> its `__all__`, for every package that has one, and modules of the reference."""
    packages = [path for path in PACKAGE.rglob("__init__.py") if named(path) is not None]
    found = {".".join(path.parent.relative_to(PACKAGE.parent).parts) for path in packages}
    found |= {module for module, _ in all_listed()}
    return {name: getattr(import_module(name), "__all__", None) for name in sorted(found)}


def test_the_reference_lists_every_public_name_and_no_other():
    """A name that is the same thing as one of another module needs to be listed once."""
    listed = all_listed()
    assert len(listed) == len(set(listed))
    modules = public_modules()
    assert {"overtone", "overtone.data", "overtone.metrics", "overtone.theory"} <= modules.keys()
    for module, name in listed:
        assert modules[module] is not None, f"{module} is in the reference and has no __all__"
        assert name in modules[module], f"{module}.{name} is listed and not in __all__"
    shown = [getattr(import_module(module), name) for module, name in listed]
    shown += [import_module(module) for module in modules]  # ot.data is a page, not an entry
    for module, names in modules.items():
        for name in names:  # pyright: ignore[reportOptionalIterable]
            thing = getattr(import_module(module), name)
            is_listed = any(thing is other for other in shown) or (module, name) in listed
            assert is_listed or name == "__version__", f"docs/api lists no {module}.{name}"


def entries(page):
    """The pages that a page's toctrees name."""
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), flags=re.S | re.M):
        for line in block.splitlines():
            if line.strip() and not line.startswith(":"):
                target = re.sub(r".*<(.*)>", r"\1", line.strip())
                yield (page.parent / f"{target}.md").resolve()


def test_every_page_is_in_one_toctree():
    found = [entry for page in PAGES for entry in entries(page)]
    assert sorted(found) == sorted({*PAGES} - {DOCS / "index.md"})


def anchors(page):
    """What a link may name in a page, by the rule of public forges."""
    source = included(page.read_text(), page) or page
    text = CODE.sub("", source.read_text())
    for title in re.findall(r"^#{1,4} (.+)$", text, flags=re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        yield re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def links(page):
    """Targets of a page's links, as they are written."""
    text = CODE.sub("", page.read_text())
    text = re.sub(r"(?<!\[)`[^`\n]+`(?!\])", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_to_files_and_headings(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), link
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in set(anchors(path)), f"{page.name}: {link}"


def test_a_heading_that_is_not_there_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `title`, with *signs*\n\n```\n# no title\n```\n\n## Second one's\n")
    assert list(anchors(page)) == ["a-title-with-signs", "second-ones"]


def test_the_repositorys_own_pages_have_one_on_the_site():
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "README"):
        assert homes()[ROOT / f"{name}.md"].exists()


def test_notebooks_on_the_site_are_those_of_the_examples():
    found = notebooks.notebooks()
    assert len(found) == 3
    for path in found:
        page = notebooks.PAGES / f"{path.stem}.md"
        code = [cell.text for cell in notebooks.cells(path) if cell.kind == "code"]
        assert notebooks.code_of(page) == code, f"{path.name} has changed: make notebooks"
        # A page that was written before pages had marks has none.
        ran, here = notebooks.models_of(page), notebooks.models(path)
        assert not ran or ran == here, "a model is new: make notebooks"
        for picture in re.findall(r"\]\(([^)]+\.png)\)", page.read_text()):
            assert (page.parent / picture).read_bytes().startswith(b"\x89PNG")


def test_every_figure_is_in_the_gallery():
    gallery = (DOCS / "gallery.md").read_text()
    for folder in ("images", "data"):
        for picture in (DOCS / folder).glob("*.png"):
            assert f"({folder}/{picture.name})" in gallery, f"{picture.name} is not in the gallery"


def test_marks_of_generators_are_comments_and_nothing_else():
    pages = (DOCS / "results.md", *(DOCS / "results").glob("*.md"))
    text = without_comments("\n".join(page.read_text() for page in pages))
    prose = []
    outside_code(text, lambda part: prose.append(part) or part)
    assert "<!--" not in "".join(prose)
    assert "-->" not in "".join(prose)
    assert "with 45 %" in text or re.search(r"with \d+ % of the tokens", text)


def test_the_readme_is_one_screen():
    readme = (ROOT / "README.md").read_text()
    assert "<!--" not in readme
    assert len(readme.splitlines()) <= 90
    first = readme.index("```python")
    assert readme.index("![") < readme.index("pip install") < first
    assert len(readme[:first].splitlines()) <= 40


def test_the_example_of_the_landing_page_is_the_example_file():
    _, _, example = (ROOT / "examples" / "first_rollout.py").read_text().split('"""', 2)
    assert f"```python\n{example.lstrip()}```" in (DOCS / "index.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    done = subprocess.run([*command, str(DOCS), str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
def test_the_site_builds_without_a_warning(site):
    pages = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert {page.relative_to(DOCS).with_suffix("") for page in PAGES} <= pages
    assert (site / "searchindex.js").stat().st_size > 10_000


@pytest.mark.slow
def test_the_site_fetches_nothing_and_its_links_hold(site):
    for path in site.rglob("*.html"):
        html = path.read_text()
        fetched = re.findall(r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="([^"]+)"', html)
        for address in fetched:
            assert not re.match(r"https?:|//", address), f"{path.name}: {address}"
        for address in re.findall(r'<a [^>]*?href="([^"#]+)[^"]*"', html):
            if not re.match(r"[a-z]+:", address):
                assert (path.parent / address.partition("?")[0]).exists(), f"{path}: {address}"


@pytest.mark.slow
def test_what_a_reader_sees(site):
    results = (site / "results.html").read_text()
    assert "value: " not in results
    assert "table: " not in results
    assert (site / "theory.html").read_text().count("<math") > 20
    assert "\\partial" not in re.sub(r"<[^>]*>", "", (site / "data/shear_flow.html").read_text())
    assert "WellFolder" in (site / "api/data.html").read_text()
