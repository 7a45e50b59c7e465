"""The patch that a flexified model runs at, and the context manager that sets it.

All layers of one model that were made flexible share one `Patching`. It is a plain attribute of
theirs, not a parameter or buffer, so the state dict does not know it; a copy of the model has a
copy of it; `torch.compile` guards on it, so that each patch has its own graph; and the threads in
which autograd recomputes activations see it. Two threads that run *one* model at different patches
would disturb each other: give each a copy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from torch import nn

from overtone.domain import per_axis
from overtone.errors import OvertoneError, PatchError
from overtone.models.base import short_patch
from overtone.models.tokenizers import DecoderRule

Mode = Literal["ckm", "csm"]
"""What meets the patch: the kernel (CKM) or the stride (CSM)."""

ATTACHED = "_overtone"
"""Where a flexible module keeps what was attached to it."""

Model = TypeVar("Model", bound=nn.Module)


@dataclass(eq=False)
class Patching:
    """What the flexible layers of a model know in common.

    Attributes:
        base: the patch the model was built with, one int for each axis.
        patches: those it was flexified for, the base included.
        mode: whether the kernel or the stride meets the patch.
        rule: how the decoder keeps, or does not keep, its amplitude.
        periodic: for each axis, whether CSM's padding wraps.
        grid: tokens along each axis that the embeddings were learned on, if known.
        patch: the one in use.
        cells: the grid that the encoder last saw at this patch.
        masks: names of what the model keeps for one token grid, and can't follow the patch.
    """

    base: tuple[int, ...]
    patches: tuple[tuple[int, ...], ...]
    mode: Mode
    rule: DecoderRule
    periodic: tuple[bool, ...]
    grid: tuple[int, ...] | None
    patch: tuple[int, ...]
    cells: tuple[int, ...] | None = None
    masks: tuple[str, ...] = ()

    @property
    def ndim(self) -> int:
        """Number of spatial axes."""
        return len(self.base)

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens along each axis at the patch in use."""
        cells = self.cells
        if cells is None and self.grid is not None:
            cells = tuple(n * p for n, p in zip(self.grid, self.base, strict=True))
        if cells is None:
            raise PatchError(
                "the model asks for its token grid before its encoder ran, and nothing tells how "
                "large it is; call flexify(..., grid=(tokens along each axis at the base patch))"
            )
        return tuple(n // p for n, p in zip(cells, self.patch, strict=True))

    @property
    def num_tokens(self) -> int:
        """Tokens at the patch in use."""
        return math.prod(self.tokens)

    @property
    def trained_grid(self) -> tuple[int, ...] | None:
        """Tokens along each axis at the base patch, if known."""
        if self.grid is not None or self.cells is None:
            return self.grid
        return tuple(n // p for n, p in zip(self.cells, self.base, strict=True))

    def see(self, cells: tuple[int, ...]) -> None:
        """Note the grid that the encoder reads; the patch must divide it."""
        if any(n % p for n, p in zip(cells, self.patch, strict=True)):
            raise PatchError(
                f"patch {short_patch(self.patch)} does not divide the grid of {cells} cells, so "
                "the output would lie on another grid; choose a patch that does, or pad the input"
            )
        self.cells = cells
        if self.masks and self.grid is not None and self.tokens != self.grid:
            raise PatchError(
                f"patch {short_patch(self.patch)} makes {self.tokens} tokens of {cells} cells, but "
                f"'{self.masks[0]}' and other masks of shifted windows, as a Swin keeps them, are "
                f"for {self.grid} tokens and can't follow. Such a model runs where there are as "
                f"many tokens: at patch {short_patch(self.base)} on its own grid. Let it make its "
                "masks in every call, or flexify a model without windows"
            )

    def accept(self, patch: int | Sequence[int], allow_untrained: bool) -> tuple[int, ...]:
        """A patch as one int for each axis, if the layers can make it."""
        sizes = per_axis(patch, self.ndim, "patch")
        if sizes not in self.patches and not allow_untrained:
            known = ", ".join(str(short_patch(p)) for p in self.patches)
            raise PatchError(
                f"the model was not flexified for patch {short_patch(sizes)}; it knows {known}. "
                "Name it in flexify(patches=...), or try it with allow_untrained=True"
            )
        require_makeable(sizes, self.base, self.mode)
        return sizes


@contextmanager
def patch(
    model: Model, size: int | Sequence[int], *, allow_untrained: bool = False
) -> Generator[Model]:
    """Run a flexified model at a patch: `with ot.patch(model, 8): y = model(x)`.

    Contexts nest, and the patch before is back afterwards, also after an exception. Outside of any
    the model runs at its base patch. Where activations are recomputed in the backward pass, call
    `backward` inside as well.

    Args:
        model: what `flexify` returned, or anything that contains it (DDP, a compiled model).
        size: cells of a token, one int or one for each axis.
        allow_untrained: accept a patch that `flexify` was not told of.
    """
    patchings = find_patchings(model)
    if not patchings:
        raise PatchError(
            f"{type(model).__name__} has no flexible layers; make it flexible with "
            "flexify(model, ...) first"
        )
    sizes = [patching.accept(size, allow_untrained) for patching in patchings]
    before = [(patching.patch, patching.cells) for patching in patchings]
    try:
        for patching, new in zip(patchings, sizes, strict=True):
            patching.patch, patching.cells = new, None
        yield model
    except (RuntimeError, AssertionError, ValueError) as error:
        _explain(error, patchings, model)
        raise
    finally:
        for patching, (old, cells) in zip(patchings, before, strict=True):
            patching.patch, patching.cells = old, cells


def _explain(error: Exception, patchings: Sequence[Patching], model: nn.Module) -> None:
    """Raise what stands behind a mismatch of sizes in a model of windows, if it is one."""
    (patching, *_) = patchings
    windowed = any("window_size" in module.__dict__ for module in model.modules())
    size = re.search(r"size|shape|dimension|resolution|divisible", str(error))
    if patching.patch == patching.base or isinstance(error, OvertoneError) or not windowed:
        return
    if size or isinstance(error, AssertionError):
        there = "" if patching.cells is None else f" ({patching.tokens} of {patching.cells} cells)"
        raise PatchError(
            f"{type(model).__name__} can't work on the tokens of patch "
            f"{short_patch(patching.patch)}{there}: {str(error) or type(error).__name__}. It has "
            "attention windows: they, and the merging of tokens between its stages, must divide "
            f"the token grid as they do at patch {short_patch(patching.base)}. Choose another "
            "patch, or another grid"
        ) from error


def find_patchings(model: nn.Module) -> list[Patching]:
    """The patchings of all flexified models in a module, each once."""
    attached = (module.__dict__.get(ATTACHED) for module in model.modules())
    found = {id(own.patching): own.patching for own in attached if own is not None}
    return list(found.values())


def require_makeable(patch: tuple[int, ...], base: tuple[int, ...], mode: Mode) -> None:
    """Refuse a patch that a base kernel can't make."""
    if min(patch) < 1:
        raise PatchError(f"patch is {short_patch(patch)}; expected positive sizes")
    if mode == "csm" and any(p > k for p, k in zip(patch, base, strict=True)):
        raise PatchError(
            f"patch {short_patch(patch)} is larger than the kernel {short_patch(base)}: in mode "
            "'csm' cells between would be ignored; choose smaller patches, or mode='ckm'"
        )
