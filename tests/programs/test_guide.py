"""What the folder says to its reader is true of the folder."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import overtone as ot
from overtone.programs.guide import examples, readme
from overtone.programs.manifest import Exported, Source
from overtone.programs.program import waves


def guide(model, *kinds, patch=8):
    programs = [Exported(patch, kind, f"patch-8.{kind}", 1e-6, 1e-4) for kind in kinds]
    return (
        readme(model, model.domain, Source("mine"), programs, {"a": "kg"}),
        examples(model, model.domain, programs),
    )


@pytest.mark.parametrize("sides", ["periodic", "wall", ("wall", "periodic", "open")])
def test_no_place_is_left_open(make_domain, make_model, sides):
    domain = make_domain((8, 10, 12), sides)
    text, files = guide(make_model(domain, patches=(4, 8)), "onnx", "pt2", "aoti")
    assert {*files} == {"rollout.c", "rollout.cpp", "CMakeLists.txt"}
    for content in (text, *files.values()):
        assert not re.search(r"@[A-Za-z_]+@", content)
    takes = sides != "wall"
    assert f"if ({str(takes).lower()}) inputs.push_back(shift)" in files["rollout.cpp"]
    assert f"inputs, {2 if takes else 1}, output_names" in files["rollout.c"]
    assert "{1, CONTEXT, FIELDS, 8, 10, 12}" in files["rollout.c"]
    assert "CELLS = 960" in files["rollout.c"]


def test_only_what_was_written_is_explained(small_model):
    text, files = guide(small_model, "pt2")
    assert "## pt2" in text
    assert "ONNX" not in text.partition("## pt2")[2]
    assert "AOTInductor" not in text
    assert not files
    assert "a [kg], b" in text
    assert "periodic along axis 0, wall along axis 1" in text


def test_code_blocks_are_ten_lines(small_model):
    text, _ = guide(small_model, "onnx", "pt2", "aoti")
    for kind, lines in (("python", 10), ("cpp", 11)):
        blocks = re.findall(rf"```{kind}\n(.*?)```", text, flags=re.S)
        assert blocks
        assert all(len(block.strip().splitlines()) <= lines for block in blocks)


def test_the_python_of_the_readme_runs(exported, small_model, tmp_path):
    text = (exported / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    np.save(tmp_path / "window.npy", waves(small_model.domain, 3, samples=1).fields.numpy())
    code = (
        f"import sys; sys.path.insert(0, {str(exported)!r}); sys.modules['torch'] = None\n{block}"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 10
    assert 'schedule="4-8"' in block  # the wall allows no shifts


def test_the_manifest_knows_the_domain(exported):
    content = json.loads((exported / "manifest.json").read_text())
    assert ot.Domain(**content["domain"]).boundaries[1] == ("wall", "wall")
