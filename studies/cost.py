"""What models of the paper's sizes cost on its grids: tokens and FLOPs, computed without running.

Of a call for one sample, by each patch, and of a whole training, `train.updates_per_patch` updates
of `train.batch` windows by each patch; frames attending as in the paper, and folded as in ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from overtone.domain import Domain
from overtone.files import replacing
from overtone.grid import PatchGrid
from overtone.models.flops import call_flops
from overtone.train.config import RunConfig
from overtone.train.recipes import recipe
from overtone.train.run import make_model
from overtone.version import machine

FILE = "cost.json"
COMMAND = "python -m studies cost"
GRIDS = {
    "active-matter": ((256, 256), "periodic", 11),
    "supernova-explosion": ((64, 64, 64), "open", 6),
}
"""Dataset -> cells, boundaries and number of fields, as The Well has them."""
SIZES = ("7m",)
"""Larger ones take minutes to build and count."""
FORMS = {"attend": "", "fold": "-fold"}
"""How frames meet -> end of the recipe's name."""


def run(results: str | Path, *, sizes: tuple[str, ...] = SIZES) -> Path:
    """Count, and write `cost.json`.

    Args:
        results: folder.
        sizes: of the models.
    """
    rows = [
        {"dataset": dataset, "size": size, "time": time, **count(recipe(f"{dataset}-{size}{end}"))}
        for dataset in GRIDS
        for size in sizes
        for time, end in FORMS.items()
    ]
    path = Path(results) / FILE
    content = {"command": COMMAND, "machine": machine(), "rows": rows}
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
    return path


def count(config: RunConfig) -> dict[str, Any]:
    """Tokens of a frame and FLOPs of a call for each patch, and FLOPs of the training.

    Args:
        config: of a recipe whose dataset is one of `GRIDS`.
    """
    (dataset,) = (name for name in GRIDS if config.recipe.startswith(name))
    shape, boundaries, num = GRIDS[dataset]
    fields = [f"field {place}" for place in range(num)]
    domain = Domain(shape, (1.0,) * len(shape), boundaries, fields, 1.0)
    model, frames = make_model(config.model, domain), config.model.context
    updates, batch = config.train.updates_per_patch, config.train.batch
    steps = [
        call_flops(model, domain, patch, frames=frames, training=True)
        for patch in config.model.patches
    ]
    return {
        "frames": frames,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": {str(p): PatchGrid.lay(domain, p).num_tokens for p in config.model.patches},
        "flops": {str(p): call_flops(model, domain, p, frames=frames)
                  for p in config.model.patches},
        "training_flops": updates * batch * sum(steps),
    }  # fmt: skip
