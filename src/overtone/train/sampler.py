"""Which windows make up which batch.

Every epoch is a permutation of all windows, and batches are cut from the endless row of epochs. So
the windows of an update are a function of its number, whoever asks. The batch is cut into
`accumulate x ranks` parts in that order: two ranks compute what one rank computes in two parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch.utils.data import Sampler

from overtone.errors import ConfigError
from overtone.train.streams import stream


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
