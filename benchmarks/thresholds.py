"""What the thresholds of `overtone diagnose` are worth: false alarms, and what is found.

Residuals without a grid (white noise, red noise of several slopes, one flow against another) are
searched as `diagnose` does it, for a period and for seams. Each alarm is a false one. Then known
artifacts of patches 4, 8 and 16 are added to red noise at several amplitudes:

- lines: the same comb of grid lines in every patch;
- energy: noise on the first cells of patches, so that only its size repeats;
- seams: every patch is off by a number of its own, of random sign.

An artifact counts as found if its period is right along both axes, as found in part if it has a
divisor of it or none along some axis, and as wrong if anything else is said. Amplitudes are
standard deviations over that of the noise. Run it with

    python benchmarks/thresholds.py [--quick] [--out results/thresholds.json]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from outcome import save
from rich.console import Console
from rich.progress import track
from torch import Tensor

from overtone.evaluate.diagnose import choose
from overtone.metrics import Period, Seams, find_period, find_seams
from overtone.metrics.artifacts import thresholds
from overtone.metrics.spectrum import wavenumber_norm
from overtone.solvers import ShearFlow
from overtone.version import machine

SEED = 0
GRID = (64, 64)
FRAMES = 4
"""Frames that are searched together."""
SLOPES = (0, 2, 3, 4, 6)
"""Of the power spectra k^-slope without a grid; 0 is white noise."""
QUIET = 80
"""Residuals without a grid of each kind."""
FLOWS = 16
"""Flows; residuals are the differences of two of them at one time."""
SLOPE = 4
"""Of the noise that artifacts are added to."""
PATCHES = (4, 8, 16)
AMPLITUDES = (0.003, 0.01, 0.03, 0.1)
REPEATS = 10
"""Residuals with a grid of each kind, patch and amplitude."""

VERDICTS = ("found", "part", "wrong")


def search(residual: Tensor) -> tuple[Period, Seams]:
    """What `diagnose` looks for in residuals `(B, *GRID)`."""
    return find_period(residual, ndim=2), find_seams(residual, ndim=2)


def noise(slope: float, random: torch.Generator, num: int = FRAMES) -> Tensor:
    """Gaussian fields `(num, *GRID)` of unit variance with power k^-slope."""
    scale = wavenumber_norm(GRID).clamp(min=1 / max(GRID)) ** (-slope / 2)
    white = torch.randn(num, *GRID, generator=random, dtype=torch.float64)
    field = torch.fft.ifft2(torch.fft.fft2(white) * scale).real
    return field / field.std()


def flow_residuals(num: int) -> Iterator[Tensor]:
    """Differences `(C, *GRID)` of flows that started differently, at several times."""
    flow = ShearFlow(shape=GRID, reynolds=5e3, dt=0.5)
    frames = [*flow.trajectory(FLOWS, 13, seed=SEED)][4::4]
    pairs = [(i, j) for i in range(FLOWS) for j in range(i)]
    residuals = [frame[i] - frame[j] for i, j in pairs for frame in frames]
    step = max(1, len(residuals) // num)
    yield from (residual / residual.std() for residual in residuals[::step][:num])


def grid_lines(patch: int) -> Tensor:
    """1 on the first cell of every patch along any axis, 0 elsewhere."""
    first = torch.arange(GRID[0]) % patch == 0
    return (first[:, None] | first).double()


def comb(patch: int, random: torch.Generator) -> Tensor:
    """The same grid lines in every frame."""
    return grid_lines(patch).expand(FRAMES, *GRID)


def loud_edges(patch: int, random: torch.Generator) -> Tensor:
    """Noise on the grid lines."""
    return grid_lines(patch) * noise(0, random)


def blocks(patch: int, random: torch.Generator) -> Tensor:
    """A number of its own in every patch."""
    counts = [n // patch for n in GRID]
    off = torch.randn(FRAMES, *counts, generator=random, dtype=torch.float64)
    return off.repeat_interleave(patch, 1).repeat_interleave(patch, 2)


ARTIFACTS: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    "lines": comb,
    "energy": loud_edges,
    "seams": blocks,
}


def false_alarms(num: int) -> list[dict[str, Any]]:
    """How often either search says something of residuals without a grid, kind by kind."""
    random = torch.Generator().manual_seed(SEED)
    kinds: dict[str, Iterator[Tensor]] = {
        f"k^-{slope}" if slope else "white": (noise(slope, random) for _ in range(num))
        for slope in SLOPES
    }
    kinds["flows"] = flow_residuals(num)
    rows = []
    for kind, residuals in track(kinds.items(), description="false alarms"):
        found = [search(residual) for residual in residuals]
        period, seams = (sum(bool(entry[i].sizes) for entry in found) for i in (0, 1))
        rows.append({"residual": kind, "searched": len(found), "period": period, "seams": seams})
    return rows


def detections(num: int) -> list[dict[str, Any]]:
    """How often known artifacts are found with their period, a part of it, or a wrong one."""
    random = torch.Generator().manual_seed(SEED + 1)
    rows = []
    cases = [(kind, patch) for kind in ARTIFACTS for patch in PATCHES]
    for kind, patch in track(cases, description="artifacts"):
        rates: dict[str, list[float]] = {verdict: [] for verdict in VERDICTS}
        for amplitude in AMPLITUDES:
            verdicts = [_verdict(kind, patch, amplitude, random) for _ in range(num)]
            for verdict, rate in rates.items():
                rate.append(verdicts.count(verdict) / num)
        rows.append({"artifact": kind, "patch": patch, **rates})
    return rows


def _verdict(kind: str, patch: int, amplitude: float, random: torch.Generator) -> str:
    """What is told of one artifact in red noise: found, part, wrong or nothing."""
    artifact = ARTIFACTS[kind](patch, random)
    found = search(noise(SLOPE, random) + amplitude * artifact / artifact.std())
    sizes = choose(*found, asked=False).sizes
    if not sizes:
        return "nothing"
    if sizes == (patch, patch):
        return "found"
    return "part" if all(patch % size == 0 for size in sizes) else "wrong"


def values() -> dict[str, Any]:
    """The thresholds that were measured."""
    return {name: value for name, value in vars(thresholds).items() if name.isupper()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the residuals")
    parser.add_argument("--out", type=Path, default=Path("results/thresholds.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    share = 10 if options.quick else 1
    began = time.process_time()
    quiet, loud = false_alarms(QUIET // share), detections(REPEATS // share)
    content = {
        "command": "python benchmarks/thresholds.py" + (" --quick" if options.quick else ""),
        "seed": SEED,
        "machine": machine(),
        "config": {"grid": GRID, "frames": FRAMES, "slope": SLOPE, "repeats": REPEATS // share},
        "thresholds": values(),
        "amplitudes": AMPLITUDES,
        "false_alarms": quiet,
        "detections": loud,
        "cpu_seconds": round(time.process_time() - began),
    }
    save(options.out, content, indent=1)
    Console().print(f"wrote {options.out} after {content['cpu_seconds']} CPU seconds")


if __name__ == "__main__":
    main()
