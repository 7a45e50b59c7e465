"""`manifest.json` holds what its table of keys says."""

import json
import re
from pathlib import Path

from overtone.programs import manifest

ROOT = Path(__file__).parents[2]


def test_the_keys_are_those_that_are_documented(exported):
    content = json.loads((exported / "manifest.json").read_text())
    rows = re.findall(r"^\| (`.*?`) \|", manifest.__doc__, flags=re.M)  # pyright: ignore[reportCallIssue]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {*content} == documented


def test_shapes_are_those_of_the_programs(exported):
    import onnxruntime

    content = json.loads((exported / "manifest.json").read_text())
    session = onnxruntime.InferenceSession(exported / content["programs"][0]["file"])
    found = [(value.name, value.shape) for value in session.get_inputs()]
    assert found == [(entry["name"], entry["shape"]) for entry in content["inputs"]]
    (output,) = session.get_outputs()
    assert (output.name, output.shape) == (content["output"]["name"], content["output"]["shape"])


def test_the_page_has_the_same_table():
    page = (ROOT / "docs" / "reference" / "export.md").read_text()
    rows = [line for line in manifest.__doc__.splitlines() if line.startswith("|")]
    assert "\n".join(rows) in page
