"""`overtone view` as it is typed: what it starts with, what it refuses, what it writes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("h5py")
pytest.importorskip("starlette")

import overtone as ot
from overtone.cli import demo, view
from overtone.evaluate import Candidate
from overtone.train.recipes import recipe
from overtone.train.settings import change
from overtone.viewer.server import listen

SMALL = {
    "data.generate.grid": [32, 32],
    "data.generate.settings": {"reynolds": 500.0},
    "data.coarsen": 1,
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where the data is generated, once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def world(tmp_path, cache, monkeypatch):
    """A model of the recipe, and small data for it when it is asked for none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OVERTONE_CACHE", str(cache))
    monkeypatch.setattr(demo, "recipe", lambda name: change(recipe(name), SMALL))
    monkeypatch.setattr("overtone.train.recipes.DEVELOPED", 4)
    fields = ("tracer", "pressure", "velocity_x", "velocity_z")
    domain = ot.Domain((32, 32), (1.0, 2.0), "periodic", fields, 0.1)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2, "domain": domain}
    model = ot.build("axial", tokenizer="csm", patches=(4, 8), **small)
    model.save(tmp_path / "model", training={"recipe": "shear-flow-mini", "seed": 0})
    return tmp_path


def recording(path):
    found = re.search(r'id="recording">(.*?)</script>', path.read_text(), flags=re.S)
    return json.loads(found[1])


def test_a_recording_of_generated_data(overtone, world, cache):
    code, text = overtone("view", "model", "--export", "view.html", "--steps", 3)
    assert code == 0, text
    assert re.search(r"wrote view.html, \d\.\d MB", text)
    found = recording(world / "view.html")
    assert [r["schedule"] for r in found["rollouts"]] == ["4", "8", "4-8", "4-8+shift"]
    assert (found["steps"], found["start"]) == (3, 2)
    settings = found["hello"]["settings"]
    assert [lane["schedule"] for lane in settings["lanes"]] == ["8", "4-8+shift"]
    assert settings["field"] == 3
    data = next((cache / "data").iterdir())

    code, text = overtone(
        "view", "one=model", data, "--model", "two=model", "--model", "persistence",
        "--schedule", "8+shift", "--schedule", "4", "--schedule", "8", "--field", "tracer",
        "--export", "b.html", "--steps", 2, "--trajectory", 1,
    )  # fmt: skip
    assert code == 0, text
    found = recording(world / "b.html")
    tracks = [(r["model"], r["schedule"]) for r in found["rollouts"]]
    assert tracks == [(0, "8+shift"), (1, "4"), (2, "8")]
    assert (found["trajectory"], found["start"]) == (1, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--field", "colour"), "field is 'colour'"),
        (("--schedule", "5"), "does not know patch 5"),
        (("--trajectory", "9"), "trajectory 9"),
        (("--start", "900"), "start is frame 900"),
        (("--steps", "0"), "--steps"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_two(overtone, world, options, said):
    code, text = overtone("view", "model", "--export", "view.html", "--steps", 2, *options)
    assert code == 2
    assert said in text
    assert "Traceback" not in text
    assert not (world / "view.html").exists()


def test_data_must_be_named_where_none_can_be_generated(overtone, world):
    model = ot.Emulator.from_pretrained("model")
    model.save("other")
    code, text = overtone("view", "other")
    assert code == 2
    assert "name a Well folder behind the model" in text


def test_a_used_port_is_one_message(overtone, world):
    with listen("127.0.0.1", 0) as bound:
        code, text = overtone("view", "model", "--no-open", "--port", bound.getsockname()[1])
    assert code == 2
    assert "is in use" in text


def test_addresses_are_those_that_others_can_type(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "lab")
    hosts = ("0.0.0.0", "::", "127.0.0.1", "::1", "10.0.0.7", "lab.example")
    found = [view._reachable(host) for host in hosts]
    assert found == ["lab", "lab", "127.0.0.1", "[::1]", "10.0.0.7", "lab.example"]


def test_lanes_to_begin_with():
    class Fake:
        def __init__(self, *patches):
            self.patches = patches
            self.domain = ot.Domain((32, 32), (1.0, 1.0), "periodic", ("a",))

    flexible, fixed = Candidate("a", Fake(4, 8, 16)), Candidate("b", Fake(8))
    assert view.tracks([flexible], None) == [(0, "16"), (0, "4-8-16+shift")]
    assert view.tracks([fixed], None) == [(0, "8")]
    assert view.tracks([flexible, fixed], None) == [(0, "4-8-16+shift"), (1, "8")]
    assert view.tracks([flexible, fixed], ["4", "8"]) == [(0, "4"), (1, "8")]
    assert view.tracks([flexible, fixed], ["4"]) == [(0, "4")]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_it_serves_and_ends_cleanly_with_ctrl_c(overtone, world, cache):
    overtone("view", "model", "--export", "view.html", "--steps", 1)
    data = next((cache / "data").iterdir())
    command = [sys.executable, "-m", "overtone", "view", "model", str(data), "--no-open"]
    with subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(ot.__file__).parents[1])},
    ) as process:  # fmt: skip
        try:
            first = next((line for line in process.stdout if "http" in line), "")  # pyright: ignore[reportOptionalIterable]
            assert re.search(r"http://127\.0\.0\.1:\d+/  \(Ctrl-C ends it\)", first), first
            assert "token" not in first
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=200)
        finally:
            process.kill()  # or leaving the block would wait for it
    assert process.returncode == 0, err
    assert "ended" in out
    assert "Traceback" not in err
