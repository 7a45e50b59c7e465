"""One file without torch and Overtone chooses what Overtone chooses."""

import ast
import importlib.util
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.export.bundle import bundle
from overtone.schedules import parse_schedule

STRINGS = [
    "16",
    "4x8",
    "4-8-16",
    "4x8-8x4-16",
    "dwell:4-8-16:2",
    "warmup:4-4-8-8:16",
    "reverse:16:8-8-4-4:10",
    "bursts:16:4:5",
    "random:4-8-16:0",
    "random:4-8-16:-7",
    "explicit:4-4-16-8-8-4-16-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4",
    "8192",
]
SHIFTS = ["", "+shift", "+shift:random:3", "+shift:stratified:9", "+shift:at:3x5-0x8x2"]
STEPS = 30


@pytest.fixture(scope="module")
def text():
    return bundle()


@pytest.fixture(scope="module")
def bundled(text, tmp_path_factory):
    """The bundle as a module."""
    path = tmp_path_factory.mktemp("bundle") / "rollout_of_an_export.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def chosen(parse, text):
    choices = map(parse(text), range(STEPS))
    return [(choice.patch, choice.shift) for choice in choices]


def test_every_schedule_is_played_alike_without_torch_and_overtone(text, tmp_path):
    (tmp_path / "rollout.py").write_text(text)
    strings = [body + shift for body in STRINGS for shift in SHIFTS]
    code = """
import json, sys
for name in ("torch", "overtone", "onnxruntime"):
    sys.modules[name] = None  # importing it is an error
from rollout import parse_schedule
strings, steps = json.load(sys.stdin)
found = [[(c.patch, c.shift) for c in map(parse_schedule(s), range(steps))] for s in strings]
json.dump(found, sys.stdout)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([strings, STEPS]),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    expected = json.loads(json.dumps([chosen(parse_schedule, text) for text in strings]))
    assert json.loads(done.stdout) == expected


patches = st.lists(st.integers(1, 64), min_size=1, max_size=5).map(lambda p: "-".join(map(str, p)))
seeds = st.integers(-(2**40), 2**40)
bodies = st.one_of(
    patches,
    st.builds("dwell:{}:{}".format, patches, st.integers(1, 9)),
    st.builds("warmup:{}:{}".format, patches, st.integers(1, 64)),
    st.builds("bursts:{}:{}:{}".format, st.integers(1, 64), st.integers(1, 64), st.integers(1, 9)),
    st.builds("random:{}:{}".format, patches, seeds),
)
shifts = st.one_of(
    st.just(""),
    st.just("+shift"),
    st.builds("+shift:{}:{}".format, st.sampled_from(["random", "stratified"]), seeds),
)


@given(body=bodies, shift=shifts)
def test_any_schedule_is_played_alike(bundled, body, shift):
    text = body + shift
    assert chosen(bundled.parse_schedule, text) == chosen(parse_schedule, text)


@pytest.mark.parametrize("wrong", ["4-", "zigzag:4-8", "0", "dwell:4:0", "8+shift:zigzag:1"])
def test_what_is_refused_is_refused_alike(bundled, wrong):
    with pytest.raises(ValueError) as own:
        parse_schedule(wrong)
    with pytest.raises(bundled.OvertoneError) as there:
        bundled.parse_schedule(wrong)
    assert str(there.value) == str(own.value)


def test_it_imports_python_and_numpy_alone(text):
    roots = set()
    for node in ast.walk(ast.parse(text)):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        roots |= {name.partition(".")[0] for name in names}
    assert roots - sys.stdlib_module_names == {"numpy", "onnxruntime"}


def test_every_name_is_defined(text, tmp_path):
    pytest.importorskip("ruff")
    (tmp_path / "rollout.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
