"""What a model accepts: windows that fit the domain it was built for, and patches it knows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from overtone.domain import Domain, Window, per_axis
from overtone.errors import DomainError, PatchError
from overtone.grid import PatchGrid
from overtone.schedules import Patch


def accept_window(window: Window, *, domain: Domain, context: int, check_finite: bool) -> Window:
    """Check a window against a model and cut it to the model's context.

    Args:
        window: fields `(B, T, C, *space)`.
        domain: what the model was built for; another number of cells is no hindrance.
        context: largest number of frames it looks back on.
        check_finite: refuse NaN and infinity. A compiled graph never does: it would have to wait.
    """
    given = window.domain
    if not window.batched:
        raise DomainError(
            f"the window has shape {tuple(window.fields.shape)} without a batch axis; "
            "expected (B, T, C, *space): use fields.unsqueeze(0)"
        )
    if given.ndim != domain.ndim:
        raise DomainError(f"the window is {given.ndim}D, the model was built for {domain.ndim}D")
    if given.fields != domain.fields:
        raise DomainError(
            f"the window has the fields {given.fields}, the model was built for {domain.fields}; "
            "select and order them alike"
        )
    unknown = [str(kind) for kind in given.kinds if kind not in domain.kinds]
    if unknown:
        raise DomainError(
            f"the window has boundaries of kind {unknown}, which the model has not learned; it "
            f"knows periodic{''.join(f', {kind}' for kind in domain.kinds)}"
        )
    if not math.isclose(given.dt, domain.dt, rel_tol=1e-3):
        raise DomainError(f"the window's dt is {given.dt}, the model steps by {domain.dt}")
    needed = min(2, context)
    if window.num_frames < needed:
        raise DomainError(
            f"the window has {window.num_frames} frames; the model needs at least {needed} to "
            f"see a change, and was built for {context}"
        )
    window = window.last(context)
    if check_finite and not torch.compiler.is_compiling():
        window.require_finite()
    return window


def accept_patch(
    patch: int | Sequence[int],
    shift: int | Sequence[int],
    *,
    domain: Domain,
    trained: tuple[tuple[int, ...], ...],
    allow_untrained: bool,
) -> PatchGrid:
    """The patch grid of a call.

    Args:
        patch, shift: one int, or one for each axis.
        domain: what the window lies on.
        trained: the patches that the model knows.
        allow_untrained: accept others, too.
    """
    sizes = per_axis(patch, domain.ndim, "patch")
    if sizes not in trained and not allow_untrained:
        known = ", ".join(str(short_patch(known)) for known in trained)
        raise PatchError(
            f"patch {short_patch(sizes)} was not trained for; this model knows {known}. "
            "allow_untrained=True tries it all the same"
        )
    return PatchGrid.lay(domain, sizes, shift)


def short_patch(patch: tuple[int, ...]) -> Patch:
    """A patch written as short as possible: one int if all axes have the same."""
    return patch[0] if len(set(patch)) == 1 else patch
