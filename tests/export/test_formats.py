"""Formats: what is missing is said; every kind of model comes out as itself."""

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import overtone as ot
from benchmarks.export_matrix import CASES, Case, measure
from overtone.errors import ExportError
from overtone.export import formats
from overtone.export.program import waves

ROOT = Path(__file__).parents[2]
REFUSED = {"coarse_solver": ("onnx", "pt2"), "ffno": ("onnx",), "afno_net": ("onnx",)}
"""A solver is no graph, and ONNX has no products of complex numbers."""


def misfits(case, kinds):
    """What differs too much, or is refused and should not be, or the other way round."""
    found = measure(case, kinds)
    return {kind: largest for kind, largest in found.items() if not fits(case.model, kind, largest)}


def fits(model, kind, largest):
    """Whether a difference is small, or a refusal is expected."""
    refused = kind in REFUSED.get(model, ())
    if isinstance(largest, str):
        return refused
    if kind == "pt2_at_rest":
        return largest < 1e-6  # of emulators 0, see test_program
    return largest < formats.FORMATS[kind].tolerance and not refused


@pytest.mark.parametrize(
    "case", [Case("afno", 1, "wall", "ckm", "fold"), Case("swin", 2, "open", "fixed", "attend")],
    ids=lambda case: case.name,
)  # fmt: skip
def test_some_models_as_pt2(case):
    assert misfits(case, ["pt2"]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_model_in_every_portable_format(case):
    assert misfits(case, ["onnx", "pt2"]) == {}


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ExportError, match=r"needs onnx, onnxscript, onnxruntime.*overtone\[export\]"
    ):
        formats.require_format("onnx")
    formats.require_format("pt2")


def test_a_missing_compiler_is_said(monkeypatch):
    from torch._inductor import cpp_builder, exc

    def missing():
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    with pytest.raises(ExportError, match="'aoti' needs a C\\+\\+ compiler"):
        formats.require_format("aoti")


def test_warnings_of_the_exporters_are_kept_from_users(recwarn):
    import logging
    import warnings

    level = logging.getLogger("torch.onnx").level
    with formats.quiet():
        warnings.warn("not for users", stacklevel=1)
    assert not recwarn.list
    assert logging.getLogger("torch.onnx").level == level


def rows_of(page, first_cell):
    """Cells of the table whose header begins with a cell."""
    lines = (ROOT / page).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def shown(difference):
    """A cell of the table; empty where nothing was measured."""
    if difference is None:
        return ""
    return "refused" if isinstance(difference, str) else f"{difference:.0e}"


def results(name):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_the_matrix_in_the_docs_is_that_measured():
    measured = results("export_matrix")["cases"]
    rows = [
        [case["model"], str(case["axes"]), case["sides"], case["tokenizer"], case["time"],
         *map(shown, (case["onnx"], case["pt2"], case.get("pt2_at_rest")))]
        for case in measured
    ]  # fmt: skip
    assert rows_of("docs/reference/export.md", "model") == rows
    order = [case["name"] for case in measured]
    assert order == [case.name for case in CASES if case.name in order]
    for part in ("model", "axes", "sides", "tokenizer", "time"):  # each of them at least once
        assert {case[part] for case in measured} == {vars(case)[part] for case in CASES}
    for case in measured:
        for kind in {"onnx", "pt2", "pt2_at_rest"} & {*case}:
            assert fits(case["model"], kind, case[kind]), case["name"]


def test_speed_in_the_docs_is_that_measured():
    rows = [
        [run["way"], str(run["patch"]), f"{1000 * run['cpu_seconds']:.1f} ms",
         f"{run['making']:.0f} s"]
        for run in results("export")["runs"]
    ]  # fmt: skip
    assert rows_of("docs/tutorials/export.md", "way") == rows


@pytest.fixture(scope="module")
def compiled(small_model, tmp_path_factory):
    if shutil.which("c++") is None and shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("aoti") / "programs"
    found = ot.export(small_model, folder, patches=8, formats="aoti")
    assert found["programs"][0]["difference"] < 1e-4
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_machine_code_from_cpp(small_model, compiled, tmp_path):
    """The example in the folder, built by cmake, rolls out what the model rolls out."""
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    where = torch.utils.cmake_prefix_path
    for command in (
        ["cmake", "-S", str(compiled), "-B", "build", f"-DCMAKE_PREFIX_PATH={where}"],
        ["cmake", "--build", "build"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    window = waves(small_model.domain, small_model.context, samples=1, seed=3)
    window.fields.numpy().tofile(tmp_path / "window.bin")
    words = [compiled / "patch-8.aoti.pt2", "window.bin", "frames.bin", "5", "3", "0"]
    subprocess.run([tmp_path / "build" / "rollout", *map(str, words)], cwd=tmp_path, check=True)
    frames = np.fromfile(tmp_path / "frames.bin", dtype=np.float32).reshape(5, 2, 16, 22)
    schedule = "8+shift:at:3x0"
    own = [
        frame[0].numpy() for frame in ot.rollout(small_model, window, steps=5, schedule=schedule)
    ]
    assert np.abs(frames - np.stack(own)).max() < 1e-4


HEADERS = [
    Path(folder) for folder in ("/usr/include/onnxruntime", "/usr/local/include/onnxruntime")
]


@pytest.mark.slow
def test_the_c_example_compiles(exported, tmp_path):
    """Where ONNX Runtime's headers are installed; its Python package has none."""
    found = next((folder for folder in HEADERS if (folder / "onnxruntime_c_api.h").exists()), None)
    if found is None or shutil.which("cc") is None:
        pytest.skip("no headers of ONNX Runtime")
    flags = ["-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{found}"]
    done = subprocess.run(
        ["cc", *flags, str(exported / "rollout.c")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
