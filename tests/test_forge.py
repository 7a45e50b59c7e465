"""The workflows and templates of the forge: they call `make`, and may do little."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
TEMPLATES = sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
BROWSER = ROOT / "tests" / "browser" / "conftest.py"


def read(path):
    return yaml.safe_load(path.read_text())


def jobs():
    return {
        (path.stem, name): job for path in WORKFLOWS for name, job in read(path)["jobs"].items()
    }


def steps(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_there_are_the_workflows_that_the_docs_speak_of():
    assert [path.stem for path in WORKFLOWS] == ["check", "nightly", "publish"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_make_with_targets_that_exist(path):
    called = [c for job in read(path)["jobs"].values() for step in steps(job)
              for c in re.findall(r"make ([\w-]+)", step)]  # fmt: skip
    assert called
    for target in set(called):
        assert re.search(rf"^{target}:", MAKEFILE, flags=re.M), f"make has no target {target}"


def test_every_change_is_checked_in_every_way():
    called = {step for (path, _), job in jobs().items() if path == "check" for step in steps(job)}
    for target in ("lint", "types", "test", "test-oldest", "docs", "test-browser", "release-check"):
        assert f"make {target}" in called


def test_the_matrix_has_every_python_of_the_classifiers():
    pythons = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    matrix = jobs()["check", "test"]["strategy"]["matrix"]
    assert matrix["python"] == pythons == ["3.11", "3.12", "3.13"]
    assert {"python": pythons[0], "target": "test-oldest"} in matrix["include"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_read_and_no_more(path):
    assert read(path)["permissions"] == {"contents": "read"}
    text = path.read_text()
    assert "pull_request_target" not in text  # which would run a stranger's code with our rights
    assert "secrets." not in text
    # What strangers can name, such as a branch's title, never becomes a part of a command.
    for job in read(path)["jobs"].values():
        assert not any("${{" in step for step in steps(job))


def test_one_job_alone_may_speak_to_the_index():
    given = {key: job["permissions"] for key, job in jobs().items() if "permissions" in job}
    assert given == {("publish", "publish"): {"id-token": "write"}}
    job = jobs()["publish", "publish"]
    assert job["environment"] == "pypi"
    assert job["needs"] == "build"
    assert steps(job) == []  # it runs nothing of ours
    assert "make release-check PUBLISH=1" in steps(jobs()["publish", "build"])
    # YAML takes the key `on` for a truth value.
    assert read(FORGE / "workflows" / "publish.yml")[True] == {"push": {"tags": ["v*"]}}


@pytest.mark.parametrize("key", jobs(), ids="/".join)
def test_jobs_end_and_their_actions_are_pinned(key):
    job = jobs()[key]
    assert job["timeout-minutes"] <= 180
    for step in job["steps"]:
        if "uses" in step:
            action, _, version = step["uses"].partition("@")
            assert re.fullmatch(r"v\d+|release/v\d+|[0-9a-f]{40}", version), step["uses"]
            assert action.partition("/")[0] in {"actions", "pypa"}
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_jobs_do_nothing_that_make_does_not():
    """Otherwise a desk could not show what fails there."""
    for key, job in jobs().items():
        assert all(step.startswith("make ") for step in steps(job)), key


def test_make_looks_for_the_browsers_that_the_tests_take():
    recipe = MAKEFILE.partition("\ntest-browser:")[2].partition("{")[0]  # before it installs one
    names = re.search(r"^NAMES = \((.*)\)$", BROWSER.read_text(), flags=re.M)[1]
    assert re.findall(r"command -v ([\w-]+) >", recipe) == re.findall(r'"([\w-]+)"', names)


def test_slow_tests_get_the_time_that_they_ask_for():
    """What hangs outside Python ends all tests, but no sooner than a test's own limit."""
    pages = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    asked = [
        int(n)
        for page in pages
        for n in re.findall(r"^@pytest\.mark\.timeout\((\d+)\)", page, flags=re.M)
    ]
    given = int(re.search(r"^PATIENT := -o faulthandler_timeout=(\d+)$", MAKEFILE, flags=re.M)[1])
    assert max(asked) < given
    for line in re.findall(r"^.*-m pytest.*-m (?:slow|'not browser').*$", MAKEFILE, flags=re.M):
        assert line.endswith(" $(PATIENT)"), line


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_forms_are_forms(path):
    form = read(path)
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= form.keys()
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_pages_that_a_forge_looks_for_are_there():
    for name in ("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE",
                 ".github/pull_request_template.md"):  # fmt: skip
        assert (ROOT / name).is_file()
