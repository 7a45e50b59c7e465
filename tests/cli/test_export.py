"""The command `overtone export`."""

import json

import pytest

from overtone.programs import run


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of `export`, which is done elsewhere."""
    seen = {}

    def export(model, out, **options):
        seen.update(model=model, out=out, **options)
        options["progress"](1, 1, "done")
        return {"programs": [{"file": "patch-8.pt2", "difference": 2e-6}]}

    monkeypatch.setattr("overtone.programs.run.export", export)
    return seen


def test_what_is_typed_is_what_is_asked(overtone, asked, tmp_path):
    words = "--patch 8 --patch 4x8 --format pt2,onnx --format pt2 --grid 32x64 --unit pressure=Pa"
    code, said = overtone("export", "m", "--out", tmp_path / "o", *words.split())
    assert code == 0, said
    assert asked["patches"] == [8, (4, 8)]
    assert asked["formats"] == ["pt2", "onnx", "pt2"]
    assert asked["grid"] == (32, 64)
    assert asked["units"] == {"pressure": "Pa"}
    assert asked["allow_untrained"] is False
    assert "patch-8.pt2" in said
    assert "2.0e-06" in said


def test_all_patches_as_onnx_by_default(overtone, asked, tmp_path):
    assert overtone("export", "m", "--out", tmp_path / "o")[0] == 0
    assert asked["patches"] is None
    assert asked["formats"] == ["onnx"]
    assert asked["grid"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--patch", "eight"], "patch is 'eight'; expected numbers such as 8, or 4x8"),
        (["--patch", "5"], "patch 5 was not trained for; this model knows"),
        (["--format", "torchscript"], "format is 'torchscript'; expected one of onnx, pt2, aoti"),
        (["--unit", "Pa"], "unit is 'Pa'; expected FIELD=UNIT"),
        (["--unit", "colour=K"], "a unit is given for 'colour'"),
        (["--grid", "2x2"], "does not fit axis 0 of 2 cells"),
    ],
)
def test_mistakes_are_one_message(overtone, small_folder, tmp_path, words, said):
    code, output = overtone("export", small_folder, "--out", tmp_path / "o", *words)
    assert code == 2
    assert said in output
    assert "Traceback" not in output
    assert not (tmp_path / "o").exists()


def test_a_folder_of_others_is_left_alone(overtone, small_folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    code, output = overtone("export", small_folder, "--out", tmp_path / "mine")
    assert code == 2
    assert "left alone" in output


@pytest.fixture(scope="module")
def small_folder(make_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small"
    make_model().save(folder)
    return folder


def test_a_file_is_written(overtone, small_folder, tmp_path):
    words = ["--patch", "16", "--format", "pt2", "--out", tmp_path / "o"]
    code, output = overtone("export", small_folder, *words)
    assert code == 0, output
    content = json.loads((tmp_path / "o" / "manifest.json").read_text())
    assert content["model"]["name"] == "small"
    assert content["programs"][0]["difference"] < 1e-5
    assert run.KIND == "export"
