"""A recording of the viewer in a real browser: one file from disk, without a server."""

import json
import re
import subprocess
import sys

import pytest

from tests.browser.test_view import MODEL, curve, environment, shown, steered, wait

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "view.html"
    command = [
        sys.executable,
        "-m",
        "overtone",
        "view",
        MODEL,
        "--export",
        str(path),
        "--steps",
        "8",
    ]
    subprocess.run(command, check=True, env=environment(), capture_output=True)
    return path


def test_a_recording_opens_from_disk(visit, recording):
    page = visit(recording.as_uri(), still=False)
    wait(page, "overtone.shown === 8")
    text = recording.read_text()
    stored = json.loads(re.search(r'id="recording">(.*?)</script>', text, flags=re.S)[1])
    page.select_option(".lane select", label=f"{MODEL} · 4")
    steered(page, "4")
    own = next(r for r in stored["rollouts"] if r["schedule"] == "4")
    assert curve(page, "error") == [point["error"] for point in own["points"]]
    page.fill("#scrub", "3")
    wait(page, "overtone.shown === 3")
    page.select_option("#field", "0")
    wait(page, "overtone.frame.view.field === 0")
    assert shown(page) == 3
    assert not page.is_visible("#paint")
    largest = page.evaluate(
        "overtone.panels.fields.lanes[0].residual.reduce((m, v) => Math.max(m, Math.abs(v)), 0)"
    )
    assert largest > 0
