"""The emulator: normalise, encode, process, decode, denormalise, add the change.

One set of weights for many patches; the caller chooses the patch, and the shift of its grid, at
every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import torch
from torch import Tensor

from overtone.architecture import Architecture, Options, design
from overtone.domain import Domain, Window
from overtone.grid import PatchGrid
from overtone.model import Model
from overtone.normalize import Statistics, statistics
from overtone.processors import Transformer
from overtone.refine import Refinement
from overtone.schedules import Patch
from overtone.tokenizers import TOKENIZERS


class Emulator(Model):
    """A tokenizer and a processor that predict the next frame of a window.

    Args:
        architecture: every number that defines it; `build` makes one from a size's name.
    """

    kind = "emulator"

    def __init__(self, architecture: Architecture):
        a = architecture
        super().__init__(a.domain, a.context, patches=a.patches, causal=a.causal)
        self.architecture = architecture
        self.tokenizer = TOKENIZERS[a.tokenizer](
            a.domain, dim=a.width, kernels=a.kernels, stage_dim=a.stage_dim, rule=a.decoder
        )
        for patch in a.patches:
            self.tokenizer.strides(patch)  # refuses what the kernels can't make
        self.processor = Transformer(
            a.processor,
            dim=a.width,
            num_heads=a.heads,
            num_blocks=a.blocks,
            mlp_dim=a.mlp_dim,
            context=a.context,
            causal=a.causal,
            max_turns=a.max_turns,
            layer_scale=a.layer_scale,
            drop_path=a.drop_path,
            window=a.window,
            mode_blocks=a.mode_blocks,
        )
        self.refinement = Refinement(a.domain, a.refine) if a.refine else None

    @property
    def config(self) -> dict[str, Any]:
        """Its architecture."""
        return self.architecture.to_dict()

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """See `Model.change`."""
        stats = statistics(window.fields, pace=self.pace, causal=self.causal)
        normalised = stats.normalise(window.fields).to(next(self.parameters()).dtype)
        tokens = self.tokenizer.encode(normalised, grid)
        tokens = self.processor(tokens, grid, last_only=last_only)
        change = self.tokenizer.decode(tokens, grid)
        stats = stats.last() if last_only else stats
        if self.refinement is not None:
            num, fields = change.shape[1], window.fields
            earlier = torch.cat([fields[:, :1], fields[:, :-1]], dim=1)
            before = stats.change_between(earlier[:, -num:], fields[:, -num:]).to(change.dtype)
            change = self.refinement(change, normalised[:, -num:], before, window.domain)
        return change, stats

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute the blocks in the backward pass instead of keeping what they computed."""
        self.processor.checkpointing = enabled

    def blueprint(self) -> dict[str, Any]:
        """See `Model.blueprint`. The first folders named no kind, and emulators' still do not."""
        return {"architecture": self.config}

    @classmethod
    def rebuild(cls, config: Mapping[str, Any]) -> Self:
        """See `Model.rebuild`."""
        return cls(Architecture.from_dict(config["architecture"]))


def build(
    processor: str = "vit",
    *,
    domain: Domain,
    tokenizer: str = "csm",
    patches: Sequence[Patch] | int = (4, 8, 16),
    size: str = "tiny",
    context: int = 6,
    **options: Unpack[Options],
) -> Emulator:
    """Build an untrained emulator, in evaluation mode (call `.train()` to train it).

    Args:
        processor: spatial mixing: attention, `"vit"` (full), `"axial"` or `"swin"` (shifted
            windows), or `"afno"` (spectral).
        domain: what it will be trained on.
        tokenizer: `"csm"`, `"ckm"` or `"fixed"`.
        patches: what it will be trained for.
        size: `"nano"`, `"tiny"`, `"7m"`, `"25m"` or `"100m"`.
        context: largest number of frames it looks back on.
        options: single numbers that differ from the size's: `width`, `heads`, `blocks`, `mlp_dim`,
            `stages`, `base_kernel`, `stage_dim`, `decoder`, `causal`, `max_turns`,
            `layer_scale`, `drop_path`, `window` (swin), `mode_blocks` (afno), `refine`.
    """
    architecture = design(
        processor,
        tokenizer=tokenizer,
        patches=patches,
        size=size,
        domain=domain,
        context=context,
        **options,
    )
    return Emulator(architecture).eval()
