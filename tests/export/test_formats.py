"""Formats: what is missing is said; every kind of model comes out as itself."""

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import overtone as ot
from benchmarks import export_matrix as matrix
from benchmarks.export_matrix import CASES, Case, measure, table, written
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


def results(name):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_the_matrix_in_the_docs_is_that_measured():
    measured = results("export_matrix")["cases"]
    page = (ROOT / "docs/reference/export.md").read_text()
    assert written(page, table(measured)) == page
    assert [case["name"] for case in measured] == [case.name for case in CASES]
    for case, own in zip(measured, CASES, strict=True):
        assert {part: case[part] for part in vars(own)} == vars(own)
    for case in measured:
        for kind in ("onnx", "pt2"):
            assert fits(case["model"], kind, case[kind]), case["name"]


def test_the_matrix_has_every_mixing_on_every_boundary_with_every_tokenizer():
    """What a program is said to be equal for: 1D to 3D, and both ways of time among it."""
    emulators = [case for case in CASES if case.tokenizer and case.model != "cvit"]
    places = itertools.product(matrix.MIXING, matrix.SHAPES, matrix.SIDES)
    assert [(case.model, case.axes, case.sides) for case in emulators] == [*places]
    for tokenizer, time in itertools.product(matrix.TOKENIZERS, matrix.TIMES):
        assert any((case.tokenizer, case.time) == (tokenizer, time) for case in emulators)
    for model, tokenizer in itertools.product(matrix.MIXING, matrix.TOKENIZERS):
        assert any((case.model, case.tokenizer) == (model, tokenizer) for case in emulators)


def test_a_table_takes_the_place_of_another():
    case = {"model": "vit", "axes": 1, "sides": "open", "tokenizer": "csm", "time": "fold"}
    rows = table(
        [{**case, "onnx": 2.34e-6, "pt2": "no such operator"}, {**case, "onnx": 0, "pt2": 0.0}]
    )
    assert rows[-2] == "| vit | 1 | open | csm | fold | 2e-06 | refused |"
    assert rows[-1] == "| vit | 1 | open | csm | fold | 0 | 0 |"
    page = f"before\n\n{rows[0]}\n|---|\n| old |\n\nafter\n"
    assert written(page, rows) == "before\n\n" + "\n".join(rows) + "\n\nafter\n"
    assert rows[1].count("---") == rows[0].count("|") - 1


def test_speed_in_the_docs_is_that_measured():
    runs: dict[str, list] = {}
    for run in results("export")["runs"]:
        runs.setdefault(run["way"], []).append(run)
    rows = [
        [way, *(f"{1000 * run['cpu_seconds']:.1f} ms" for run in own), f"{own[1]['making']:.0f} s"]
        for way, own in runs.items()
    ]
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
    require_own_frames(small_model, window, tmp_path / "frames.bin")


def require_own_frames(model, window, path):
    """Five frames at patch 8, whose grid is moved by 3 cells along the first axis."""
    frames = np.fromfile(path, dtype=np.float32).reshape(5, 2, 16, 22)
    rolled = ot.rollout(model, window, steps=5, schedule="8+shift:at:3x0")
    assert np.abs(frames - np.stack([frame[0].numpy() for frame in rolled])).max() < 1e-4


def release_of_onnx_runtime():
    """A release of ONNX Runtime, include/ and lib/, where ONNXRUNTIME_HOME says; else none."""
    home = Path(os.environ.get("ONNXRUNTIME_HOME", "/usr/local/onnxruntime"))
    if not (home / "include" / "onnxruntime_c_api.h").exists() or shutil.which("cc") is None:
        pytest.skip("no release of ONNX Runtime (ONNXRUNTIME_HOME), or no compiler")
    return home


@pytest.mark.slow
def test_the_c_example_rolls_out_what_the_model_does(small_model, exported, tmp_path):
    """Where there is a release of ONNX Runtime; its Python package has no headers."""
    home = release_of_onnx_runtime()
    flags = ["-std=c11", "-Wall", "-Werror", "-Wl,-rpath," + str(home / "lib")]
    where = [f"-I{home / 'include'}", f"-L{home / 'lib'}", "-lonnxruntime"]
    built = tmp_path / "rollout"
    subprocess.run(["cc", str(exported / "rollout.c"), *flags, *where, "-o", built], check=True)
    window = waves(small_model.domain, small_model.context, samples=1, seed=3)
    window.fields.numpy().tofile(tmp_path / "window.bin")
    words = [exported / "patch-8.onnx", "window.bin", "frames.bin", "5", "3", "0"]
    subprocess.run([built, *map(str, words)], cwd=tmp_path, check=True)
    require_own_frames(small_model, window, tmp_path / "frames.bin")
