"""The pictures of docs/data: one trajectory of every built-in system, drawn like `data show` does.

python benchmarks/pictures.py [--only shear_flow ...] [--out docs/data]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.progress import track

from overtone.report.figures.data import picture
from overtone.solvers import SYSTEMS
from overtone.solvers.datasets import generate

FRAMES = {
    "turbulent_radiative_layer_2D": 101,
    "supernova_explosion": 59,
    "turbulence_gravity_cooling": 50,
    "active_matter": 81,
}
"""As many as The Well's dataset of that name has; 200 where there is none."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--out", type=Path, default=Path("docs/data"))
    options = parser.parse_args()
    for name in track(options.only, description="drawing"):
        with tempfile.TemporaryDirectory() as folder:
            steps = FRAMES.get(name, 200)
            generate(SYSTEMS[name](), folder, trajectories=1, steps=steps, splits=(1, 0, 0))
            target = options.out / f"{name.lower()}.png"
            target.unlink(missing_ok=True)  # drawn before pictures said whose they are
            picture(folder, target)


if __name__ == "__main__":
    main()
