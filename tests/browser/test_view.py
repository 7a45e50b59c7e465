"""The viewer's page in a real browser: `make test-browser`.

The browser is the machine's; Playwright only drives it.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import overtone as ot

pytestmark = pytest.mark.browser
pytest.importorskip("playwright.sync_api")

MODEL = "shear-flow-mini-csm"


def environment():
    return os.environ | {"PYTHONPATH": str(Path(ot.__file__).parents[1])}


@pytest.fixture(scope="module")
def address():
    """A server with the packaged model beside one that needs no training."""
    command = [sys.executable, "-m", "overtone", "view", MODEL, "--model", "persistence",
               "--schedule", "16", "--no-open", "--port", "0"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            for line in process.stdout:  # pyright: ignore[reportOptionalIterable]
                if found := re.search(r"http://\S+", line):
                    break
            else:
                pytest.fail(process.stderr.read())
            yield found[0]
        finally:
            process.terminate()


def wait(page, condition, seconds=60):
    """Until something holds; the page's policy forbids Playwright's own way, which is eval."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"it never came to {condition}"
        page.wait_for_timeout(30)


def shown(page):
    return page.evaluate("overtone.shown")


def forward(page, count):
    page.evaluate(
        f"(async () => {{ for (let i = 0; i < {count}; i++) await overtone.forward(); }})()"
    )


def curve(page, name, lane=0):
    return page.evaluate(
        f"overtone.history.upTo(1e9).map((p) => p.lanes[{lane}].{name}).filter((v) => v !== null)"
    )


def steered(page, schedule, lane=0):
    wait(page, f"overtone.lanes[{lane}].schedule === '{schedule}'")


def test_the_page_loads_and_plays_by_itself(visit, address):
    page = visit(address, still=False)
    wait(page, "overtone.shown >= 12")
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    step = shown(page)
    assert f"step {step}" in page.inner_text("#clock")
    assert len(page.query_selector_all(".panel")) == 3
    colours = page.evaluate(
        "[...document.querySelectorAll('.panel canvas')].map((c) => new Set(new Uint32Array("
        "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"
    )
    assert min(colours) > 20  # fields, and no empty boxes


def test_a_patch_switched_while_it_runs_changes_the_seams(visit, address):
    page = visit(address)
    page.select_option("#speed", "1000")
    page.click("#play")
    wait(page, "overtone.shown >= 12")
    page.click(".lane .buttons >> text=4-8-16")
    steered(page, "4-8-16")
    page.click(".lane .buttons >> text=shift")
    steered(page, "4-8-16+shift")
    switched = shown(page)
    wait(page, f"overtone.shown >= {switched + 12}")
    page.click("#play")
    seams = curve(page, "seams")
    before, after = seams[4 : switched - 2], seams[switched + 4 :]
    assert len(before) >= 4
    assert len(after) >= 4
    assert sum(after) / len(after) < sum(before) / len(before) - 2  # dB
    patches = {tuple(p) for p in curve(page, "patch")[switched:]}
    assert len(patches) == 3


def test_the_brush_perturbs_and_reset_undoes_it(visit, address):
    page = visit(address)
    forward(page, 2)
    frame = "overtone.ask({type: 'exact', lane: 0}).then((a) => Array.from(a.planes[0].data))"
    before = page.evaluate(frame)
    touch = "getComputedStyle(document.querySelector('.panel:nth-child(2) canvas')).touchAction"
    assert page.evaluate(touch) == "auto"  # a finger on a field scrolls the page
    page.keyboard.press("b")
    assert page.is_checked("#paint")
    assert page.evaluate(touch) == "none"  # and paints
    page.click(".panel:nth-child(2) canvas", position={"x": 40, "y": 60})
    wait(page, "overtone.frame.lanes[0].pushed")
    after = page.evaluate(frame)
    cells = len(before) // 4
    changed = [
        sum(
            a != b
            for a, b in zip(before[n * cells :][:cells], after[n * cells :][:cells], strict=True)
        )
        for n in range(4)
    ]
    assert changed[3] > 10  # velocity_z, which is shown
    assert changed[:3] == [0, 0, 0]
    assert "changed by hand" in page.inner_text("#status")
    forward(page, 1)
    page.click("#reset")
    wait(page, "overtone.shown === 0 && !overtone.frame.lanes[0].pushed")
    forward(page, 2)
    assert page.evaluate(frame) == before


def test_side_by_side_agrees_with_a_rollout(visit, address):
    page = visit(address)
    page.click("#compare")
    wait(page, "overtone.lanes.length === 2")
    assert len(page.query_selector_all(".panel")) == 6
    page.select_option(".lane:nth-child(2) select", "0")
    wait(page, "overtone.lanes[1].model === 0")
    page.fill(".lane:nth-child(2) input[type=text]", "bursts:16:4:3+shift")
    page.press(".lane:nth-child(2) input[type=text]", "Enter")
    steered(page, "bursts:16:4:3+shift", lane=1)
    forward(page, 7)
    found = page.evaluate("({ ...overtone.opened, context: overtone.hello.data.context })")
    frames = [
        page.evaluate(
            f"overtone.ask({{type: 'exact', lane: {n}}}).then((a) => Array.from(a.planes[0].data))"
        )
        for n in (0, 1)
    ]

    import torch

    from overtone.cli.view import _generated
    from overtone.data import WellFolder
    from overtone.progress import Terminal

    data, _ = _generated((MODEL,), Terminal(quiet=True))
    model = ot.load(MODEL)
    folder = WellFolder(data, "test", found["context"], coarsen=2)
    window = folder.frames(found["trajectory"], found["start"], found["context"])
    window = ot.Window(window.fields[None], window.domain)
    for schedule, frame in zip(("16", "bursts:16:4:3+shift"), frames, strict=True):
        *_, last = ot.rollout(model, window, steps=7, schedule=schedule)
        torch.testing.assert_close(torch.tensor(frame), last.flatten(), rtol=0, atol=1e-6)


def test_a_model_without_patches_beside_one_with_them(visit, address):
    page = visit(address)
    page.click("#compare")
    wait(page, "overtone.lanes.length === 2")
    forward(page, 3)
    titles = [panel.inner_text() for panel in page.query_selector_all(".panel figcaption")]
    assert titles[1].split() == ["A", "16", "·", MODEL]
    assert titles[4].split() == ["B", "persistence"]  # and no schedule, which it does not follow
    second = page.query_selector(".lane:nth-child(2)")
    assert "has no patches" in second.inner_text()
    assert not second.query_selector(".buttons")
    assert [v is None for v in curve(page, "tokens", 0)] == [False] * 3
    assert curve(page, "tokens", 1) == []
    still = page.evaluate("overtone.history.upTo(1e9).map((p) => p.persistence)")
    assert curve(page, "error", 1) == still
    page.click("#compare")
    wait(page, "overtone.lanes.length === 1")
    forward(page, 3)
    # The yardstick is within the axis, and does not lie flat on its upper edge.
    assert page.evaluate("overtone.curves.error.y[1]") > max(still)


def test_pointing_at_a_cell_reads_all_panels(visit, address):
    page = visit(address, "narrow")
    page.click("#compare")
    wait(page, "overtone.lanes.length === 2")
    forward(page, 2)
    page.hover(".panel:nth-child(2) canvas", position={"x": 3, "y": 3})
    assert re.fullmatch(r"x 0\.0\d+, y (1\.9|2)\d*", page.inner_text("#reading"))
    notes = page.query_selector_all(".panel figcaption i")
    number = [float(note.inner_text().replace("−", "-")) for note in notes]
    assert number[1] - number[0] == pytest.approx(number[2], abs=1e-2 * abs(number[0]))
    assert number[1] - number[4] == pytest.approx(number[3], abs=1e-2 * abs(number[0]))
    forward(page, 4)  # the pointer rests, and the numbers are those of the new step
    before, number = number, [float(note.inner_text().replace("−", "-")) for note in notes]
    assert number[0] != before[0]
    assert number[1] - number[0] == pytest.approx(number[2], abs=1e-2 * abs(number[0]))
    # Titles give way to numbers, of which every digit is seen.
    for caption in page.query_selector_all(".panel figcaption"):
        box, note = caption.bounding_box(), caption.query_selector("i").bounding_box()
        assert note["x"] + note["width"] <= box["x"] + box["width"] + 0.5
    page.mouse.move(1, 1)
    assert [page.inner_text("#reading"), *(n.inner_text() for n in notes)] == [""] * 7


def test_keys_are_for_the_control_that_was_reached_by_them(visit, address):
    page = visit(address)
    page.focus("#strength")
    before, step = float(page.input_value("#strength")), shown(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert float(page.input_value("#strength")) > before + 0.4
    page.focus("#compare")
    page.keyboard.press("Space")
    wait(page, "overtone.lanes.length === 2")
    assert shown(page) == step
    assert not page.evaluate("overtone.playing")
    page.click("#compare")  # with a pointer, after which space plays
    wait(page, "overtone.lanes.length === 1")
    page.keyboard.press("Space")
    wait(page, "overtone.shown > 2")
    assert page.evaluate("overtone.playing && overtone.lanes.length === 1")


def test_a_wrong_schedule_is_said_at_its_lane(visit, address):
    page = visit(address)
    page.fill(".lane input[type=text]", "5")
    page.press(".lane input[type=text]", "Enter")
    page.wait_for_selector(".lane .wrong:has-text('does not know patch 5')")
    forward(page, 1)
    assert shown(page) == 1
    assert page.evaluate("document.activeElement.type") == "text"  # to be put right
    page.fill(".lane input[type=text]", " 8 ")
    page.press(".lane input[type=text]", "Enter")
    steered(page, "8")
    wait(page, "document.activeElement === document.body")  # keys are the page's again
    assert page.input_value(".lane input[type=text]") == "8"
    assert page.inner_text(".lane .wrong") == ""


def test_what_stops_says_so_on_the_page_while_the_other_goes_on(visit, address):
    page = visit(address)
    page.click("#compare")
    wait(page, "overtone.lanes.length === 2")
    page.fill(".lane input[type=text]", "explicit:8-8-8")
    page.press(".lane input[type=text]", "Enter")
    steered(page, "explicit:8-8-8")
    page.click("#play")
    wait(page, "overtone.shown >= 6")
    page.click("#play")
    assert re.search(r"^A stopped: .*has 3 steps", page.inner_text("#status"))
    veils = [v.inner_text() for v in page.query_selector_all(".panel .veil") if v.is_visible()]
    # What a lane ended with is not compared with the truth of later steps.
    assert veils == ["stopped", "stopped", "one has stopped"]
    wait(page, "!overtone.busy")
    assert [len(curve(page, "error", lane)) for lane in (0, 1)] == [1 + 3, 1 + shown(page)]


def test_what_runs_off_leaves_the_other_lane_its_scale(visit, address):
    page = visit(address)
    page.click("#compare")
    wait(page, "overtone.lanes.length === 2")
    forward(page, 5)
    limits = (
        "({ limit: overtone.panels.limit, "
        "range: overtone.frame.scale.high - overtone.frame.scale.low })"
    )
    push = (
        "overtone.ask({type: 'push', lane: 1, field: 3, cell: [32, 32], radius: 64, strength: 5})"
    )
    page.evaluate(f"{push}.then(() => {push}).then((frame) => overtone.accept(frame))")
    wait(page, "overtone.frame.lanes[1].pushed")
    found = page.evaluate(limits)
    assert found["limit"] < 0.3 * found["range"]
    alone = "overtone.panels.fields.lanes[0].residual.reduce((m, v) => Math.max(m, Math.abs(v)), 0)"
    assert found["limit"] < 5 * page.evaluate(alone)


def test_curves_of_many_steps_take_as_few_strokes_as_pixels_need(visit, address):
    """So that it is fluent after thousands of steps; a single jump is still drawn."""
    page = visit(address)
    forward(page, 2)
    found = page.evaluate(
        """() => {
          const { history, curves } = overtone, last = history.points.get(2);
          const point = (step, seams) => ({ ...last, step, lanes: [{ ...last.lanes[0], seams }] });
          for (let step = 3; step <= 20000; step++) {
            history.points.set(step, point(step, Math.sin(step)));
          }
          history.points.set(7777, point(7777, 40));
          overtone.head = 20000;
          const stroke = CanvasRenderingContext2D.prototype.lineTo, places = [];
          CanvasRenderingContext2D.prototype.lineTo = function (x, y) {
            places.push([this.canvas === curves.seams.canvas, y]);
            stroke.call(this, x, y);
          };
          overtone.drawCurves();
          const jump = curves.seams.py(40);
          return { places: places.length, width: curves.seams.box.width,
            jumps: places.filter(([own, y]) => own && Math.abs(y - jump) < 0.01).length };
        }"""
    )
    # Error, persistence, the expected error and both edges of its band, seams, tokens, ms.
    assert 1000 < found["places"] < 8 * 4 * (found["width"] + 1) + 500
    assert found["jumps"] == 1


def test_what_decides_for_itself_is_typed_and_its_estimate_named(visit, address):
    page = visit(address)
    legend = page.locator(".legend >> text=expected error")
    forward(page, 2)
    wait(page, "overtone.shown >= 2")
    assert legend.is_visible()  # the packaged model is calibrated, so that it is told at first
    page.uncheck("#estimate")
    wait(page, "document.querySelector('.legend span:has(.le)').hidden && overtone.shown === 2")
    page.fill(".lane input[type=text]", "adaptive:0.02+shift")
    page.press(".lane input[type=text]", "Enter")
    steered(page, "adaptive:0.02+shift")
    forward(page, 3)
    wait(page, "overtone.shown >= 5")
    assert legend.is_visible()
    assert len(curve(page, "estimate")) == 3
    page.evaluate("overtone.hello.settings.plan = '8+shift'; overtone.showLanes()")  # as of --plan
    page.click(".lane .buttons >> text=plan")
    steered(page, "8+shift")
    wait(page, "document.querySelectorAll('.lane [aria-pressed=true]').length === 3")
    pressed = page.query_selector_all(".lane [aria-pressed=true]")
    assert [button.inner_text() for button in pressed] == ["8", "plan", "shift"]


def test_the_past_replays_and_a_change_there_makes_a_new_future(visit, address):
    page = visit(address)
    forward(page, 6)
    old = curve(page, "error")
    page.evaluate("overtone.goTo(3)")
    assert (shown(page), page.evaluate("overtone.head")) == (3, 6)
    forward(page, 1)  # replayed
    assert page.evaluate("overtone.head") == 6
    page.keyboard.press("ArrowLeft")
    wait(page, "overtone.shown === 3")
    page.keyboard.press("Digit1")  # patch 4
    steered(page, "4")
    assert page.evaluate("overtone.head") == 3
    forward(page, 3)
    new = curve(page, "error")
    assert new[:4] == old[:4]
    assert new[-1] != old[-1]


def test_past_the_end_of_the_data_it_goes_on_and_says_so(visit, address):
    page = visit(address)
    page.evaluate("(async () => { while (overtone.shown < 42) await overtone.forward(20); })()")
    assert "The data ends at step 40" in page.inner_text("#status")
    assert "no truth" in page.inner_text(".panel:nth-child(1)")
    assert page.inner_text(".lane dd") == "–"


def test_a_link_restores_the_state(visit, address):
    page = visit(address)
    forward(page, 4)
    page.keyboard.press("Digit2")
    steered(page, "8")
    forward(page, 3)
    page.select_option("#field", "1")
    wait(page, "overtone.frame.view.field === 1")
    page.uncheck("#grid")
    page.uncheck("#estimate")
    wait(page, "overtone.shown === 7 && !overtone.frame.points[0].lanes[0].estimate")
    page.click("#link")
    wait(page, "location.hash.length > 10")
    where = (
        "({step: overtone.shown, field: overtone.view.field, schedule: overtone.lanes[0].schedule, "
        "grid: overtone.panels.grid, ...Object.fromEntries(['grid', 'estimate'].map((id) => "
        "[`${id}, ticked`, document.getElementById(id).checked]))})"
    )
    exact = "overtone.ask({type: 'exact', lane: 0}).then((a) => Array.from(a.planes[0].data))"
    state, frame = page.evaluate(where), page.evaluate(exact)
    again = visit(page.url)
    wait(again, "overtone.shown === 7")
    assert again.evaluate(where) == state
    assert [v for v in state.values() if v is False] == [False] * 3
    assert curve(again, "estimate") == []
    assert again.evaluate(exact) == frame


def test_pictures_are_saved(visit, address, tmp_path):
    from PIL import Image

    page = visit(address)
    forward(page, 5)
    for button, frames in (("#png", 1), ("#gif", 6)):
        with page.expect_download() as download:
            page.click(button)
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        with Image.open(path) as image:
            assert getattr(image, "n_frames", 1) == frames
            assert min(image.size) > 150
            image.seek(frames - 1)
            colours = image.convert("RGB")
            assert len(colours.getcolors(1 << 24) or ()) > 30
            # The curves are below the fields, drawn in the colour of lane A; so is a colour bar.
            curves = colours.crop((0, colours.height // 2, *colours.size)).getcolors(1 << 24) or ()
            assert sum(count for count, colour in curves if colour == (0, 114, 178)) > 300
            assert len(curves) > 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_nothing_is_wider_than_the_page(visit, address, size, scheme):
    page = visit(address, size, scheme)
    page.keyboard.press("c")
    wait(page, "overtone.lanes.length === 2")
    forward(page, 2)
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert "VRMSE" in page.inner_text("dialog")
