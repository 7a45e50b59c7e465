"""A folder of programs: all of it, or nothing."""

import hashlib
import inspect
import json

import pytest
import torch

import overtone as ot
from overtone.errors import ExportError
from overtone.export import formats, run
from overtone.guard.folders import is_ours


@pytest.fixture
def quick(monkeypatch):
    """A format that costs nothing: the program is the eager step, under a name in a table."""
    kept = {}

    def write(program, path):
        path.write_text("program")
        kept[path.name] = program

    def load(path):
        step = kept[path.name]
        return lambda window, shift: step(window) if shift is None else step(window, shift)

    def trace(model, domain, patch, *, allow_untrained=False, exact=False):
        from overtone.export.program import Step

        return Step(model, domain, patch, allow_untrained=allow_untrained)

    monkeypatch.setattr(run, "trace", trace)
    monkeypatch.setitem(formats.FORMATS, "pt2", formats.Format(".pt2", write, load, 1e-5))
    return kept


def test_the_folder(exported, small_model):
    content = json.loads((exported / "manifest.json").read_text())
    assert [(p["patch"], p["format"], p["file"]) for p in content["programs"]] == [
        (4, "onnx", "patch-4.onnx"),
        (8, "onnx", "patch-8.onnx"),
    ]
    assert all(0 <= p["difference"] <= 1e-4 for p in content["programs"])
    names = {path.name for path in exported.iterdir()} - {"manifest.json", ".overtone.json"}
    assert names == {"patch-4.onnx", "patch-8.onnx", "rollout.py", "rollout.c", "README.md"}
    for name, digest in content["files"].items():
        assert hashlib.sha256((exported / name).read_bytes()).hexdigest() == digest
    assert {*content["files"]} == names
    assert is_ours(exported, "export")
    assert content["shift"] == [True, False]
    assert content["units"] == {"a": "kg", "b": None}
    assert content["context"] == 3
    assert ot.Domain(**content["domain"]) == small_model.domain


def test_no_file_names_a_folder_of_this_machine(exported):
    here = str(exported.parents[2]).encode()
    for path in exported.iterdir():
        content = path.read_bytes()
        assert here not in content
        assert b"site-packages" not in content
        assert b"overtone/models" not in content


def test_all_trained_patches_by_default_and_each_once(quick, small_model, tmp_path):
    found = ot.export(small_model, tmp_path / "all", formats="pt2")
    assert [p["patch"] for p in found["programs"]] == [4, 8]
    found = ot.export(small_model, tmp_path / "once", patches=[8, (8, 8)], formats=["pt2", "pt2"])
    assert [p["patch"] for p in found["programs"]] == [8]


def test_an_older_export_is_replaced_and_others_are_not(quick, small_model, tmp_path):
    folder = tmp_path / "programs"
    ot.export(small_model, folder, formats="pt2")
    ot.export(small_model, folder, patches=8, formats="pt2")
    assert not (folder / "patch-4.pt2").exists()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"did not write: 'notes\.txt'"):
        ot.export(small_model, folder, formats="pt2")
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    with pytest.raises(ExportError, match="left alone"):
        ot.export(small_model, other, formats="pt2")
    assert (other / "thesis.tex").read_text() == "mine"


def test_the_model_itself_is_never_replaced(quick, small_model, tmp_path):
    small_model.save(tmp_path / "model")
    with pytest.raises(ExportError, match="which this command reads"):
        ot.export(tmp_path / "model", tmp_path / "model", formats="pt2")
    found = ot.export(tmp_path / "model", tmp_path / "programs", patches=8, formats="pt2")
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert found["model"]["sha256"] == hashlib.sha256(weights).hexdigest()
    assert found["model"]["name"] == "model"


def test_a_program_that_is_not_the_model_leaves_nothing(quick, small_model, tmp_path, monkeypatch):
    how = formats.FORMATS["pt2"]

    def load(path):
        call = how.load(path)
        return lambda window, shift: call(window, shift) + (2e-4 if "8" in path.name else 0)

    wrong = formats.Format(how.suffix, how.write, load, how.tolerance)
    monkeypatch.setitem(formats.FORMATS, "pt2", wrong)
    with pytest.raises(ExportError, match=r"'patch-8\.pt2' is not the model"):
        ot.export(small_model, tmp_path / "out", formats="pt2")
    assert list(tmp_path.iterdir()) == []


def test_what_torch_can_not_do_is_one_line(quick, small_model, tmp_path, monkeypatch):
    def write(program, path):
        try:
            raise RuntimeError("\nno such operator\nand a page of advice")
        except RuntimeError as error:
            raise TypeError("conversion failed") from error

    wrong = formats.Format(".pt2", write, formats.FORMATS["pt2"].load, 1e-5)
    monkeypatch.setitem(formats.FORMATS, "pt2", wrong)
    with pytest.raises(ExportError, match=r"can't be written as pt2: RuntimeError: no such operat"):
        ot.export(small_model, tmp_path / "out", formats="pt2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"patches": 5}, "patch 5 was not trained for"),
        ({"patches": []}, "at least one"),
        ({"patches": [(4, 4, 4)]}, "one for each of 2 axes"),
        ({"formats": "onxx"}, r"format is 'onxx'.*did you mean 'onnx'"),
        ({"formats": []}, "at least one of onnx, pt2, aoti"),
        ({"grid": (4, 4)}, "patch 8 does not fit axis 0 of 4 cells"),
        ({"units": {"c": "K"}}, "unit is given for 'c'; the fields are a, b"),
    ],
)
def test_mistakes(quick, small_model, tmp_path, options, said):
    with pytest.raises(ot.OvertoneError, match=said):
        ot.export(small_model, tmp_path / "out", **({"formats": "pt2"} | options))
    assert list(tmp_path.iterdir()) == []


def test_ckm_at_a_patch_it_was_not_trained_for(quick, make_model, make_domain, tmp_path):
    model = make_model(make_domain((32, 32)), tokenizer="ckm", patches=(4, 8))
    with pytest.raises(ot.PatchError, match="patch 6 was not trained for; this model knows 4, 8"):
        ot.export(model, tmp_path / "out", patches=6, formats="pt2")
    found = ot.export(model, tmp_path / "out", patches=6, formats="pt2", allow_untrained=True)
    assert found["programs"][0]["difference"] < 1e-5


def test_another_grid(quick, small_model, tmp_path):
    found = ot.export(small_model, tmp_path / "out", patches=8, formats="pt2", grid=(32, 24))
    assert found["domain"]["shape"] == [32, 24]
    assert found["inputs"][0]["shape"] == ["batch", 3, 2, 32, 24]


def test_models_without_patches_are_one_program(quick, make_domain, tmp_path):
    unet = ot.baseline("unet", domain=make_domain(), context=2, size="mini", width=4, levels=1)
    found = ot.export(unet, tmp_path / "out", patches=[4, 8], formats="pt2")
    assert [p["file"] for p in found["programs"]] == ["step.pt2"]
    assert not any(found["shift"])


def test_models_that_are_elsewhere_or_not_ours(quick, small_model, make_model, tmp_path):
    with pytest.raises(ExportError, match=r"float64 on 'cpu'.*\.float\(\)"):
        ot.export(make_model().double(), tmp_path / "out", formats="pt2")
    with pytest.raises(ExportError, match="is a Linear; expected a model of Overtone's"):
        ot.export(torch.nn.Linear(2, 2), tmp_path / "out", formats="pt2")
    with pytest.raises(ot.CheckpointError, match="does not exist"):
        ot.export("shear-flow-mini-scm", tmp_path / "out", formats="pt2")


def test_a_model_in_training_stays_in_training(quick, make_model, make_domain, tmp_path):
    model = make_model(make_domain((32, 32)), drop_path=0.5).train()
    found = ot.export(model, tmp_path / "out", patches=8, formats="pt2")
    assert found["programs"][0]["difference"] < 1e-5
    assert model.training


def test_a_window_of_the_users(quick, small_model, make_window, tmp_path):
    window = make_window(small_model.domain, frames=4)
    found = ot.export(small_model, tmp_path / "out", patches=8, formats="pt2", window=window)
    assert found["verified"]["window"] == "given by the user"
    with pytest.raises(ExportError, match="2 frames; programs read exactly 3"):
        ot.export(small_model, tmp_path / "out", formats="pt2", window=window.last(2))
    with pytest.raises(ExportError, match="grid="):
        ot.export(small_model, tmp_path / "out", formats="pt2", window=window, grid=(32, 32))


def test_progress_reaches_its_end(quick, small_model, tmp_path):
    seen = []
    ot.export(
        small_model, tmp_path / "out", formats="pt2", progress=lambda *what: seen.append(what)
    )
    done = [step for step, _, _ in seen]
    assert done == sorted(done)
    assert seen[-1] == (6, 6, "done")
    assert (0, 6, "patch-4: tracing") in seen


def test_it_is_a_function_whatever_is_imported():
    """A package of that name would take its place."""
    assert ot.export is run.export
    assert [*inspect.signature(ot.export).parameters][:3] == ["model", "out", "patches"]
