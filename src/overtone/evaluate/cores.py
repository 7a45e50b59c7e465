"""Work that is spread over the cores of a CPU, one piece to a core.

Small models keep one core busy and gain little from a second. So two rollouts side by side, with
one thread of torch each, are done sooner than one after the other with two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_core() -> Iterator[None]:
    """Within it each thread of Python computes on one core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def spread_over_cores(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int,
    stop: Callable[[], None],
) -> list[Result]:
    """`work` of every item, in their order.

    Args:
        work: called in threads, so it must not change what it shares with other items.
        items: taken in order.
        workers: items at once.
        stop: called when one failed or the user interrupts, so that the others give up.
    """
    with one_core(), ThreadPoolExecutor(workers) as pool:
        try:
            return list(pool.map(work, items))
        except BaseException:
            stop()
            pool.shutdown(cancel_futures=True)
            raise
