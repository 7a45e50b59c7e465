"""Which windows a model accepts: the checks that emulators and baselines share."""

from __future__ import annotations

import math

import torch

from overtone.domain import Domain, Window
from overtone.errors import DomainError


def accept_window(window: Window, *, domain: Domain, context: int, check_finite: bool) -> Window:
    """Check a window against what a model was built for and cut it to the context.

    Args:
        window: fields `(B, T, C, *space)` in physical units.
        domain: what the model was built for; grid and extent of the window may differ from it.
        context: largest number of frames that the model looks back on.
        check_finite: refuse NaN and infinity; skipped while a graph is compiled, which should not
            wait for the answer.

    Returns:
        The latest `context` frames, or all if there are fewer.
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
