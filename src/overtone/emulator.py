"""The emulator: normalise, encode, process, decode, denormalise, add the change.

One set of weights for many patches; the caller chooses the patch, and the shift of its grid, at
every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from torch import Tensor, nn

from overtone.acceptance import accept_patch, accept_window, short_patch
from overtone.architecture import Architecture, Options, design
from overtone.domain import Domain, Window
from overtone.errors import CheckpointError, OvertoneError
from overtone.normalize import Statistics, statistics
from overtone.processors import Transformer
from overtone.schedules import Patch
from overtone.storage import load_folder, load_weights, save_folder
from overtone.tokenizers import TOKENIZERS


class Emulator(nn.Module):
    """A tokenizer and a processor that predict the next frame of a window.

    Args:
        architecture: every number that defines it; `build` makes one from a size's name.
    """

    def __init__(self, architecture: Architecture):
        super().__init__()
        a = self.architecture = architecture
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

    @property
    def domain(self) -> Domain:
        """What it was built for."""
        return self.architecture.domain

    @property
    def context(self) -> int:
        """Largest number of frames it looks back on."""
        return self.architecture.context

    @property
    def patches(self) -> tuple[Patch, ...]:
        """The patches it is trained for, written as short as possible."""
        return tuple(short_patch(patch) for patch in self.architecture.patches)

    @property
    def causal(self) -> bool:
        """Whether every frame of a window makes a prediction of its own."""
        return self.architecture.causal

    @property
    def num_parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(p.numel() for p in self.parameters())

    def forward(
        self,
        window: Window,
        patch: int | Sequence[int],
        shift: int | Sequence[int] = 0,
        *,
        allow_untrained: bool = False,
    ) -> Tensor:
        """Predict the next frame.

        Args:
            window: fields `(B, T, C, *space)` in physical units; of more than `context` frames
                the latest are used.
            patch: cells of a token, one int or one for each axis.
            shift: cells by which the patch grid is moved, one int or one for each axis.
            allow_untrained: accept a patch that the model was not trained for.

        Returns:
            `(B, C, *space)` in physical units.
        """
        change, stats = self.predict_change(
            window, patch, shift, last_only=True, allow_untrained=allow_untrained
        )
        return stats.add_change(window.fields[:, -1:], change)[:, 0]

    def predict_change(
        self,
        window: Window,
        patch: int | Sequence[int],
        shift: int | Sequence[int] = 0,
        *,
        last_only: bool = False,
        allow_untrained: bool = False,
    ) -> tuple[Tensor, Statistics]:
        """Predict the change that follows each frame, in units of its context's change.

        This is what training compares with `Statistics.change_between`. Arguments are those of
        `forward`; with `last_only` T is 1.

        Returns:
            Changes `(B, T, C, *space)`, and the statistics that give them their units.
        """
        # In training the loss tells of NaN.
        window = accept_window(
            window, domain=self.domain, context=self.context, check_finite=not self.training
        )
        grid = accept_patch(
            patch,
            shift,
            domain=window.domain,
            trained=self.architecture.patches,
            allow_untrained=allow_untrained,
        )
        stats = statistics(window.fields, causal=self.architecture.causal)
        normalised = stats.normalise(window.fields).to(next(self.parameters()).dtype)
        tokens = self.tokenizer.encode(normalised, grid)
        tokens = self.processor(tokens, grid, last_only=last_only)
        return self.tokenizer.decode(tokens, grid), stats.last() if last_only else stats

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute the blocks in the backward pass instead of keeping what they computed."""
        self.processor.checkpointing = enabled

    def save(
        self,
        path: str | Path,
        *,
        training: Mapping[str, Any] | None = None,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write a folder with weights (safetensors) and configuration (JSON).

        Args:
            path: the folder.
            training: how it was trained (seed, updates, …), plain data to keep beside it.
            weights: other weights than its own, e.g. gathered ones of a model spread over ranks.
        """
        config = {"architecture": self.architecture.to_dict(), "training": dict(training or {})}
        save_folder(path, self.state_dict() if weights is None else weights, config)

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Emulator:
        """Read a folder that `save` wrote, or a model that comes with the package, by its name.

        The model is in evaluation mode.
        """
        weights, config = load_folder(path)
        try:
            model = cls(Architecture.from_dict(config["architecture"]))
        except (KeyError, TypeError, OvertoneError) as error:
            raise CheckpointError(f"the configuration of '{path}' does not fit: {error}") from error
        load_weights(model, weights, path)
        return model.eval()


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
        size: `"tiny"`, `"7m"`, `"25m"` or `"100m"`.
        context: largest number of frames it looks back on.
        options: single numbers that differ from the size's: `width`, `heads`, `blocks`, `mlp_dim`,
            `stages`, `base_kernel`, `stage_dim`, `decoder`, `causal`, `max_turns`,
            `layer_scale`, `drop_path`, `window` (swin), `mode_blocks` (afno).
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
