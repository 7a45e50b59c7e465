"""`python -m studies`, as it is typed."""

import json
import shutil
from pathlib import Path

import pytest

from overtone.cli.app import main
from studies.__main__ import app

MARK = "# Title\n\n<!-- table: setting shear-flow-mini -->\n<!-- end -->\n"


@pytest.fixture
def studies(monkeypatch, capsys):
    """Run a command; returns its exit code and all that it says."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["studies", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main(app)
        output = capsys.readouterr()
        return caught.value.code or 0, output.out + output.err

    return run


def test_the_studies_are_listed(studies):
    code, text = studies("list")
    assert code == 0
    assert any(line.startswith("shear-flow-mini ") for line in text.splitlines())


def test_an_unknown_study_is_one_message(studies):
    code, text = studies("run", "shear-flow")
    assert code == 2
    assert text.startswith("error: no study 'shear-flow'")
    assert "Traceback" not in text


@pytest.fixture
def page(tmp_path):
    (tmp_path / "results").mkdir()
    path = tmp_path / "page.md"
    path.write_text(MARK)
    return path


def test_check_names_what_is_stale_and_writes_nothing(studies, page):
    results = ("--results", page.parent / "results")
    code, text = studies("page", page, *results, "--check")
    assert code == 1
    assert f"{page}:3: 'table: setting shear-flow-mini' is stale" in text
    assert page.read_text() == MARK
    code, text = studies("page", page, *results)
    assert (code, "1 blocks, 1 changed, 1 not run yet" in text) == (0, True)
    assert "not run yet: `make reproduce STUDY=shear-flow-mini" in page.read_text()
    code, text = studies("page", page, *results, "--check")
    assert (code, "1 blocks, 0 stale" in text) == (0, True)


def test_figures_of_nothing_are_no_error(studies, page):
    folder = page.parent
    code, text = studies("page", page, "--results", folder / "results", "--figures", folder)
    assert (code, "wrote" in text) == (0, False)


@pytest.mark.parametrize(
    ("mark", "said"),
    [("<!-- table: x y --><!-- end -->", "no table 'x'"), ("<!-- end -->", "without a table")],
)
def test_mistakes_are_one_message(studies, page, mark, said):
    page.write_text(mark)
    code, text = studies("page", page, "--results", page.parent / "results")
    assert code == 2
    assert text.startswith("error: ")
    assert said in text


def test_a_missing_folder_of_results(studies, page):
    code, text = studies("page", page, "--results", page.parent / "none")
    assert (code, "no folder of results" in text) == (2, True)


def test_models_are_packaged_with_the_numbers_of_their_study(studies, tmp_path, monkeypatch):
    name = "supernova-explosion-mini"
    shutil.copy(Path(__file__).parents[2] / "results" / f"{name}.json", tmp_path)
    taken = []

    def stand_in(run, results, kind, packaged, out):
        taken.append((run, kind, packaged))
        return {"vrmse": len([m for m in results.models if m.name == kind])}

    monkeypatch.setattr("studies.package.package", stand_in)
    said = ("package", "--runs", tmp_path, "--results", tmp_path, "--study", name)
    assert studies(*said) == (0, f"{name}-csm 1\n")
    assert taken == [(tmp_path / "runs" / f"{name}-csm", "csm", f"{name}-csm")]
    proofs = json.loads((tmp_path / "models.json").read_text())["models"]
    assert proofs == {f"{name}-csm": {"vrmse": 1}}
    code, text = studies(*said[:-1], "rayleigh-benard-mini")
    assert (code, "first make reproduce STUDY=rayleigh-benard-mini" in text) == (0, True)
