"""The pictures of the viewer in docs/images, taken of a viewer that runs: `make screenshots`.

A packaged model under two schedules, on data that are simulated on the spot; the browser is the
machine's Chromium, driven as in tests/browser.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "images"
MODEL, SCHEDULES = "shear-flow-mini-csm", ("16", "4-8-16+shift")
START, STEPS, FIELD = 28, 34, 3
PICTURES = {
    "view-wide": ((1280, 969), "light"),
    "view-dark": ((1280, 969), "dark"),
    "view-narrow": ((400, 800), "dark"),
    "view-narrow-light": ((400, 800), "light"),
}
"""Name -> size of the window, and colours."""
CLOSE = "view", {"x": 0, "y": 57, "width": 940, "height": 674}
"""The picture that shows a part of the first one, and which part."""
PORT = 8799


def main() -> None:
    """Start a viewer, take all pictures, end it."""
    from playwright.sync_api import sync_playwright

    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    browser_path = os.environ.get("CHROMIUM") or next(found, None)
    if browser_path is None:
        sys.exit("error: no chromium here; `make test-browser` says how to get it")
    words = [word for schedule in SCHEDULES for word in ("--schedule", schedule)]
    command = ["overtone", "view", MODEL, *words, "--port", str(PORT), "--no-open"]
    viewer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert viewer.stdout is not None
        address = next(line.split()[0] for line in viewer.stdout if line.startswith("http"))
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            for name in PICTURES:
                _take(browser, address, name)
            browser.close()
    finally:
        viewer.terminate()


def _take(browser: Any, address: str, name: str) -> None:
    (width, height), scheme = PICTURES[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    lanes = f"a=0.{SCHEDULES[0]}&b=0.{SCHEDULES[1].replace('+', '%2B')}"
    page.goto(f"{address}#{lanes}&s={START}&f={FIELD}&n={STEPS}")
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    while page.evaluate("overtone.shown") < STEPS:
        page.wait_for_timeout(100)
    page.wait_for_timeout(500)  # the curves are drawn a moment later
    page.screenshot(path=IMAGES / f"{name}.png")
    if name == next(iter(PICTURES)):
        part, clip = CLOSE
        page.screenshot(path=IMAGES / f"{part}.png", clip=clip)
    page.close()


if __name__ == "__main__":
    main()
