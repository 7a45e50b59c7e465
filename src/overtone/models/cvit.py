"""CViT, the continuous vision transformer, with a patch that the caller chooses.

After Wang et al.'s CViT, as the paper's appendix makes it flexible: CKM on the one convolution of
its encoder and resized embeddings; its decoder knows no patches, and answers at any place. Like an
`Emulator` it predicts the change of the last frame; unlike one it makes one prediction for a window
and knows places absolutely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from overtone.acceptance import accept_patch, accept_window, short_patch
from overtone.domain import Domain, Window
from overtone.errors import CheckpointError, DomainError, OvertoneError, PatchError
from overtone.grid import PatchGrid
from overtone.models.cvit_architecture import CViTArchitecture, CViTOptions, design_cvit
from overtone.models.cvit_parts import FrameEncoder, QueryDecoder
from overtone.normalize import Statistics, statistics
from overtone.ops.sampling import sample_grid, sample_points
from overtone.schedules import Patch
from overtone.storage import load_folder, load_weights, save_folder

KIND = "cvit"
"""What `config.json` of a saved CViT says it is."""


class CViT(nn.Module):
    """Predicts the next frame of a window, on its grid or at any place.

    Args:
        architecture: every number that defines it; `build_cvit` makes one from a size's name.
    """

    def __init__(self, architecture: CViTArchitecture):
        super().__init__()
        a = self.architecture = architecture
        self.encoder = FrameEncoder(
            a.domain,
            base_patch=a.base_patch,
            embedding_patch=a.embedding_patch,
            context=a.context,
            dim=a.width,
            num_heads=a.heads,
            mlp_dim=a.mlp_dim,
            num_summaries=a.summaries,
            num_blocks=a.blocks,
        )
        self.decoder = QueryDecoder(
            a.domain,
            latent_grid=a.latent_grid,
            latent_dim=a.latent_dim,
            token_dim=a.width,
            dim=a.decoder_width,
            num_heads=a.decoder_heads,
            mlp_dim=a.decoder_mlp_dim,
            num_blocks=a.decoder_blocks,
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
        """Whether every frame of a window makes a prediction of its own: only the last does."""
        return False

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
        """Predict the next frame. Arguments and result are those of `Emulator.forward`."""
        change, stats = self.predict_change(window, patch, shift, allow_untrained=allow_untrained)
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
        """Predict the change that follows the last frame, in units of its context's change.

        Arguments are those of `Emulator.predict_change`; there is one prediction for a window,
        with or without `last_only`.

        Returns:
            The change `(B, 1, C, *space)`, and the statistics that give it its unit.
        """
        tokens, stats, window = self._encode(window, patch, shift, allow_untrained)
        domain = window.domain
        cells = PatchGrid.lay(domain, 1)
        centres = [cells.centres(axis) for axis in range(domain.ndim)]
        latents = sample_grid(
            self.decoder.latents, centres, periodic=domain.periodic, spline="cubic"
        )
        change = self.decoder(tokens, latents.flatten(0, -2))
        return change.movedim(-1, 1).unflatten(-1, domain.shape).unsqueeze(1), stats

    def query(
        self,
        window: Window,
        coordinates: Tensor,
        patch: int | Sequence[int],
        shift: int | Sequence[int] = 0,
        *,
        allow_untrained: bool = False,
    ) -> Tensor:
        """Predict the next frame at any places.

        Args:
            window, patch, shift, allow_untrained: as in `forward`.
            coordinates: physical positions `(Q, axes)`, from 0 to the domain's extent; cell `i` of
                an axis has its centre at `(i + 1/2) · spacing`. Periodic axes wrap.

        Returns:
            `(B, Q, C)` in physical units. Between the cells the last frame, to which the change is
            added, is a cubic spline.
        """
        tokens, stats, window = self._encode(window, patch, shift, allow_untrained)
        places = _fractions(coordinates, window.domain)
        spline = {"periodic": window.domain.periodic, "spline": "cubic"}
        change = self.decoder(tokens, sample_points(self.decoder.latents, places, **spline))
        last = window.fields[:, -1]
        values = last.movedim((0, 1), (-2, -1)).flatten(-2)
        values = sample_points(values, places, **spline).unflatten(-1, last.shape[:2])
        return stats.add_change(values.movedim(0, -1).unsqueeze(1), change.mT.unsqueeze(1))[:, 0].mT

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute blocks and decoder in the backward pass instead of keeping their results."""
        self.encoder.checkpointing = self.decoder.checkpointing = enabled

    def save(
        self,
        path: str | Path,
        *,
        training: Mapping[str, Any] | None = None,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write a folder with weights and configuration; arguments as of `Emulator.save`."""
        config = {"kind": KIND, "architecture": self.architecture.to_dict()}
        content = config | {"training": dict(training or {})}
        save_folder(path, self.state_dict() if weights is None else weights, content)

    @classmethod
    def from_pretrained(cls, path: str | Path) -> CViT:
        """Read a folder that `save` wrote. The model is in evaluation mode."""
        weights, config = load_folder(path)
        try:
            model = cls(CViTArchitecture.from_dict(config["architecture"]))
        except (KeyError, TypeError, OvertoneError) as error:
            raise CheckpointError(f"the configuration of '{path}' does not fit: {error}") from error
        load_weights(model, weights, path)
        return model.eval()

    def _encode(
        self,
        window: Window,
        patch: int | Sequence[int],
        shift: int | Sequence[int],
        allow_untrained: bool,
    ) -> tuple[Tensor, Statistics, Window]:
        """Tokens of a window `(B, N, width)`, its statistics, and the frames that were used."""
        window = accept_window(
            window, domain=self.domain, context=self.context, check_finite=not self.training
        )
        a = self.architecture
        grid = accept_patch(
            patch, shift, domain=window.domain, trained=a.patches, allow_untrained=allow_untrained
        )
        if a.tokenizer == "fixed" and grid.patch != a.base_patch:
            raise PatchError(
                f"a fixed tokenizer of patch {short_patch(a.base_patch)} can't make patch "
                f"{short_patch(grid.patch)}; build with tokenizer='ckm' for more than one patch"
            )
        stats = statistics(window.fields).last()
        normalised = stats.normalise(window.fields).to(self.decoder.latents.dtype)
        return self.encoder(normalised, grid), stats, window


def build_cvit(
    *,
    domain: Domain,
    tokenizer: str = "ckm",
    patches: Sequence[Patch] | int = (4, 8, 16),
    size: str = "mini",
    context: int = 6,
    **options: Unpack[CViTOptions],
) -> CViT:
    """Build an untrained CViT, in evaluation mode (call `.train()` to train it).

    Args:
        domain: what it will be trained on.
        tokenizer: `"ckm"`, or `"fixed"` for one patch.
        patches: what it will be trained for.
        size: `"mini"`, `"s"`, `"b"` or `"l"`.
        context: largest number of frames it looks back on.
        options: single numbers that differ from the size's; see `CViTArchitecture`.
    """
    architecture = design_cvit(
        domain=domain,
        tokenizer=tokenizer,
        patches=patches,
        size=size,
        context=context,
        **options,
    )
    return CViT(architecture).eval()


def _fractions(coordinates: Tensor, domain: Domain) -> Tensor:
    """Physical positions `(Q, axes)` as fractions of the domain."""
    if coordinates.dim() != 2 or coordinates.shape[1] != domain.ndim:
        raise DomainError(
            f"coordinates have shape {tuple(coordinates.shape)}; expected (Q, {domain.ndim}), one "
            "row for each place"
        )
    places = coordinates / coordinates.new_tensor(domain.extent)
    fixed = [axis for axis, wraps in enumerate(domain.periodic) if not wraps]
    if not torch.compiler.is_compiling() and bool(((places < 0) | (places > 1))[:, fixed].any()):
        raise DomainError(
            f"coordinates leave the domain of extent {domain.extent} along an axis that is not "
            f"periodic ({fixed}); keep them between 0 and the extent there"
        )
    return places
