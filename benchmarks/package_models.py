"""Take trained models of `overtone reproduce` into the package, with cards, logs and proofs.

Run it after the studies: `python benchmarks/package_models.py`. It writes src/overtone/weights and
results/models.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from overtone.info import machine
from overtone.pretrained import FOLDER
from overtone.reproduce.package import package
from overtone.reproduce.studies import FIXED
from overtone.results import Results

MODELS = {
    "shear-flow-mini": ("csm", "ckm", *FIXED),
    "rayleigh-benard-mini": ("csm",),
    "turbulent-radiative-layer-2d-mini": ("csm",),
    "supernova-explosion-mini": ("csm",),
}
"""Study -> the models of it that are packaged."""


def main(
    runs: Annotated[Path, typer.Option(help="Folder of `overtone reproduce`.")] = Path(
        "runs/reproduce"
    ),
    results: Annotated[Path, typer.Option(help="Folder of its numbers.")] = Path("results"),
    study: Annotated[list[str] | None, typer.Option(help="Only models of this study.")] = None,
) -> None:
    table = results / "models.json"
    proofs = json.loads(table.read_text())["models"] if table.exists() else {}
    for study_name, kinds in MODELS.items():
        if study and study_name not in study:
            continue
        if not (results / f"{study_name}.json").exists():
            print(f"{study_name}: not run yet, so not packaged; overtone reproduce {study_name}")
            continue
        found = Results.load(results / f"{study_name}.json")
        for kind in kinds:
            name = f"{study_name}-{kind}"
            proofs[name] = package(runs / "runs" / name, found, kind, name, FOLDER)
            print(name, proofs[name]["vrmse"])
    content = {
        "command": "python benchmarks/package_models.py",
        "machine": machine(),
        "models": proofs,
    }
    table.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
