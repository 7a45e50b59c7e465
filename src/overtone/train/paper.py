"""The paper's trainings, number by number as it states them.

`DATASET-SIZE` is one of its six datasets with its vanilla ViT of 7, 25 or 100 million parameters,
or its axial ViT of 50; `DATASET-cvit` its CViT, and `DATASET-MODEL` one of the models that it
compares with. `docs/paper.md` has a table of what the paper states, what it leaves open and what is
taken here. Set `data.path`; `model.tokenizer` chooses CSM or CKM, and `model.tokenizer=fixed
model.patches=[16]` the fixed rival, which gets 20,000 updates where a flexible model gets 60,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from overtone.train.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    ParallelConfig,
    RunConfig,
    SaveConfig,
    TrainConfig,
    ValidConfig,
)

UPDATES = 20_000
"""Updates of a fixed model, and of a flexible one for each patch: 200 epochs of 100."""
BATCH = 16
CONTEXT = 6
PATCHES = (4, 8, 16)


@dataclass(frozen=True)
class Source:
    """A dataset of The Well.

    Attributes:
        folder: its name there.
        trajectories, frames: how many, and the length of each.
        coarsen: cells of it that are averaged into one along each axis.
    """

    folder: str
    trajectories: int
    frames: int
    coarsen: int = 1

    def epochs(self, number: int) -> int:
        """Updates in which each window of the training split, 80 %, is seen so many times."""
        windows = self.trajectories * 8 // 10 * (self.frames - CONTEXT)
        return round(number * windows / BATCH)


# The paper trains shear flow on half of The Well's cells along each axis, the others on all.
DATASETS = {
    "shear-flow": Source("shear_flow", 1120, 200, coarsen=2),
    "rayleigh-benard": Source("rayleigh_benard", 1750, 200),
    "active-matter": Source("active_matter", 225, 81),
    "turbulent-radiative-layer-2d": Source("turbulent_radiative_layer_2D", 90, 101),
    "supernova-explosion": Source("supernova_explosion_64", 740, 59),
    "turbulence-gravity-cooling": Source("turbulence_gravity_cooling", 2700, 50),
}
FLAT = tuple(DATASETS)[:4]
"""Datasets of two dimensions."""
SIZES = {"7m": "vit", "25m": "vit", "50m": "axial", "100m": "vit"}
"""Size -> processor."""
CVIT_EPOCHS = {"shear-flow": 30, "active-matter": 40, "turbulent-radiative-layer-2d": 160}
"""Epochs of a fixed CViT, and of a flexible one for each patch."""


@dataclass(frozen=True)
class Rival:
    """A model that the paper compares with.

    Attributes:
        lr: its learning rate; where the paper states none, 1e-3.
        datasets: what it is trained on.
    """

    lr: float
    datasets: tuple[str, ...]


RIVALS = {
    "fno": Rival(1e-3, tuple(DATASETS)),
    "tfno": Rival(1e-3, tuple(DATASETS)),
    "unet": Rival(1e-3, tuple(DATASETS)),
    "cnext_unet": Rival(1e-3, tuple(DATASETS)),
    "ffno": Rival(1e-3, FLAT),
    "sinenet": Rival(2e-4, FLAT),
    "transolver": Rival(1e-3, ("shear-flow", "turbulent-radiative-layer-2d")),
    "afno_net": Rival(1e-3, tuple(CVIT_EPOCHS)),
}
"""By name of the baseline. The paper states the rates of `ffno` and `sinenet`."""


def emulator(name: str, dataset: str, size: str) -> RunConfig:
    """A flexible ViT.

    Args:
        name: of the recipe.
        dataset: a key of `DATASETS`.
        size: a key of `SIZES`.
    """
    model = ModelConfig(
        name=SIZES[size],
        size=size,
        patches=PATCHES,
        context=CONTEXT,
        unit="context",
        scale="context",
        time="attend",
        decoder="paper",
        mlp="behind",
        layer_scale=0.0,
        drop_path=0.1,
    )
    train = TrainConfig(batch=BATCH, updates_per_patch=UPDATES)
    sharded = ParallelConfig(strategy="fsdp")
    return _run(name, dataset, model, train, lr=1e-4, weight_decay=1e-4, parallel=sharded)


def cvit(name: str, dataset: str) -> RunConfig:
    """A CViT-S whose encoder is flexible.

    Args:
        name: of the recipe.
        dataset: a key of `CVIT_EPOCHS`.
    """
    model = ModelConfig(
        name="cvit",
        tokenizer="ckm",
        size="s",
        patches=PATCHES,
        context=CONTEXT,
        unit="context",
        scale="context",
    )
    updates = DATASETS[dataset].epochs(CVIT_EPOCHS[dataset])
    train = TrainConfig(batch=BATCH, updates_per_patch=updates)
    return _run(name, dataset, model, train, lr=1e-4, weight_decay=1e-5)


def rival(name: str, dataset: str, model: str) -> RunConfig:
    """A model without flexible patches, which sees as many samples as the flexible ones.

    Args:
        name: of the recipe.
        dataset: a key of `DATASETS`.
        model: a key of `RIVALS`.
    """
    made = ModelConfig(name=model, size="paper", context=CONTEXT, unit="context", scale="context")
    train = TrainConfig(batch=BATCH, updates=len(PATCHES) * UPDATES)
    return _run(name, dataset, made, train, lr=RIVALS[model].lr, weight_decay=1e-4)


def _run(
    name: str,
    dataset: str,
    model: ModelConfig,
    train: TrainConfig,
    *,
    lr: float,
    weight_decay: float,
    **sections: Any,
) -> RunConfig:
    source = DATASETS[dataset]
    return RunConfig(
        recipe=name,
        data=DataConfig(path=f"datasets/{source.folder}", coarsen=source.coarsen, workers=4),
        model=model,
        optimizer=OptimizerConfig(kind="adam", lr=lr, weight_decay=weight_decay, clip=None),
        train=train,
        valid=ValidConfig(every=2000),
        save=SaveConfig(every=1000),
        **sections,
    )


RECIPES: dict[str, Callable[[], RunConfig]] = {
    **{f"{d}-{s}": partial(emulator, f"{d}-{s}", d, s) for d in DATASETS for s in SIZES},
    **{f"{d}-cvit": partial(cvit, f"{d}-cvit", d) for d in CVIT_EPOCHS},
    **{
        f"{d}-{model}": partial(rival, f"{d}-{model}", d, model)
        for model, its in RIVALS.items()
        for d in its.datasets
    },
}
