"""How a patch grid lies on a domain.

Along each axis of `n` cells, a grid of period `patch` that starts at cell `start` has tokens
`j = 0 … count - 1`, each covering the cells `start + j·patch … start + (j + 1)·patch - 1`.

- Periodic axis: the grid starts at the shift and wraps; `count = ceil(n / patch)`. Cells are
  meant modulo `n`.
- Other axes: the grid must cover the whole axis, so a shifted grid starts *before* cell 0 and may
  have one token more. Cells outside `0 … n - 1` are ghost cells.

A shift by a whole patch is no shift. Grids that the patch does not divide are covered with room
to spare; the spare cells wrap or are ghosts, and are dropped after decoding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from overtone.domain import Domain, per_axis
from overtone.errors import PatchError


@dataclass(frozen=True)
class PatchGrid:
    """The patch grid of one model call. Built by `PatchGrid.lay`.

    Attributes:
        domain: what it lies on.
        patch: cells of a token along each axis.
        start: first cell of the first token along each axis.
        shape: number of tokens along each axis.
        moved: cells by which a program moves it further along axes that wrap, `(axes,)` int64; only
            a call knows them (`ops.padding.follow`).
    """

    domain: Domain
    patch: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]
    moved: Tensor | None = None

    @classmethod
    def lay(
        cls, domain: Domain, patch: int | Sequence[int], shift: int | Sequence[int] = 0
    ) -> PatchGrid:
        """Lay a grid of period `patch`, moved up by `shift` cells, on a domain."""
        patches = per_axis(patch, domain.ndim, "patch")
        shifts = per_axis(shift, domain.ndim, "shift")
        starts, counts = [], []
        for axis, (p, s) in enumerate(zip(patches, shifts, strict=True)):
            n = domain.shape[axis]
            if not 1 <= p <= n:
                raise PatchError(
                    f"patch {p} does not fit axis {axis} of {n} cells (grid {domain.shape}); "
                    f"choose a patch from 1 to {n} there"
                )
            start = s % p
            if start and not domain.periodic[axis]:
                start -= p
            covered = n if domain.periodic[axis] else n - start
            starts.append(start)
            counts.append(math.ceil(covered / p))
        return cls(domain, patches, tuple(starts), tuple(counts))

    @property
    def num_tokens(self) -> int:
        """Tokens of one frame."""
        return math.prod(self.shape)

    def at_rest(self) -> PatchGrid:
        """The grid without its shift along axes that wrap."""
        pairs = zip(self.start, self.domain.periodic, strict=True)
        return replace(self, start=tuple(0 if wraps else start for start, wraps in pairs))

    def centres(self, axis: int) -> list[float]:
        """Where the tokens' centres lie along an axis, as fractions of its extent."""
        p, n = self.patch[axis], self.domain.shape[axis]
        return [(self.start[axis] + (j + 0.5) * p) / n for j in range(self.shape[axis])]
