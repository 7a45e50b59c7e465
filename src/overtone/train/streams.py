"""Random numbers that are functions of where they are used.

Every draw has a purpose and a counter, such as the number of the update. A counter-based generator
(Philox) turns both and the run's seed into numbers, so nothing needs to be stored for a resume, and
all ranks and any number of workers see the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from overtone.schedules import Patch


def stream(seed: int, purpose: str, *counter: int) -> np.random.Generator:
    """A generator for one purpose at one place, e.g. `stream(0, "patch", update)`."""
    key = hashlib.sha256(f"{seed} {purpose}".encode()).digest()[:16]
    # The lowest word counts the numbers that are drawn; the place goes into those above it.
    place = [0, *counter, *(0,) * (3 - len(counter))]
    return np.random.Generator(
        np.random.Philox(key=np.frombuffer(key, np.uint64), counter=np.array(place, np.uint64))
    )


def draw_patch(
    seed: int, update: int, step: int, patches: Sequence[Patch], weights: Sequence[float] | None
) -> Patch:
    """The patch of an update's unrolled step."""
    random = stream(seed, "patch", update, step)
    shares = None if weights is None else np.array(weights) / sum(weights)
    return patches[int(random.choice(len(patches), p=shares))]


def draw_shift(
    seed: int, update: int, step: int, patch: tuple[int, ...], share: float = 1.0
) -> tuple[int, ...]:
    """The offset of the patch grid, below the patch along each axis; 0 but in a share of draws."""
    # A stream of its own: the offsets of those that are moved don't depend on the share.
    if stream(seed, "moved", update, step).random() >= share:
        return (0,) * len(patch)
    random = stream(seed, "shift", update, step)
    return tuple(int(random.integers(size)) for size in patch)


def seed_torch(seed: int, update: int, part: int) -> None:
    """Set torch's own generators, for drop path and noise, at a part of the global batch."""
    torch.manual_seed(int(stream(seed, "torch", update, part).integers(2**63)))
