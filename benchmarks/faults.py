"""How much is tried of what docs/faults.md promises: kills, and fuzzed input.

Runs the tests that kill a short run before each of its file-system events, and the fuzz tests with
many more examples than `make test`, and writes their counts. Any that fails ends it. Run it with

    python benchmarks/faults.py [--examples 20000] [--out results/faults.json]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from outcome import save

from overtone.version import machine

SCENARIOS = {
    "False-True": "a new run",
    "False-False": "a new run where two names can't be exchanged in one step",
    "True-True": "a run that replaces another",
}


def run_tests(*arguments: str, **environment: str) -> list[ElementTree.Element]:
    """The cases of a pytest run, all passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = f"--junitxml={report}", "-o", "junit_family=legacy", "-n", "2"
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        subprocess.run(command, env=os.environ | environment, check=True)  # noqa: S603
        return list(ElementTree.parse(report).getroot().iter("testcase"))  # noqa: S314


def kills() -> dict[str, int]:
    """What a run does -> events before which it was killed, each resumed to equal weights."""
    counts: Counter[str] = Counter()
    for case in run_tests("-m", "slow", "tests/train/test_crash_points.py"):
        scenario = case.attrib["name"].partition("[")[2].rpartition("-")[0]
        (events,) = (p for p in case.iter("property") if p.attrib["name"] == "events")
        counts[SCENARIOS[scenario]] += int(events.attrib["value"])
    return dict(counts)


def fuzzed(examples: int) -> dict[str, int]:
    """Name of a fuzz test -> examples."""
    limits = "--timeout=3000", "-o", "faulthandler_timeout=0"
    cases = run_tests("-m", "fuzz", *limits, "tests", OVERTONE_EXAMPLES=str(examples))
    return {case.attrib["name"]: examples for case in cases if case.find("skipped") is None}


def main() -> None:
    parser = argparse.ArgumentParser(description="what docs/faults.md promises, tried")
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("results/faults.json"))
    options = parser.parse_args()
    content = {
        "command": f"python benchmarks/faults.py --examples {options.examples}",
        "machine": machine(),
        "killed": kills(),
        "fuzzed": fuzzed(options.examples),
    }
    save(options.out, content)


if __name__ == "__main__":
    main()
