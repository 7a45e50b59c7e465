"""How fluent the viewer is, and what it bears: steps a second, memory, many pages, garbage.

Writes results/view.json. The server runs as `overtone view` does, in a process of its own; a real
browser is measured where there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from overtone.progress import Terminal
from overtone.version import machine
from overtone.viewer.messages import MAX_BYTES, unpack

MODEL = "shear-flow-mini-csm"
START = {"type": "open", "trajectory": 0, "start": 28}
OVERSIZED = 1000
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/view.json"))
    parser.add_argument("--steps", type=int, default=5000, help="of the long rollout")
    parser.add_argument("--seconds", type=float, default=60, help="of many pages at once")
    parser.add_argument("--pages", type=int, default=20)
    options = parser.parse_args()
    found: dict[str, Any] = {"command": "python benchmarks/view.py", "machine": machine()}
    found["load_average"] = os.getloadavg()[0]  # others' work on the same cores
    began = time.perf_counter()
    with serving() as (process, port):
        found["ready_after_seconds"] = round(time.perf_counter() - began, 1)
        found["fluency"] = fluency(process, port)
        found["long"] = long_rollout(process, port, options.steps)
        found["garbage"] = garbage(process, port)
        found["pages"] = crowd(process, port, options.pages, options.seconds)
        found["browser_steps_per_second"] = in_a_browser(port)
    options.out.write_text(json.dumps(found, indent=2) + "\n")
    Terminal().print(json.dumps({k: v for k, v in found.items() if k != "machine"}, indent=2))


@contextmanager
def serving():
    """A server as users start it, and its port."""
    command = [sys.executable, "-m", "overtone", "view", MODEL, "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        lines = iter(process.stdout)
        port = next(int(found[1]) for line in lines if (found := re.search(r":(\d+)/", line)))
        try:
            yield process, port
        finally:
            process.terminate()


@contextmanager
def page(port: int):
    """How a page asks."""
    with connect(f"ws://127.0.0.1:{port}/watch", max_size=None) as socket:
        socket.recv()

        def ask(message: object) -> dict[str, Any]:
            socket.send(message if isinstance(message, str) else json.dumps(message))
            answer = socket.recv()
            assert isinstance(answer, bytes)
            return unpack(answer)[0]

        yield ask


def lanes(*schedules: str) -> dict[str, Any]:
    return START | {"lanes": [{"model": 0, "schedule": schedule} for schedule in schedules]}


def fluency(process: subprocess.Popen[str], port: int, count: int = 100) -> dict[str, Any]:
    """Answered steps a second at 64x64, one frame each, without a browser.

    The server's own time on a core says what it would be on a machine that does nothing else.
    """
    found = {}
    for name, schedules in {"16": ("16",), "8": ("8",), "4": ("4",), "8 and 8": ("8", "8")}.items():
        with page(port) as ask:
            ask(lanes(*schedules))
            ask({"type": "step"})
            began, used = time.perf_counter(), core_seconds(process)
            for _ in range(count):
                ask({"type": "step"})
            used = core_seconds(process) - used
            found[name] = {
                "steps_per_second": round(count / (time.perf_counter() - began), 1),
                "server_cpu_ms_per_step": round(1e3 * used / count, 1),
            }
    return found


def long_rollout(process: subprocess.Popen[str], port: int, steps: int) -> dict[str, Any]:
    """Memory of the server in MB while one page goes on and on."""
    sizes = {}
    with page(port) as ask:
        ask(lanes("4-8-16+shift"))
        step = 0
        while step < steps:
            step = ask({"type": "step", "count": 20})["step"]
            sizes[step] = memory(process)
    early = max(size for step, size in sizes.items() if step <= steps // 4)
    return {"steps": step, "mb_first_quarter": early, "mb_end": [*sizes.values()][-1]}


MESSAGES = (
    START | {"lanes": [{"model": 0, "schedule": "8"}]},
    {"type": "step", "count": 1},
    {"type": "back", "step": 0},
    {"type": "steer", "lane": 0, "schedule": "4-8-16"},
    {"type": "look", "view": {"field": 1, "along": 1}},
    {"type": "push", "lane": 0, "field": 0, "cell": [5, 9], "radius": 2.0, "strength": 1.0},
)
VALUES = (None, True, 0, 1, -1, 10**9, 1e308, "", "8", "4-8-16+shift", "plan:x", "../x", "16" * 150,
          [], {}, [[[]]], {"type": "step"}, [1, 2], [1, 2, 3, 4], "\x00é")  # fmt: skip
LETTERS = '{}[]",:0123456789.eE+-truefalsnl type open step back lane schedule \x00é'


def malformed() -> str:
    """Letters of a message in any order, a message that was cut off, or one with a wrong value."""
    kind = random.randrange(4)  # noqa: S311
    if kind == 0:
        return "".join(random.choices(LETTERS, k=random.randrange(200)))  # noqa: S311
    message = dict(random.choice(MESSAGES))  # noqa: S311
    if kind == 1:
        return json.dumps(message)[: -random.randrange(1, 20)]  # noqa: S311
    message[random.choice([*message, "other"])] = random.choice(VALUES)  # noqa: S311
    return json.dumps(message)


def garbage(process: subprocess.Popen[str], port: int, count: int = 5000) -> dict[str, Any]:
    """Malformed messages by the thousand, and oversized ones.

    A value that was put in by chance may be one that the page could have sent: it is answered then.
    """
    random.seed(0)
    answers: Counter[str] = Counter()
    with page(port) as ask:
        for _ in range(count):
            answers[ask(malformed())["type"]] += 1
    closed = 0
    for _ in range(OVERSIZED):
        try:
            with page(port) as ask:
                ask("x" * (5 * MAX_BYTES))
        except ConnectionClosed:
            closed += 1
    with page(port) as ask:
        served = ask(lanes("8"))["type"] == "frame"
    return {
        "malformed": count,
        "refused": answers["error"],
        "answered": answers["frame"],
        "oversized": OVERSIZED,
        "closed": closed,
        "next_page_served": served,
        "mb": memory(process),
    }


def crowd(process: subprocess.Popen[str], port: int, num: int, seconds: float) -> dict[str, Any]:
    """Many pages that all play at once."""
    counts, failures, peak = [0] * num, [], 0.0
    end = time.monotonic() + seconds

    def play(place: int) -> None:
        try:
            with page(port) as ask:
                ask(lanes("8", "4-8-16+shift"))
                while time.monotonic() < end:
                    counts[place] = ask({"type": "step"})["step"]
        except Exception as error:  # whatever it is, it is a finding
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=play, args=(place,)) for place in range(num)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        peak = max(peak, memory(process))
        time.sleep(0.5)
    with page(port) as ask:
        served = ask(lanes("8"))["type"] == "frame"
    return {
        "pages": num,
        "seconds": seconds,
        "failures": failures,
        "fewest_steps": min(counts),
        "most_steps": max(counts),
        "mb_peak": peak,
        "next_page_served": served,
    }


def in_a_browser(port: int, count: int = 150) -> float | None:
    """Steps a second that a headless Chromium has drawn at patch 8, as fast as it goes."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=chromium, args=[*FLAGS])
        with closing(launched) as browser:
            context = browser.new_context(reduced_motion="reduce")
            shown = context.new_page()
            # As long a trajectory as there is, so that truth and curves are drawn, too.
            shown.goto(f"http://127.0.0.1:{port}/#d=0&s=0&n=0&f=3&v=slice.2.0.0&a=0.8")
            shown.wait_for_selector("body[data-ready]")
            shown.select_option("#speed", "1000")
            began = time.perf_counter()
            shown.click("#play")
            while (step := shown.evaluate("overtone.shown")) < count:
                shown.wait_for_timeout(50)
            return round(step / (time.perf_counter() - began), 1)


def core_seconds(process: subprocess.Popen[str]) -> float:
    """What a process has computed for so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: subprocess.Popen[str]) -> float:
    """Resident MB of a process."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", text)
    return round(int(found[1]) / 1024, 1) if found else 0.0


if __name__ == "__main__":
    main()
