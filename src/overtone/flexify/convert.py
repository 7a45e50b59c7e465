"""`flexify`: one call that finds what depends on the patch and makes it follow.

Everything is found and checked first, and only then attached, so that an error leaves the model as
it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import nn

from overtone.domain import BoundarySpec, Domain, entries, is_int, per_axis
from overtone.errors import OvertoneError, PatchError, require_one_of
from overtone.flexify.layers import (
    RowOrder,
    WriteRows,
    read_patches,
    write_patches,
    write_shuffled,
)
from overtone.flexify.modules import (
    Attachment,
    Computation,
    attach,
    find_decoder,
    find_encoder,
    find_shuffle,
    require_attachable,
)
from overtone.flexify.patching import (
    Mode,
    Model,
    Patching,
    find_patchings,
    require_makeable,
)
from overtone.flexify.positions import find_masks, find_positions, find_tables, grid_of
from overtone.flexify.sizes import StoredPatch, find_sizes, stored_grid
from overtone.models.base import short_patch
from overtone.models.tokenizers import DecoderRule
from overtone.models.tokenizers.convolution import DECODER_RULES
from overtone.schedules import Patch

MODES: tuple[Mode, ...] = ("ckm", "csm")


def flexify(
    model: Model,
    encoder: str = "patch_embed.proj",
    decoder: str | None = "head.proj",
    *,
    patches: Sequence[Patch] | int = (4, 8, 16),
    mode: Mode = "ckm",
    rule: DecoderRule = "keep",
    decoder_axes: str | None = None,
    boundaries: BoundarySpec = "periodic",
    grid: int | Sequence[int] | None = None,
    embeddings: Mapping[str, str] | None = None,
    follow: Mapping[str, str] | None = None,
) -> Model:
    """Make a fixed-patch model run at many patches: `with ot.patch(model, 8): y = model(x)`.

    The model is changed in place and returned. Its parameters, their names and its state dict stay
    as they are; outside of `ot.patch` it computes exactly what it did.

    Args:
        model: any module whose patches are made by one convolution with stride = kernel.
        encoder: name of that convolution.
        decoder: name of the `ConvTranspose`, of the `Linear` that gives each token its patch, or
            of the `Conv2d` that a `PixelShuffle` follows (or of the `Sequential` of both); `None`
            for models that decode by queries.
        patches: what it will be run at, each one int or one for each axis.
        mode: `"ckm"` resizes the kernels to the patch; `"csm"` keeps them and changes the stride,
            for patches up to the kernel.
        rule: of the decoder: `"keep"` its amplitude at every patch, or as in the `"paper"`.
        decoder_axes: for a `Linear` decoder of several channels, the order of its output's axes as
            the model unfolds them: `"p1 p2 c"`, `"c p1 p2"`, …
        boundaries: where CSM's padding wraps (`"periodic"`) and where it repeats the outermost
            values (`"wall"`, `"open"`); one for all axes or one for each.
        grid: tokens along each axis at the base patch, where the model does not tell.
        embeddings: position embeddings, name to layout (`"tokens"`, `"first"`, `"last"`), instead
            of going by names and shapes; `{}` for none.
        follow: further stored sizes, name to `"patch"`, `"grid"` or `"count"`; names may contain
            `*`. `"keep"` for one that must not follow.
    """
    if find_patchings(model):
        raise OvertoneError("the model is flexible already; flexify a fresh copy to change patches")
    conv = find_encoder(model, encoder)
    base: tuple[int, ...] = tuple(conv.kernel_size)
    computations: dict[str, Computation] = {encoder: read_patches}
    shuffle: dict[str, Any] = {}
    if decoder is not None and (pair := find_shuffle(model, decoder, base)):
        computations[pair[0]] = write_shuffled
        shuffle[f"{pair[1]}.upscale_factor"] = StoredPatch()
    elif decoder is not None:
        module = find_decoder(model, decoder, base)
        computations[decoder] = _computation(module, decoder, decoder_axes, base)

    parent = model.get_submodule(encoder.rpartition(".")[0])
    search = partial(find_positions, model, embeddings, ndim=len(base), width=conv.out_channels)
    tokens = _grid(grid, parent, len(base))
    if grid is None and parent is model and tokens is not None and not search(grid=tokens):
        tokens = None  # the size of the field, perhaps: nothing on it has that many tokens
    positions = search(grid=tokens)
    tokens = tokens or _grid_of_embeddings(grid_of(positions, model, len(base)))
    patching = _patching(base, patches, mode, rule, boundaries, tokens)
    if shuffle:
        _require_square(patching.patches)
    patching.masks = find_masks(model)
    sizes = find_sizes(model, follow or {}, base=base, grid=tokens) | shuffle
    _attach(model, patching, computations, positions | find_tables(model, tokens) | sizes)
    return model


def _require_square(patches: tuple[tuple[int, ...], ...]) -> None:
    for patch in patches:
        if len(set(patch)) > 1:
            raise PatchError(
                f"patch {patch} is not square, and a PixelShuffle makes square patches alone; give "
                "patches of one int"
            )


def _computation(
    module: nn.Module, name: str, axes: str | None, base: tuple[int, ...]
) -> Computation:
    if not isinstance(module, nn.Linear):
        return write_patches
    cells = math.prod(base)
    num_channels = module.out_features // cells
    patch = " ".join(f"p{axis + 1}" for axis in range(len(base)))
    if axes is None and num_channels > 1:
        raise OvertoneError(
            f"decoder '{name}' is a Linear that gives each token {num_channels} channels of "
            f"{cells} cells, and its shape does not tell in which order; pass decoder_axes="
            f"'{patch} c' (channels innermost) or 'c {patch}' (channels outermost), as the model "
            "unfolds them"
        )
    return WriteRows(RowOrder.read(axes or f"{patch} c", len(base)))


def _grid(
    given: int | Sequence[int] | None, parent: nn.Module, ndim: int
) -> tuple[int, ...] | None:
    return stored_grid(parent, ndim) if given is None else per_axis(given, ndim, "grid")


def _grid_of_embeddings(grids: set[tuple[int, ...]]) -> tuple[int, ...] | None:
    if len(grids) > 1:
        raise PatchError(
            f"the position embeddings lie on different grids, {sorted(grids)}; say which is the "
            "token grid at the base patch with flexify(..., grid=...)"
        )
    return next(iter(grids), None)


def _patching(
    base: tuple[int, ...],
    patches: Sequence[Patch] | int,
    mode: Mode,
    rule: DecoderRule,
    boundaries: BoundarySpec,
    grid: tuple[int, ...] | None,
) -> Patching:
    require_one_of(mode, MODES, "mode")
    require_one_of(rule, DECODER_RULES, "rule")
    given = [patches] if is_int(patches) else [*entries(patches)]
    sizes = dict.fromkeys([per_axis(patch, len(base), "patch") for patch in given] + [base])
    if not given:
        raise PatchError(
            f"patches is {patches!r}; expected some, such as (4, 8, {short_patch(base)})"
        )
    for patch in sizes:
        require_makeable(patch, base, mode)
    # A domain reads the boundaries, and refuses what is none; its other entries do not matter.
    domain = Domain(base, (1.0,) * len(base), boundaries, ("field",))
    return Patching(base, tuple(sizes), mode, rule, domain.periodic, grid, patch=base)


def _attach(
    model: nn.Module,
    patching: Patching,
    computations: Mapping[str, Computation],
    views: Mapping[str, Any],
) -> None:
    attachments: dict[nn.Module, Attachment] = {}
    for name, computation in computations.items():
        attachments[model.get_submodule(name)] = Attachment(patching, computation)
    for name, view in views.items():
        owner, _, attribute = name.rpartition(".")
        own = attachments.setdefault(model.get_submodule(owner), Attachment(patching))
        own.views[attribute] = view
    for module, own in attachments.items():
        require_attachable(module, own)
    for module, own in attachments.items():
        attach(module, own)
