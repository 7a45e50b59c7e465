"""What an emulator is made of: every number needed to build one, as plain data.

An `Architecture` is complete: nothing is derived later, so that what is saved beside the weights
builds the same model in any future version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, Literal, TypedDict, Unpack, get_args

from overtone.domain import Domain, entries, is_int, per_axis
from overtone.errors import OvertoneError, require_one_of
from overtone.guard.limits import require_memory
from overtone.models.processors import PROCESSORS
from overtone.models.tokenizers import TOKENIZERS, DecoderRule
from overtone.models.tokenizers.convolution import DECODER_RULES, base_kernels, split
from overtone.schedules import Patch


@dataclass(frozen=True)
class Size:
    """Width and depth of a processor."""

    width: int
    heads: int
    blocks: int
    mlp_dim: int


# Named by their parameters with time attention; without it there are about a quarter fewer. What
# the paper calls MLP dim is twice our `mlp_dim`: both halves of the gated MLP (docs/paper.md).
SIZES: dict[str, Size] = {
    "nano": Size(width=64, heads=2, blocks=4, mlp_dim=216),  # about 0.4 M in 3D, for a CPU
    "tiny": Size(width=96, heads=3, blocks=4, mlp_dim=320),  # about 0.75 M parameters, for a CPU
    "7m": Size(width=192, heads=3, blocks=12, mlp_dim=384),
    "25m": Size(width=384, heads=6, blocks=12, mlp_dim=768),
    "50m": Size(width=512, heads=8, blocks=12, mlp_dim=1024),
    "100m": Size(width=768, heads=12, blocks=12, mlp_dim=1536),
}


Time = Literal["fold", "attend"]
"""How the frames of a context meet: as channels of one frame of tokens, or by attention."""


Mlp = Literal["beside", "behind"]
"""Where a block has its MLP: beside the spatial mixing, or behind it, as in the paper."""


class Options(TypedDict, total=False):
    """What can be set beyond a size's name. See `Architecture` for the meaning of each."""

    width: int
    heads: int
    blocks: int
    mlp_dim: int
    stages: int
    base_kernel: int | Sequence[int]
    stage_dim: int
    decoder: DecoderRule
    time: Time
    skip: bool
    causal: bool
    max_turns: int
    layer_scale: float
    mlp: Mlp
    drop_path: float
    window: int
    mode_blocks: int
    refine: int


@dataclass(frozen=True)
class Architecture:
    """Every number that defines an emulator.

    Attributes:
        processor: `"vit"`, `"axial"`, `"swin"` or `"afno"`.
        tokenizer: `"csm"`, `"ckm"` or `"fixed"`.
        patches: what the model is trained for, one int for each axis.
        domain: what it is trained on; other grid sizes of the same kind are accepted.
        context: number of frames it looks back on; the largest one if it attends to them.
        width, heads, blocks, mlp_dim: sizes of the processor.
        kernels: base kernel of each tokenizer stage.
        stage_dim: width between the tokenizer's stages.
        decoder: `"paper"` or `"keep"`, the rule for the decoder's amplitude.
        time: `"fold"`, the encoder reads the frames as channels, and one frame of tokens goes
            through the blocks; or `"attend"`, those of all frames do, and attend along time.
        skip: whether details go round the tokens, from the encoder's stages to the decoder's.
        causal: whether a frame sees only itself and earlier ones, where it attends.
        max_turns: highest frequency of the rotary encoding, in turns per domain.
        layer_scale, drop_path: of the residual branches; 0 for none.
        mlp: whether a block's MLP stands `"beside"` the spatial mixing or `"behind"` it.
        window: most tokens of a window along an axis (`"swin"`).
        mode_blocks: blocks of channels of the spectral network (`"afno"`).
        refine: width of the convolutions that correct changes cell by cell; 0 for none.
    """

    processor: str
    tokenizer: str
    patches: tuple[tuple[int, ...], ...]
    domain: Domain
    context: int
    width: int
    heads: int
    blocks: int
    mlp_dim: int
    kernels: tuple[int, ...]
    stage_dim: int
    decoder: DecoderRule
    time: Time
    skip: bool
    causal: bool
    max_turns: int
    layer_scale: float
    mlp: Mlp
    drop_path: float
    window: int
    mode_blocks: int
    refine: int

    def __post_init__(self) -> None:
        require_one_of(self.processor, PROCESSORS, "processor")
        require_one_of(self.tokenizer, TOKENIZERS, "tokenizer")
        require_one_of(self.decoder, DECODER_RULES, "decoder")
        require_one_of(self.time, get_args(Time), "time")
        require_one_of(self.mlp, get_args(Mlp), "mlp")
        names = ("context", "width", "heads", "blocks", "mlp_dim", "stage_dim", "max_turns",
                 "window", "mode_blocks")  # fmt: skip
        require_sizes({name: getattr(self, name) for name in names})
        require_sizes({"refine": self.refine}, least=0)
        require_sizes({"stages": len(self.kernels), "kernel": max(self.kernels, default=0)})
        require_sizes({"patches": len(self.patches)})
        if not math.isfinite(self.layer_scale):
            raise OvertoneError(f"layer_scale is {self.layer_scale}; expected a finite number")
        if not 0 <= self.drop_path < 1:
            raise OvertoneError(f"drop_path is {self.drop_path}; expected 0 <= drop_path < 1")
        if self.width % (2 * self.heads):
            raise OvertoneError(
                f"width {self.width} does not split into {self.heads} heads of even size; "
                f"choose a multiple of {2 * self.heads}"
            )
        if self.processor == "afno" and self.width % self.mode_blocks:
            raise OvertoneError(
                f"width {self.width} does not split into {self.mode_blocks} blocks of modes; "
                "choose mode_blocks that divide it"
            )
        if self.time == "fold" and self.causal:
            raise OvertoneError(
                "causal is True with time 'fold', where all frames of a context make one "
                "prediction; choose causal=False, or time='attend'"
            )
        if self.tokenizer == "fixed" and len(self.patches) != 1:
            raise OvertoneError(
                f"tokenizer 'fixed' has one patch, {len(self.patches)} were given: {self.patches}; "
                "choose 'csm' or 'ckm' for several"
            )

    @property
    def folded(self) -> int:
        """Number of frames that a token reads as channels."""
        return self.context if self.time == "fold" else 1

    @property
    def attended(self) -> int:
        """Number of frames whose tokens go through the blocks."""
        return self.context // self.folded

    @property
    def least_weights(self) -> int:
        """How many weights the model has at least: those of its matrices and large kernels."""
        attention = 4 * self.width**2 * ((self.processor != "afno") + (self.attended > 1))
        blocks = self.blocks * (attention + 3 * self.width * self.mlp_dim)
        between = [self.stage_dim] * (len(self.kernels) - 1)
        kernels = [
            a * b * k**self.domain.ndim
            for frames in (self.folded, 1)  # that the encoder reads, the decoder writes
            for (a, b), k in zip(
                pairwise([frames * len(self.domain.fields), *between, self.width]),
                self.kernels,
                strict=True,
            )
        ]
        return blocks + sum(kernels) + 3**self.domain.ndim * self.refine**2

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, strings and numbers, for JSON."""
        plain = asdict(self) | {"domain": self.domain.to_dict()}
        return plain | {"patches": [list(p) for p in self.patches], "kernels": list(self.kernels)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Architecture:
        """The inverse of `to_dict`. Unknown and missing keys are errors."""
        require_fields(values, cls, "it was written by another version or edited by hand")
        given: dict[str, Any] = {
            **values,
            "domain": Domain(**values["domain"]),
            "patches": tuple(tuple(patch) for patch in values["patches"]),
            "kernels": tuple(values["kernels"]),
        }
        return cls(**given)


def design(
    processor: str,
    *,
    tokenizer: str,
    patches: Sequence[Patch] | int,
    size: str,
    domain: Domain,
    context: int,
    **options: Unpack[Options],
) -> Architecture:
    """Fill in an architecture from a size's name; `options` override single numbers."""
    require_one_of(size, SIZES, "size")
    for name in options:
        require_one_of(name, Options.__annotations__, "option")
    numbers = asdict(SIZES[size])
    numbers |= {key: value for key, value in options.items() if key in numbers}
    require_sizes(numbers)
    trained = trained_patches(patches, domain.ndim)
    time = options.get("time", "fold")
    return Architecture(
        processor=processor,
        tokenizer=tokenizer,
        patches=trained,
        domain=domain,
        context=context,
        **numbers,
        kernels=_kernels(trained, options),
        # The stages of a folded model read all frames, which wants width.
        stage_dim=options.get(
            "stage_dim", max(numbers["width"] * (8 if time == "fold" else 3) // 12, 1)
        ),
        decoder=options.get("decoder", "keep"),
        time=time,
        skip=options.get("skip", False),
        causal=options.get("causal", time == "attend"),
        # Half a turn per 16 cells of the longest axis: finer places are the tokenizer's business.
        max_turns=options.get("max_turns", max(16, math.ceil(max(domain.shape) / 16))),
        layer_scale=options.get("layer_scale", 0.1),
        mlp=options.get("mlp", "beside"),
        drop_path=options.get("drop_path", 0.0),
        window=options.get("window", 8),
        mode_blocks=options.get("mode_blocks", math.gcd(numbers["width"], 8)),
        refine=options.get("refine", 0),
    )


def trained_patches(patches: Sequence[Patch] | int, ndim: int) -> tuple[tuple[int, ...], ...]:
    """The patches that a model will be trained for, one int for each axis."""
    given = (patches,) if is_int(patches) else entries(patches)
    if not given:
        raise OvertoneError(f"patches is {patches!r}; expected at least one, such as (4, 8, 16)")
    return tuple(per_axis(patch, ndim, "patch") for patch in given)


PARTS = ("blocks", "summaries", "decoder_blocks", "stages", "layers", "neck", "waves")
MAX_PARTS = 1000
"""Most parts of a kind, such as blocks, each of which is an object of its own."""
MOST = {**dict.fromkeys(PARTS, MAX_PARTS), "patches": MAX_PARTS, "context": 10_000, "levels": 30}
MAX_SIZE = 2**31 - 1
"""Largest number of any other kind, such as a width; memory is what limits those."""


def require_sizes(numbers: Mapping[str, Any], *, least: int = 1) -> None:
    """Refuse numbers of a model that are no whole numbers, or that nobody could build.

    Args:
        numbers: by name.
        least: what they must be at least.
    """
    for name, value in numbers.items():
        most = MOST.get(name, MAX_SIZE)
        if not is_int(value):
            raise OvertoneError(f"{name} is {value!r}; expected an int")
        if value < least:
            raise OvertoneError(f"{name} is {value}; expected at least {least}")
        if value > most:
            given = value if value < 10**30 else "a number of more than 30 digits"
            raise OvertoneError(f"{name} is {given}; expected at most {most}")


def require_weights(num_weights: float) -> None:
    """Refuse a model, before it is built, whose weights alone don't fit into memory.

    Args:
        num_weights: how many there are at least, in single precision.
    """
    require_memory(
        4 * num_weights,
        f"a model of more than {num_weights:.3g} parameters",
        "choose smaller numbers",
        error=OvertoneError,
    )


def require_fields(values: Mapping[str, Any], kind: type[Any], hint: str) -> None:
    """Refuse saved values whose keys are not the fields of a dataclass; `hint` says why not."""
    names = {field.name for field in fields(kind)}
    unknown, missing = sorted(set(values) - names), sorted(names - set(values))
    if unknown or missing:
        raise OvertoneError(
            f"the architecture has unknown keys {unknown} and lacks {missing}; {hint}"
        )


def _kernels(patches: tuple[tuple[int, ...], ...], options: Options) -> tuple[int, ...]:
    stages = options.get("stages", 2)
    require_sizes({"stages": stages})
    given = options.get("base_kernel")
    if given is None:
        return base_kernels([size for patch in patches for size in patch], stages)
    if is_int(given):
        return split(given, stages)
    given = entries(given)
    if len(given) != options.get("stages", len(given)):
        raise OvertoneError(f"base_kernel {tuple(given)} does not have {stages} stages")
    return tuple(given)
