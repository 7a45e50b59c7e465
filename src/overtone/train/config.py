"""The configuration of a training run: validated, complete, plain data.

A recipe returns a `RunConfig`, users change it (`settings`), and what comes out is written beside
the run.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)

from overtone.models.processors import PROCESSORS

MOST = 10**9
"""Largest count of anything: more is a slip of the finger."""


def _short(value: Any) -> Any:
    """The same, if all its whole numbers can be written as JSON and read again."""
    if isinstance(value, (dict, list)):
        for entry in value.values() if isinstance(value, dict) else value:
            _short(entry)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("expected whole numbers of at most 64 bits")
    return value


Positive = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Rate = Annotated[float, Field(ge=0, lt=1)]
PatchConfig = Positive | tuple[Positive, ...]
Options = dict[str, Annotated[JsonValue, AfterValidator(_short)]]


class Section(BaseModel):
    """A part of the configuration: immutable, finite, and nothing that is not named here."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class GenerateConfig(Section):
    """Data made by a built-in solver, once, into the cache."""

    system: str
    """As in `overtone data generate`, e.g. `shear_flow`."""
    grid: tuple[Positive, ...] | None = None
    settings: dict[str, float] = {}
    """Physical parameters of the system."""
    trajectories: Positive = 24
    steps: Positive = 60
    splits: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: Seed = 0
    per_file: Positive = 8


class DataConfig(Section):
    """What to train on."""

    path: str | None = None
    """A Well folder; None generates the data."""
    generate: GenerateConfig | None = None
    given: str | None = None
    """What a caller of `fit` has in memory, in words; nobody else can train on it."""
    fields: tuple[str, ...] | None = None
    coarsen: Positive | tuple[Positive, ...] = 1
    """Cells to average into one."""
    stride: Positive = 1
    """Stored frames between two frames of a window."""
    workers: Whole = 0
    """Processes that read data beside the training process."""
    memory: Annotated[float, Field(ge=0)] = 1.0
    """Gigabytes of frames, of each split and process, that are kept once they were read: small data
    is read once, larger data whenever it is used."""

    @model_validator(mode="after")
    def _has_a_source(self) -> DataConfig:
        if self.path is None and self.generate is None and self.given is None:
            raise ValueError("give data.path=FOLDER, or data.generate.system=NAME")
        return self


class ModelConfig(Section):
    """What to train; None leaves a number to the size."""

    name: str = "vit"
    """A processor (`vit`, `axial`, …), `cvit`, or a baseline (`unet`, `fno`, …)."""
    tokenizer: Literal["csm", "ckm", "fixed"] = "csm"
    patches: Annotated[tuple[PatchConfig, ...], Field(min_length=1)] = (4, 8, 16)
    size: str = "tiny"
    context: Positive = 6
    unit: Literal["pace", "context"] = "pace"
    """What changes are predicted in: by the data's pace, or the context's own change alone."""
    scale: Literal["typical", "context"] = "typical"
    """What fields are measured in: the mean of the context's and the data's standard deviation,
    which calls amplitudes back, or the context's alone."""
    width: Positive | None = None
    heads: Positive | None = None
    blocks: Positive | None = None
    mlp_dim: Positive | None = None
    stages: Positive | None = None
    base_kernel: Positive | tuple[Positive, ...] | None = None
    stage_dim: Positive | None = None
    decoder: Literal["keep", "paper"] = "keep"
    time: Literal["fold", "attend"] = "fold"
    """How an emulator's context meets: as channels of one frame of tokens, or by attention."""
    skip: bool | None = None
    """Whether details go round the tokens, from the encoder's stages to the decoder's."""
    causal: bool | None = None
    """Where frames attend: whether to earlier ones only, and each predicts; True if None."""
    max_turns: Positive | None = None
    layer_scale: Annotated[float, Field(ge=0)] = 0.1
    """Scale of the residual branches at the start; 0 for branches without one."""
    mlp: Literal["beside", "behind"] = "beside"
    """Where a block has its MLP: beside the spatial mixing, or behind it."""
    drop_path: Rate = 0.0
    window: Positive | None = None
    mode_blocks: Positive | None = None
    refine: Positive | None = None
    """Width of convolutions that correct changes cell by cell; none if None."""
    other: Options = {}
    """Options of a baseline or of CViT, as their own documentation names them."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is one of the models to compare with."""
        return self.name not in (*PROCESSORS, "cvit")

    def options(self) -> dict[str, Any]:
        """What is set of an emulator's numbers beyond size and context."""
        apart = {"name", "tokenizer", "patches", "size", "context", "unit", "scale", "other"}
        return {k: v for k, v in self if k not in apart and v is not None}

    @model_validator(mode="after")
    def _knows_its_numbers(self) -> ModelConfig:
        if self.name in PROCESSORS:
            return self
        for key, value in self.options().items():
            # Older versions wrote `causal` into every run; none but emulators read it.
            if type(self).model_fields[key].default is None and key != "causal":
                raise ValueError(
                    f"model.{key} is {value}, which is a number of an emulator; '{self.name}' has "
                    "its own: set model.size, or model.other.OPTION=VALUE"
                )
        return self


class OptimizerConfig(Section):
    """How weights are changed."""

    kind: Literal["adamw", "adam", "muon"] = "adamw"
    """`adam` adds weight decay to the gradient, `adamw` keeps it apart; `muon` makes the steps of
    matrices orthogonal, and is `adamw` for all else."""
    lr: Annotated[float, Field(gt=0)] = 1e-4
    """Peak learning rate."""
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    weight_decay: Annotated[float, Field(ge=0)] = 1e-4
    """Weight decay of matrices and kernels; scales, biases and norms have none."""
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the budget in which the rate rises from 0."""
    final: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Where a cosine ends, relative to the peak."""
    clip: Annotated[float, Field(gt=0)] | None = 1.0
    """Largest gradient norm."""
    ema: Rate | None = None
    """Decay of an average of the weights, which is then validated and saved."""


class TrainConfig(Section):
    """How long, how many at once, and what is varied."""

    updates_per_patch: Positive = 20_000
    """A model of three patches gets three times this, as the sum of three fixed models."""
    updates: Positive | None = None
    """In all, instead of `updates_per_patch`."""
    max_minutes: Annotated[float, Field(gt=0)] | None = None
    max_cpu_minutes: Annotated[float, Field(gt=0)] | None = None
    """Budget of processor time, which other work on the machine does not use up."""
    max_flops: Annotated[float, Field(gt=0)] | None = None
    batch: Positive = 16
    """Windows of an update, over all ranks."""
    accumulate: Positive = 1
    """Parts that a rank's share of the batch is computed in."""
    patch_weights: tuple[Annotated[float, Field(ge=0)], ...] | None = None
    """Relative frequency of each patch; uniform if None."""
    shift: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the updates whose patch grid is moved by a random offset; true for all."""
    unroll: Positive = 1
    """Steps of a short rollout; each is supervised, none has a gradient through the one before."""
    unroll_from: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the budget from which on it is unrolled; one step before."""
    noise: Annotated[float, Field(ge=0)] = 0.0
    """Noise on the window, relative to each field's standard deviation."""
    loss: Literal["nmse", "mse", "mae"] = "nmse"
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    compile: bool = False
    checkpoint_activations: bool = False
    seed: Seed = 0
    device: str = "auto"
    threads: Positive | None = None
    """Threads of torch on the CPU; torch's own choice if None."""


class ValidConfig(Section):
    """What is measured on the validation split, and when."""

    every: Positive = 500
    """Updates between two validations; one more is made at the end."""
    points: Positive | None = None
    """Validations at so many evenly spaced points of the budget, whatever it is, instead; a
    checkpoint is written at each."""
    windows: Positive = 64
    """Windows for the next-step error, spread over the split."""
    batch: Positive = 8
    rollout_steps: Whole = 10
    """Length of the rollouts that cycle through the patches; 0 for none."""
    rollouts: Positive = 4
    """How many trajectories."""
    calibrate: Whole = 20
    """Rollouts by which the best model's estimates of its own error are calibrated at the end; 0
    for none. `overtone calibrate` does it with more and longer ones."""
    patience: Positive | None = None
    """Stop after so many validations without a new best."""


class SaveConfig(Section):
    """Checkpoints."""

    every: Positive = 500
    """Updates between two checkpoints."""
    keep: Positive = 2
    """How many to keep."""


class LogConfig(Section):
    """Where numbers go besides `metrics.jsonl`."""

    every: Positive = 10
    """Updates between two lines."""
    tensorboard: bool = True
    wandb: bool = False
    project: str = "overtone"
    """Project of Weights & Biases."""
    report: bool = True
    """Keep a page of the run, `report.html`, up to date while it trains."""


class ParallelConfig(Section):
    """How a model is spread over ranks. Nothing of it matters for one rank."""

    strategy: Literal["ddp", "fsdp", "hybrid"] = "ddp"
    shard: Positive | None = None
    """Ranks that share one copy of the weights under `hybrid`; those of one node if None."""


class RunConfig(Section):
    """All of a training run."""

    recipe: str
    data: DataConfig
    model: ModelConfig = ModelConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    train: TrainConfig = TrainConfig()
    valid: ValidConfig = ValidConfig()
    save: SaveConfig = SaveConfig()
    log: LogConfig = LogConfig()
    parallel: ParallelConfig = ParallelConfig()

    @model_validator(mode="after")
    def _agrees(self) -> RunConfig:
        weights = self.train.patch_weights
        fits = weights is None or len(weights) == len(self.model.patches)
        if not fits or (weights is not None and not 0 < sum(weights) < float("inf")):
            raise ValueError(
                f"train.patch_weights is {weights}; expected {len(self.model.patches)} numbers, "
                f"one for each of model.patches {self.model.patches}, not all 0"
            )
        if self.optimizer.kind == "muon" and self.parallel.strategy != "ddp":
            raise ValueError(
                f"optimizer.kind is muon and parallel.strategy {self.parallel.strategy}; its steps "
                "need whole matrices on each rank: use parallel.strategy=ddp, or "
                "optimizer.kind=adamw"
            )
        if self.train.batch % self.train.accumulate:
            raise ValueError(
                f"train.batch {self.train.batch} can't be divided into train.accumulate "
                f"{self.train.accumulate} parts"
            )
        return self

    @property
    def num_updates(self) -> int:
        """Updates of the whole run."""
        patches = 1 if self.model.is_baseline else len(self.model.patches)
        return self.train.updates or self.train.updates_per_patch * patches

    def to_yaml(self) -> str:
        """As a file that `--config` reads."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)
