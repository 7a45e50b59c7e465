"""Which models can be exported, and how far their programs are from them after ten steps.

Every kind of spatial mixing on every kind of boundary in one, two and three dimensions, with each
tokenizer and both ways of time in turn; then the baselines and CViT. The models are small and
untrained, with outputs ten times as large as usual, so that ten steps lead somewhere. Each program
is written, loaded again and rolled out beside its model, from one sample and from three, with
another shift at every step. Run it with

    python benchmarks/export_matrix.py [NAME ...] [--out results/export_matrix.json]

Names, or beginnings of names such as `vit-2d`, choose some. What earlier runs measured, format
by format, is kept, and taken anew if it is asked for by name. The table of
`docs/reference/export.md` is written with them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch

import overtone as ot
from overtone.errors import OvertoneError
from overtone.export.formats import FORMATS, quiet
from overtone.export.program import moved_axes, trace, waves
from overtone.export.verify import BATCHES, Program, difference
from overtone.files import replacing
from overtone.models.architecture import Time
from overtone.models.base import Model
from overtone.models.cvit import build_cvit
from overtone.version import machine

PAGE = Path(__file__).parents[1] / "docs/reference/export.md"
HEADING = "| model | axes | sides | tokenizer | time | onnx | pt2 |"
STEPS = 10
PATCH = 4
CONTEXT = 3
GAIN = 10
"""What the last layer's weights are multiplied by."""
SHAPES = {1: (48,), 2: (16, 22), 3: (8, 10, 12)}
"""Cells of a grid; the patch does not divide all of them."""
MIXING = ("vit", "axial", "swin", "afno")
SIDES = ("periodic", "wall", "open")
TOKENIZERS = ("csm", "ckm", "fixed")
TIMES = ("fold", "attend")
BASELINES = {
    "unet": {"width": 8, "levels": 2},
    "cnext_unet": {"width": 8},
    "ffno": {"width": 16, "layers": 2, "modes": 6},
    "afno_net": {"width": 32, "blocks": 2, "patch": 4},
    "transolver": {"width": 32, "layers": 2, "heads": 2},
    "sinenet": {"width": 8, "waves": 2},
    "persistence": {},
    "extrapolation": {},
    "coarse_solver": {},
}


@dataclass(frozen=True)
class Case:
    """A model to export.

    Attributes:
        model: a kind of spatial mixing, or a baseline's name, or `cvit`.
        axes: number of them.
        sides: kind of boundary.
        tokenizer, time: of an emulator; empty for others.
    """

    model: str
    axes: int
    sides: str
    tokenizer: str = ""
    time: str = ""

    @property
    def name(self) -> str:
        """What it is chosen by."""
        return f"{self.model}-{self.axes}d-{self.sides}"


CASES = [
    Case(model, axes, sides, TOKENIZERS[(i + axes + k) % 3], TIMES[(9 * i + 3 * axes + k) % 2])
    for (i, model), axes, (k, sides) in product(enumerate(MIXING), SHAPES, enumerate(SIDES))
]
CASES += [Case("cvit", 2, "periodic", "ckm")]
CASES += [Case(name, 2, "periodic") for name in BASELINES]


def build(case: Case) -> Model:
    shape = SHAPES[case.axes]
    domain = ot.Domain(shape, tuple(n / 16 for n in shape), case.sides, ("a", "b"), 0.1)
    torch.manual_seed(0)
    if case.model == "cvit":
        return build_cvit(domain=domain, patches=(PATCH, 8), context=CONTEXT)
    if case.model in BASELINES:
        return ot.baseline(case.model, domain=domain, context=CONTEXT, size="mini",
                           **BASELINES[case.model])  # fmt: skip
    model = ot.build(
        case.model,
        domain=domain,
        tokenizer=case.tokenizer,
        patches=(PATCH,) if case.tokenizer == "fixed" else (2, PATCH),
        context=CONTEXT,
        time=cast(Time, case.time),
        width=16,
        heads=2,
        blocks=2,
        mlp_dim=24,
        stage_dim=12,
        window=2,
        layer_scale=1.0,
    )
    with torch.no_grad():
        cast(torch.Tensor, model.tokenizer.decoders[-1].weight).mul_(GAIN)
    return model


def measure(case: Case, formats: Sequence[str]) -> dict[str, float | str]:
    """Format -> difference from the model, or why there is none."""
    try:
        model = build(case)
    except OvertoneError as error:
        return {kind: str(error) for kind in formats}
    patch = model.patches[-1] if model.patched else 1
    found: dict[str, float | str] = {}
    with TemporaryDirectory() as folder:
        for kind in formats:
            path = Path(folder) / f"program{FORMATS[kind].suffix}"
            try:
                with quiet():
                    program = trace(model, model.domain, patch, exact=FORMATS[kind].exact)
                    FORMATS[kind].write(program, path)
                    found[kind] = _difference(model, path, kind, patch)
            except Exception as error:
                found[kind] = _reason(error)
    return found


def _difference(model: Model, path: Path, kind: str, patch: Any) -> float:
    """Of a written program from its model."""
    moved = moved_axes(model, model.domain)
    program = Program(FORMATS[kind].load(path), model.context, moved)
    windows = [waves(model.domain, model.context, samples=batch, seed=batch) for batch in BATCHES]
    return max(difference(model, program, window, patch=patch, steps=STEPS) for window in windows)


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text[:200]}"


def table(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """The measured cases as lines of the page."""
    lines = [HEADING, "|---" * HEADING.count(" | ") + "|---|"]
    for case in cases:
        known = [str(case[part]) for part in ("model", "axes", "sides", "tokenizer", "time")]
        lines.append(f"| {' | '.join([*known, *map(_cell, (case['onnx'], case['pt2']))])} |")
    return lines


def _cell(difference: float | str) -> str:
    """A difference as the table has it, "0" if there is none at all."""
    if isinstance(difference, str):
        return "refused"
    return f"{difference:.0e}" if difference else "0"


def written(page: str, lines: Sequence[str]) -> str:
    """A page with other lines in the place of its table."""
    before, _, rest = page.partition(HEADING)
    after = rest.partition("\n\n")[2]
    return before + "\n".join(lines) + "\n\n" + after


def chosen(names: Sequence[str]) -> list[Case]:
    return [case for case in CASES if not names or any(case.name.startswith(n) for n in names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--formats", default="onnx,pt2")
    parser.add_argument("--out", type=Path, default=Path("results/export_matrix.json"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    if given.out.is_file():
        rows = {row["name"]: row for row in json.loads(given.out.read_text())["cases"]}
    formats = given.formats.split(",")
    order = [*rows.values()]
    for case in chosen(given.names):
        known = {key: rows.get(case.name, {}).get(key) for key in FORMATS}
        known = {key: value for key, value in known.items() if value is not None}
        if {*formats} <= {*known} and not given.names:
            continue
        began = time.process_time()
        found = measure(case, formats)
        seconds = round(time.process_time() - began, 1)
        rows[case.name] = {
            **{"name": case.name, **vars(case)}, **known, **found, "cpu_seconds": seconds
        }  # fmt: skip
        print(rows[case.name], flush=True)
        order = [rows[known.name] for known in CASES if known.name in rows]
        content = {"steps": STEPS, "cases": order, "machine": machine()}
        with replacing(given.out) as scratch:
            scratch.write_text(json.dumps(content, indent=1) + "\n")
    if all({"onnx", "pt2"} <= {*row} for row in order):
        PAGE.write_text(written(PAGE.read_text(), table(order)))


if __name__ == "__main__":
    main()
