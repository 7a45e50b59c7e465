"""The emulator: normalise, encode, process, decode, refine, denormalise, add the change.

One set of weights for many patches; the caller chooses the patch, and the shift of its grid, at
every call.

Refining is optional. A token holds far fewer numbers than its patch has cells, so what is finer
passes it by, also what the last frames show plainly, such as a front that moves on. Three small
convolutions look at the cells around each, in the decoded change, the last frame and the change
before it, and add what is missing:

    change ← change + convolutions(change, frame, change before).

They do not know of patches, so one set of weights serves all of them, and they commute with shifts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self, Unpack, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.domain import Domain, Window
from overtone.errors import DomainError
from overtone.grid import PatchGrid
from overtone.models.architecture import Architecture, Options, design, require_weights
from overtone.models.base import Model
from overtone.models.processors import Transformer
from overtone.models.tokenizers import TOKENIZERS
from overtone.models.tokenizers.convolution import OUTPUT_GAIN
from overtone.normalize import Statistics
from overtone.ops.padding import take
from overtone.schedules import Patch

LAYERS = 3
"""Convolutions of a refinement."""
REACH = LAYERS
"""Cells that a correction looks away from its own, along each axis: one for each 3-cell kernel."""


class Emulator(Model):
    """A tokenizer and a processor that predict the next frame of a window.

    Args:
        architecture: every number that defines it; `build` makes one from a size's name.
    """

    kind = "emulator"

    def __init__(self, architecture: Architecture):
        a = architecture
        require_weights(a.least_weights)
        super().__init__(a.domain, a.context, patches=a.patches, causal=a.causal)
        self.architecture = architecture
        self.tokenizer = TOKENIZERS[a.tokenizer](
            a.domain,
            dim=a.width,
            kernels=a.kernels,
            stage_dim=a.stage_dim,
            rule=a.decoder,
            frames=a.folded,
            skip=a.skip,
        )
        for patch in a.patches:
            self.tokenizer.strides(patch)  # refuses what the kernels can't make
        self.processor = Transformer(
            a.processor,
            dim=a.width,
            num_heads=a.heads,
            num_blocks=a.blocks,
            mlp_dim=a.mlp_dim,
            context=a.attended,
            causal=a.causal,
            max_turns=a.max_turns,
            layer_scale=a.layer_scale,
            mlp=a.mlp,
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
        stats = self.measure(window.fields, causal=self.causal)
        normalised = stats.normalise(window.fields).to(next(self.parameters()).dtype)
        if self.architecture.folded > 1:
            # One frame of tokens, whose channels are those of all frames.
            read, last_only = normalised.flatten(1, 2).unsqueeze(1), True
        else:
            read = normalised
        tokens, details = self.tokenizer.encode_with_details(read, grid)
        tokens = self.processor(tokens, grid, last_only=last_only)
        details = [detail[:, -tokens.shape[1] :] for detail in details]
        change = self.tokenizer.decode(tokens, grid, details)
        stats = stats.last() if last_only else stats
        if self.refinement is not None:
            num, fields = change.shape[1], window.fields
            earlier = torch.cat([fields[:, :1], fields[:, :-1]], dim=1)
            before = stats.change_between(earlier[:, -num:], fields[:, -num:]).to(change.dtype)
            change = self.refinement(change, normalised[:, -num:], before, window.domain)
        return change, stats

    def accept(self, window: Window, *, check_finite: bool = True) -> Window:
        """See `Model.accept`; a folded context has one length, the one that was trained."""
        if window.num_frames < self.architecture.folded:
            raise DomainError(
                f"the window has {window.num_frames} frames; this model reads exactly "
                f"{self.context} as channels. Give more, or build it with "
                f"context={window.num_frames}, or with time='attend', which takes fewer"
            )
        return super().accept(window, check_finite=check_finite)

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute the blocks in the backward pass instead of keeping what they computed."""
        self.processor.checkpointing = enabled

    @classmethod
    def rebuild(cls, config: Mapping[str, Any]) -> Self:
        """See `Model.rebuild`."""
        return cls(Architecture.from_dict(config["architecture"]))


class Refinement(nn.Module):
    """Corrects changes by the cells around.

    Args:
        domain: gives fields, number of axes and boundaries.
        width: channels between the convolutions.
    """

    def __init__(self, domain: Domain, width: int):
        super().__init__()
        kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[domain.ndim - 1]
        fields = len(domain.fields)
        widths = [3 * fields, *(width,) * (LAYERS - 1), fields]
        made = [kind(n, m, kernel_size=3) for n, m in pairwise(widths)]
        self.convolutions = nn.ModuleList(made)
        # At first it hardly corrects; but every weight has a gradient.
        nn.init.normal_(made[-1].weight, std=OUTPUT_GAIN * (3**domain.ndim * width) ** -0.5)
        nn.init.zeros_(made[-1].bias)  # pyright: ignore[reportArgumentType]

    def forward(self, change: Tensor, frame: Tensor, before: Tensor, domain: Domain) -> Tensor:
        """Corrected changes.

        Args:
            change: as decoded, `(B, T, C, *space)`.
            frame: the normalised frames that they follow, of the same shape.
            before: the changes that led to those, in the unit of `change`.
            domain: says which axes wrap; beyond the others the outermost cells are repeated.
        """
        x: Tensor = torch.cat([change, frame, before], dim=2).flatten(0, 1)
        for axis, (n, wraps) in enumerate(zip(domain.shape, domain.periodic, strict=True)):
            x = take(x, axis + 2, (-REACH, n + REACH), periodic=wraps, ghosts="edge")
        convolutions = cast("Iterable[Callable[[Tensor], Tensor]]", self.convolutions)
        for i, convolve in enumerate(convolutions):
            x = convolve(x if i == 0 else F.gelu(x))
        return change + cast("Tensor", x.unflatten(0, change.shape[:2]))


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
        size: `"nano"`, `"tiny"`, `"7m"`, `"25m"`, `"50m"` or `"100m"`.
        context: number of frames it looks back on.
        options: what differs from the defaults: `time` (`"fold"` or `"attend"`), `width`, `heads`,
            `blocks`, `mlp_dim`, `stages`, `base_kernel`, `stage_dim`, `skip`, `decoder`, `causal`,
            `max_turns`, `layer_scale`, `mlp`, `drop_path`, `window` (swin), `mode_blocks` (afno),
            `refine`.
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
