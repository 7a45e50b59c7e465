"""Random numbers that are functions of where they are used.

Every draw has a purpose and a counter, such as the number of the update. A counter-based generator
(Philox) turns both and the run's seed into numbers, so nothing needs to be stored for a resume, and
all ranks and any number of workers see the same.

So are the windows of a batch (`Windows`, `Share`). Every epoch is a permutation of all windows, and
batches are cut from the endless row of epochs: those of an update are a function of its number. The
batch is cut into `accumulate x ranks` parts in that order, so two ranks compute what one rank
computes in two parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Sampler

from overtone.errors import ConfigError
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


@dataclass(frozen=True)
class Share:
    """How a batch is divided.

    Attributes:
        batch: windows of an update, over all ranks.
        accumulate: parts that a rank's share is computed in.
        rank, world: which rank of how many.
    """

    batch: int
    accumulate: int = 1
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.batch % (self.accumulate * self.world):
            raise ConfigError(
                f"train.batch {self.batch} can't be divided among {self.world} ranks in "
                f"{self.accumulate} parts each; choose a multiple of {self.accumulate * self.world}"
            )

    @property
    def size(self) -> int:
        """Windows of one part."""
        return self.batch // (self.accumulate * self.world)

    def part(self, turn: int) -> int:
        """Number of the part of the global batch that this rank computes at a turn."""
        return turn * self.world + self.rank


class Windows(Sampler[list[int]]):
    """Indices of each part of each update, from a given update on, without end.

    Args:
        num: windows of the dataset.
        share: what this rank takes of a batch.
        seed: of the permutations.
        start: first update.
        stop: behind the last update.
    """

    def __init__(self, num: int, share: Share, *, seed: int, start: int, stop: int):
        self.num, self.share, self.seed = num, share, seed
        self.start, self.stop = start, stop
        self._epoch: tuple[int, list[int]] = (-1, [])

    def __iter__(self) -> Iterator[list[int]]:
        for update in range(self.start, self.stop):
            for turn in range(self.share.accumulate):
                yield self.indices(update, turn)

    def __len__(self) -> int:
        return (self.stop - self.start) * self.share.accumulate

    def indices(self, update: int, turn: int) -> list[int]:
        """The windows of one part of an update."""
        first = update * self.share.batch + self.share.part(turn) * self.share.size
        return [self._at(position) for position in range(first, first + self.share.size)]

    def _at(self, position: int) -> int:
        epoch, place = divmod(position, self.num)
        if self._epoch[0] != epoch:
            order = stream(self.seed, "order", epoch).permutation(self.num).tolist()
            self._epoch = (epoch, order)
        return self._epoch[1][place]
