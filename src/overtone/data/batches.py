"""Items of a dataset, a window and its target, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from torch import Tensor
from torch.utils.data import default_collate  # pyright: ignore[reportUnknownVariableType]

from overtone.domain import SAME, Domain, Window
from overtone.errors import DataError

Item = tuple[Window, Tensor]
"""A window `(T, C, *space)` and its target `(horizon, C, *space)`."""


class Items(Protocol):
    """Any map-style dataset of windows and targets, ours or another's."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Item: ...


def collate(items: Sequence[Item]) -> Item:
    """Make a batch: window `(B, T, C, *space)` and target `(B, horizon, C, *space)`.

    All windows must live on the same domain, up to rounding of extent and dt.
    """
    return _batch(items, mixed=False)


def collate_mixed(items: Sequence[Item]) -> Item:
    """As `collate`, of windows that may differ in dt and extent.

    For models, which count in frames and cells. The batch has the first one's dt and extent, and
    its `dt_range` is that of all; derivatives in physical units can't be taken of it.
    """
    return _batch(items, mixed=True)


def _batch(items: Sequence[Item], *, mixed: bool) -> Item:
    windows, targets = zip(*items, strict=True)
    domain = windows[0].domain
    for window in windows:
        if window.domain is not domain:
            _require_same_domain(window.domain, domain, mixed=mixed)
    domain = joined([window.domain for window in windows]) if mixed else domain
    if len({target.shape for target in targets}) > 1:
        raise DataError(
            f"targets have {sorted({len(target) for target in targets})} frames; trajectories of "
            "different length can't be in one batch. Use batches of one"
        )
    return Window(default_collate([w.fields for w in windows]), domain), default_collate([*targets])


def joined(domains: Sequence[Domain]) -> Domain:
    """The first of some domains, with a range of dt that covers all."""
    first = domains[0]
    shortest = min(domain.dt_range[0] for domain in domains)
    longest = max(domain.dt_range[1] for domain in domains)
    if first.steps_by(shortest) and first.steps_by(longest):
        return first  # they differ by rounding at the most
    return Domain(
        first.shape, first.extent, first.boundaries, first.fields, first.dt, (shortest, longest)
    )


def _require_same_domain(given: Domain, expected: Domain, *, mixed: bool) -> None:
    for what in ("shape", "fields", "boundaries"):
        if getattr(given, what) != getattr(expected, what):
            raise DataError(f"a batch can't hold both {expected} and {given}; batch them apart")
    for what in () if mixed else ("dt", "extent"):
        own, first = getattr(given, what), getattr(expected, what)
        if not np.allclose(own, first, rtol=SAME, atol=0):
            raise DataError(
                f"a batch has windows whose {what} is {own}; that of the first is {first}, and a "
                f"batch has one {what} for all of them. Use one {what} at a time, or "
                "collate_mixed, for a model that counts in frames and cells"
            )
