"""A browser for the tests: that of the machine; Playwright only drives it."""

import os
import re
import shutil

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")
"""What it may be called: `make test-browser` looks for the same."""
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
SIZES = {"wide": (1280, 900), "narrow": (400, 800)}


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("there is no chromium here; `make test-browser` says how to get it")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Open a page; at the end nothing was complained about and nobody else was asked."""
    contexts, said, asked = [], [], []

    def open_page(url, size="wide", scheme="light", still=True):
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce" if still else "no-preference",
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.goto(url)
        page.wait_for_selector("body[data-ready]", timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    here = re.compile(r"(?:https?|ws)://127\.0\.0\.1[:/]|file:|blob:|data:")
    assert [url for url in asked if not here.match(url)] == []
