"""What a CViT is made of: every number needed to build one, as plain data.

Sizes `"s"`, `"b"` and `"l"` are the published ones, with 13, 30 and 92 million parameters on their
authors' grid of 128 x 128 cells, latents included; `"mini"` is for a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, Unpack, cast

from overtone.domain import Domain, per_axis
from overtone.errors import OvertoneError, require_one_of
from overtone.models.architecture import require_fields, require_sizes, trained_patches
from overtone.schedules import Patch


class CViTOptions(TypedDict, total=False):
    """What can be set beyond a size's name. See `CViTArchitecture` for the meaning of each."""

    width: int
    heads: int
    blocks: int
    mlp_dim: int
    summaries: int
    base_patch: int | Sequence[int]
    latent_grid: Sequence[int]
    latent_dim: int
    decoder_width: int
    decoder_heads: int
    decoder_blocks: int
    decoder_mlp_dim: int


SIZES: dict[str, CViTOptions] = {
    "mini": {"width": 48, "heads": 3, "blocks": 2, "mlp_dim": 96, "latent_dim": 32,
             "decoder_width": 48, "decoder_heads": 3, "decoder_mlp_dim": 96},
    "s": {"width": 384, "heads": 6, "blocks": 5, "mlp_dim": 384, "latent_dim": 256,
          "decoder_width": 512, "decoder_heads": 16, "decoder_mlp_dim": 512},
    "b": {"width": 512, "heads": 8, "blocks": 10, "mlp_dim": 512, "latent_dim": 512,
          "decoder_width": 512, "decoder_heads": 16, "decoder_mlp_dim": 512},
    "l": {"width": 768, "heads": 12, "blocks": 15, "mlp_dim": 1536, "latent_dim": 512,
          "decoder_width": 512, "decoder_heads": 16, "decoder_mlp_dim": 1024},
}  # fmt: skip


@dataclass(frozen=True)
class CViTArchitecture:
    """Every number that defines a CViT.

    Attributes:
        tokenizer: `"ckm"`, or `"fixed"` for one patch alone.
        patches: what the model is trained for, one int for each axis.
        domain: what it is trained on; other grid sizes of the same kind are accepted.
        context: largest number of frames it looks back on.
        base_patch: kernel of the patch convolution.
        embedding_patch: the embedding of places has one vector for each such patch.
        width, heads, mlp_dim: sizes of the encoder.
        summaries, blocks: encoder blocks that sum up the frames, and that mix the places.
        latent_grid, latent_dim: of the latents that places are looked up in.
        decoder_width, decoder_heads, decoder_mlp_dim, decoder_blocks: sizes of the decoder.
    """

    tokenizer: str
    patches: tuple[tuple[int, ...], ...]
    domain: Domain
    context: int
    base_patch: tuple[int, ...]
    embedding_patch: tuple[int, ...]
    width: int
    heads: int
    mlp_dim: int
    summaries: int
    blocks: int
    latent_grid: tuple[int, ...]
    latent_dim: int
    decoder_width: int
    decoder_heads: int
    decoder_mlp_dim: int
    decoder_blocks: int

    def __post_init__(self) -> None:
        if self.tokenizer not in ("ckm", "fixed"):
            raise OvertoneError(f"tokenizer is {self.tokenizer!r}; CViT has 'ckm' and 'fixed'")
        if self.tokenizer == "fixed" and self.patches != (self.base_patch,):
            raise OvertoneError(
                f"tokenizer 'fixed' has one patch, that of its kernel {self.base_patch}; "
                f"{self.patches} were given. Choose 'ckm' for several"
            )
        names = ("context", "blocks", "summaries", "mlp_dim", "decoder_mlp_dim", "decoder_blocks",
                 "width", "heads", "latent_dim", "decoder_width", "decoder_heads")  # fmt: skip
        require_sizes({name: getattr(self, name) for name in names})
        for name in ("base_patch", "embedding_patch", "latent_grid"):
            for size in per_axis(getattr(self, name), self.domain.ndim, name):
                require_sizes({name: size})
        for width, heads in ((self.width, self.heads), (self.decoder_width, self.decoder_heads)):
            if heads < 1 or width < 2 or width % 2 or width % heads:
                raise OvertoneError(
                    f"width {width} does not split into {heads} heads; choose an even multiple"
                )
        if self.latent_dim < 2 * self.domain.ndim:
            raise OvertoneError(
                f"latent_dim is {self.latent_dim}; expected at least {2 * self.domain.ndim}"
            )

    @property
    def least_weights(self) -> int:
        """How many weights the model has at least: those of its matrices, tables and kernels."""
        block = self.width * (4 * self.width + 2 * self.mlp_dim)
        query = self.decoder_width * (4 * self.decoder_width + 2 * self.decoder_mlp_dim)
        tables = math.prod(self.latent_grid) * self.latent_dim
        kernel = math.prod(self.base_patch) * len(self.domain.fields) * self.width
        return (self.blocks + self.summaries * (self.context > 1)) * block + (
            self.decoder_blocks * query + tables + kernel + self.context * self.width
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, strings and numbers, for JSON."""
        plain = {
            key: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }
        return plain | {
            "domain": self.domain.to_dict(),
            "patches": [list(patch) for patch in self.patches],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CViTArchitecture:
        """The inverse of `to_dict`. Unknown and missing keys are errors."""
        hint = "it is not a CViT's, was written by another version or edited by hand"
        require_fields(values, cls, hint)
        fields: dict[str, Any] = {
            key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            for key, value in values.items()
        }
        fields["domain"] = Domain(**values["domain"])
        fields["patches"] = tuple(tuple(patch) for patch in values["patches"])
        return cls(**fields)


def design_cvit(
    *,
    domain: Domain,
    tokenizer: str,
    patches: Sequence[Patch] | int,
    size: str,
    context: int,
    **options: Unpack[CViTOptions],
) -> CViTArchitecture:
    """Fill in an architecture from a size's name; `options` override single numbers."""
    require_one_of(size, SIZES, "size")
    for name in options:
        require_one_of(name, CViTOptions.__annotations__, "option")
    trained = trained_patches(patches, domain.ndim)
    by_axis = tuple(zip(*trained, strict=True))
    given: dict[str, Any] = {"summaries": 2, "decoder_blocks": 1, **SIZES[size], **options}
    base_patch = given.pop("base_patch", tuple(map(max, by_axis)))
    latent_grid = given.pop("latent_grid", domain.shape)
    return CViTArchitecture(
        tokenizer=tokenizer,
        patches=trained,
        domain=domain,
        context=context,
        base_patch=per_axis(base_patch, domain.ndim, "base_patch"),
        embedding_patch=tuple(map(min, by_axis)),
        latent_grid=per_axis(latent_grid, domain.ndim, "latent_grid"),
        **given,
    )
