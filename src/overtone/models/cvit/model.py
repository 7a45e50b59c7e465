"""CViT, the continuous vision transformer, with a patch that the caller chooses.

After Wang et al.'s CViT, as the paper's appendix makes it flexible: CKM on the one convolution of
its encoder and resized embeddings; its decoder knows no patches, and answers at any place. Like an
`Emulator` it predicts the change of the last frame; unlike one it makes one prediction for a window
and knows places absolutely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack, cast

import torch
from torch import Tensor

from overtone.domain import Domain, PerAxis, Window
from overtone.errors import DomainError, PatchError
from overtone.grid import PatchGrid
from overtone.models.architecture import require_weights
from overtone.models.base import Model, short_patch
from overtone.models.cvit.architecture import CViTArchitecture, CViTOptions, design_cvit
from overtone.models.cvit.parts import FrameEncoder, QueryDecoder
from overtone.normalize import Statistics
from overtone.ops.sampling import sample_grid, sample_points
from overtone.schedules import Patch


class CViT(Model):
    """Predicts the next frame of a window, on its grid or at any place.

    Args:
        architecture: every number that defines it; `build_cvit` makes one from a size's name.
    """

    kind = "cvit"

    def __init__(self, architecture: CViTArchitecture):
        a = architecture
        require_weights(a.least_weights)
        super().__init__(a.domain, a.context, patches=a.patches)
        self.architecture = architecture
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
    def config(self) -> dict[str, Any]:
        """Its architecture."""
        return self.architecture.to_dict()

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """See `Model.change`."""
        tokens, stats = self._encode(window, grid)
        domain = window.domain
        cells = self._latents(PatchGrid.lay(domain, 1))
        change = self.decoder(tokens, self._latents(grid), cells)
        return change.movedim(-1, 1).unflatten(-1, domain.shape).unsqueeze(1), stats

    def query(
        self,
        window: Window,
        coordinates: Tensor,
        patch: PerAxis,
        shift: PerAxis = 0,
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
        window, grid = self.accept_call(window, patch, shift, allow_untrained)
        tokens, stats = self._encode(window, grid)
        places = _fractions(coordinates, window.domain)
        periodic = window.domain.periodic
        latents = sample_points(self.decoder.latents, places, periodic=periodic, spline="cubic")
        change = self.decoder(tokens, self._latents(grid), latents)
        last = window.fields[:, -1]
        values = last.movedim((0, 1), (-2, -1)).flatten(-2)
        values = sample_points(values, places, periodic=periodic, spline="cubic")
        values = cast("Tensor", values.unflatten(-1, last.shape[:2]))
        return stats.add_change(values.movedim(0, -1).unsqueeze(1), change.mT.unsqueeze(1))[:, 0].mT

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute blocks and decoder in the backward pass instead of keeping their results."""
        self.encoder.checkpointing = self.decoder.checkpointing = enabled

    @classmethod
    def rebuild(cls, config: Mapping[str, Any]) -> Self:
        """See `Model.rebuild`."""
        return cls(CViTArchitecture.from_dict(config["architecture"]))

    def _encode(self, window: Window, grid: PatchGrid) -> tuple[Tensor, Statistics]:
        """Tokens of a window `(B, N, width)`, and its statistics."""
        a = self.architecture
        if a.tokenizer == "fixed" and grid.patch != a.base_patch:
            raise PatchError(
                f"a fixed tokenizer of patch {short_patch(a.base_patch)} can't make patch "
                f"{short_patch(grid.patch)}; build with tokenizer='ckm' for more than one patch"
            )
        stats = self.measure(window.fields, causal=False).last()
        normalised = stats.normalise(window.fields).to(self.decoder.latents.dtype)
        return self.encoder(normalised, grid), stats

    def _latents(self, grid: PatchGrid) -> Tensor:
        """Latents at a grid's centres, `(N, latent_dim)`, in row-major order."""
        centres = [grid.centres(axis) for axis in range(len(grid.shape))]
        periodic = grid.domain.periodic
        latents = sample_grid(self.decoder.latents, centres, periodic=periodic, spline="cubic")
        return latents.flatten(0, -2)


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
