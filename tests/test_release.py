"""What `make release-check` would notice, and what the package says of itself."""

import email
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADDRESS = "https://forge.example/group/overtone"


@pytest.fixture(scope="module")
def release():
    """The names of the script that checks a release."""
    return runpy.run_path(str(ROOT / ".ci" / "release.py"))


@pytest.fixture(scope="module")
def metadata():
    """The names of the script that makes metadata."""
    pytest.importorskip("hatchling")
    return runpy.run_path(str(ROOT / ".ci" / "metadata.py"))


# What is said

SAID = {
    "changelog": "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-05-04\n\n## 1.2.2 - 2026-01-01\n",
    "citation": "version: 1.2.3\ndate-released: 2026-05-04\n",
    "security": "| version | supported |\n|---|---|\n| 1.2 | yes: fixes |\n| older | no |\n",
    "tags": ["nightly", "v1.2.3"],
}


def test_this_version_is_the_same_everywhere(release):
    assert release["said_here"]() == []


def test_what_agrees_is_no_contradiction(release):
    assert list(release["contradictions"]("1.2.3", **SAID)) == []
    assert list(release["contradictions"]("1.2.3", **SAID | {"tags": []})) == []


@pytest.mark.parametrize(
    ("where", "right", "wrong", "said"),
    [
        ("changelog", "1.2.3 - 2026-05-04", "1.2.4 - 2026-05-04", "newest release is '1.2.4"),
        ("changelog", "1.2.3 - 2026-05-04", "1.2.3", "not '1.2.3 - YYYY-MM-DD'"),
        (
            "changelog",
            "2026-05-04",
            "2026-05-05",
            "date-released 2026-05-04, CHANGELOG.md 2026-05-",
        ),
        ("citation", "1.2.3", "1.2.2", "CITATION.cff has version 1.2.2, not 1.2.3"),
        ("citation", "date-released: 2026-05-04", "", "no date-released"),
        ("security", "| 1.2 |", "| 1.1 |", "does not list 1.2"),
        ("security", "| 1.2 | yes", "| 1.2 | no", "does not list 1.2"),
        ("tags", "v1.2.3", "v1.2.4", "tagged v1.2.4, not v1.2.3"),
    ],
)
def test_a_place_that_says_something_else_is_named(release, where, right, wrong, said):
    before = SAID[where]
    if isinstance(before, str):
        assert before.count(right) == 1
        after = before.replace(right, wrong)
    else:
        after = [wrong if tag == right else tag for tag in before]
    (found,) = release["contradictions"]("1.2.3", **SAID | {where: after})
    assert said in found


# What is built


@pytest.fixture(scope="module")
def built(release, tmp_path_factory):
    """Wheel and sdist of this folder, without the weights, which take the time."""
    pytest.importorskip("hatchling")
    root = tmp_path_factory.mktemp("sources")
    for name in ("src", ".ci", "examples"):
        ignored = shutil.ignore_patterns("__pycache__", "*.safetensors", "metrics.jsonl")
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    (root / "results").mkdir()
    (root / "results" / "numbers.json").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        patch.setenv("OVERTONE_REPOSITORY", ADDRESS)
        first = release["build"](root, root.parent / "first", "sdist", "wheel")
        for path in root.rglob("*.py"):
            path.touch()  # when a file was written is no part of what is built
        second = release["build"](root, root.parent / "second", "sdist", "wheel")
        patch.delenv("OVERTONE_REPOSITORY")
        inner = release["unpack"](first[1], root.parent / "unpacked")
        third = release["build"](inner, root.parent / "third", "wheel")
    return first, second, third


def test_builds_are_the_same_byte_by_byte(release, built):
    first, second, third = built
    assert [path.suffix for path in first] == [".whl", ".gz"]
    assert list(release["differences"](first, second)) == []
    # Also from the sdist, by somebody who does not know the repository's address.
    assert list(release["differences"](first[:1], third)) == []


def test_other_bytes_and_other_names_are_differences(release, tmp_path):
    for name, content in (("a", b"1"), ("b", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.whl").write_bytes(content)
    one, other = tmp_path / "a" / "x.whl", tmp_path / "b" / "x.whl"
    assert list(release["differences"]([one], [other])) == ["two builds of x.whl differ"]
    assert "another []" in next(release["differences"]([one], []))


def test_wheel_and_sdist_have_no_faults(release, built):
    wheel, sdist = built[0]
    assert list(release["wheel_faults"](wheel)) == []
    assert list(release["sdist_faults"](sdist)) == []


def test_the_wheel_of_python_files_leaves_room_for_models(built):
    """All but the weights; they and the whole have their limits elsewhere."""
    assert built[0][0].stat().st_size < 1.5e6


def test_faults_of_a_wheel_are_told(release, built, tmp_path):
    wheel = tmp_path / built[0][0].name
    with zipfile.ZipFile(built[0][0]) as old, zipfile.ZipFile(wheel, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("METADATA"):
                text = content.decode().replace("Typing :: Typed", "Typing :: Typewritten")
                content = re.sub(r"^Version: \d", "Version: 9", text, flags=re.M).encode()
            if name != "overtone/py.typed":
                new.writestr(name, content)
        new.writestr("tests/test_a.py", "")
        new.writestr("overtone/a.png", "")
    found = "\n".join(release["wheel_faults"](wheel))
    for said in ("has no overtone/py.typed", "has tests/test_a.py", "has overtone/a.png",
                 "classifier 'Typing :: Typewritten'", "Version is 9."):  # fmt: skip
        assert said in found


def test_too_large_a_file_is_told(release, built, monkeypatch):
    for kind, path in zip(("wheel", "sdist"), built[0], strict=True):
        faults = release[f"{kind}_faults"]
        monkeypatch.setitem(faults.__globals__, f"MAX_{kind.upper()}_BYTES", 1000)
        assert any("MB, 0 are allowed" in fault for fault in faults(path))


def test_a_file_that_no_build_needs_is_told(release, tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(ROOT / "LICENSE", "x-1/results/a.json")
        archive.add(ROOT / "LICENSE", "x-1/src/a.py")
        archive.add(ROOT / "LICENSE", "x-1/src/a.png")
    assert list(release["sdist_faults"](path)) == [
        "the sdist has results/a.json", "the sdist has src/a.png"
    ]  # fmt: skip


def test_the_metadata_have_links_and_all_of_the_readme(release, built):
    said = release["metadata_of"](built[0][0])
    links = dict(line.split(", ") for line in said.get_all("Project-URL"))
    assert links["Issues"] == f"{ADDRESS}/issues"
    assert all(link.startswith(ADDRESS) for link in links.values())
    pythons = [c for c in said.get_all("Classifier") if re.search(r"3\.\d+$", c)]
    assert [c.rpartition(".")[2] for c in pythons] == ["11", "12", "13"]
    headings = re.compile(r"^#+ .*$", flags=re.M)
    readme = (ROOT / "README.md").read_text()
    assert headings.findall(said.get_payload()) == headings.findall(readme)


# Where it is published


def test_the_address_is_the_forges_or_what_is_said(metadata):
    repository = metadata["repository"]
    assert repository({}) == ""
    forge = {"GITHUB_SERVER_URL": "https://forge.example", "GITHUB_REPOSITORY": "group/overtone"}
    assert repository(forge) == ADDRESS
    assert repository(forge | {"OVERTONE_REPOSITORY": "https://a.b/c/"}) == "https://a.b/c"
    with pytest.raises(ValueError, match="not an address like https://"):
        repository({"OVERTONE_REPOSITORY": "git@a.b:c"})


README = "![A *plot*](docs/a.png) and [docs](docs/b.md#c), [web](https://x.org), [here](#d)"


def test_links_of_the_readme_lead_to_the_release(metadata):
    assert metadata["outside"](README, ADDRESS, "v1.0") == (
        f"![A *plot*]({ADDRESS}/raw/v1.0/docs/a.png) and [docs]({ADDRESS}/blob/v1.0/docs/b.md#c), "
        "[web](https://x.org), [here](#d)"
    )


def test_without_an_address_links_are_text(metadata, release):
    text = metadata["outside"](README, "", "v1.0")
    assert text.endswith("and docs, [web](https://x.org), [here](#d)")
    assert metadata["urls"]("") == {}
    title = "# Overtone\n\n"
    assert list(release["page_faults"](title + text)) == []
    assert len(list(release["page_faults"](title + README))) == 2


# Versions


def requirements():
    """All that pyproject.toml asks for, but for the tools of developers."""
    extras = PROJECT["optional-dependencies"]
    apart = {
        "dev",
        "docs",
        "neuralop",
        "wandb",
        "test",
    }  # installed by other targets, or not at all
    lists = [PROJECT["dependencies"], *(v for k, v in extras.items() if k not in apart)]
    return sorted({line for lines in lists for line in lines})


def pins(name):
    lines = (ROOT / name).read_text().splitlines()
    found = (Requirement(line) for line in lines if line and not line.startswith("#"))
    return {pin.name.lower().replace("_", "-"): next(iter(pin.specifier)).version for pin in found}


@pytest.mark.parametrize("line", requirements())
def test_lower_bounds_are_versions_that_are_run(line):
    wanted = Requirement(line)
    (bound,) = [spec.version for spec in wanted.specifier if spec.operator == ">="]
    name = wanted.name.lower().replace("_", "-")
    assert Version(pins("constraints-oldest.txt")[name]) == Version(bound)
    assert pins("constraints.txt")[name] in wanted.specifier


def test_the_pins_of_the_oldest_are_installed_by_their_target():
    recipe = (ROOT / "Makefile").read_text().partition("$(OLDEST)/.installed:")[2]
    assert "constraints-oldest.txt" in recipe.partition("\n\n")[0]
    extras = set(re.search(r"'\.\[(.*?)\]'", recipe)[1].split(","))
    assert extras == set(PROJECT["optional-dependencies"]) - {"dev", "docs", "neuralop", "wandb"}


def test_the_scripts_option_for_publishing_is_what_make_gives():
    said = subprocess.run(
        [sys.executable, ROOT / ".ci" / "release.py", "--help"], capture_output=True, text=True
    )
    assert said.returncode == 0
    for option in re.findall(r"release\.py .*?(--\w+)", (ROOT / "Makefile").read_text()):
        assert option in said.stdout


def test_a_published_version_has_tag_and_address(release, monkeypatch):
    published = release["published"]
    monkeypatch.setitem(published.__globals__, "git", lambda *words: "")
    found = list(published(email.message_from_string("Name: overtone\n")))
    assert any("has no tag v" in fault for fault in found)
    assert any("OVERTONE_REPOSITORY" in fault for fault in found)
